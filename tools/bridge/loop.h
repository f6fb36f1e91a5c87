#pragma once

#include <uv.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <utility>

namespace ringbolt::tools::bridge {

/// libuv's event loop. What is made on it ends before it. Throws base::Error when it can't be made. Not thread-safe.
class Loop {
 public:
  Loop();
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  /// Until stop().
  void run() { uv_run(&loop_, UV_RUN_DEFAULT); }
  void stop() { uv_stop(&loop_); }
  uv_loop_t* get() { return &loop_; }

 private:
  uv_loop_t loop_{};
};

/// Who is told that something has happened.
class Listening {
 public:
  virtual ~Listening() = default;
  virtual void on_event() = 0;
};

/// Tells, again and again, while a descriptor is ready for what is wanted. Ends before the descriptor does; never while
/// it tells. Not thread-safe.
class Watch {
 public:
  /// Throws base::Error: no more descriptors can be watched.
  Watch(Loop& loop, int fd, Listening& listening);
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  void want(bool readable, bool writable);

 private:
  struct Handle;
  Handle* handle_;  // libuv's until it has said that it is closed
  int wanted_ = 0;
};

/// A time limit of a kind of which there are thousands: one timer of the loop serves all. Not thread-safe.
class Deadlines {
 public:
  explicit Deadlines(Loop& loop);
  ~Deadlines();
  Deadlines(const Deadlines&) = delete;
  Deadlines& operator=(const Deadlines&) = delete;

  /// Tells at that time instead of `before_ns`, once; 0: never. Both as base::now_ns() counts.
  void move(Listening& listening, uint64_t before_ns, uint64_t at_ns);

 private:
  void set_timer();
  void fire();

  struct Handle;
  Handle* handle_;
  std::set<std::pair<uint64_t, Listening*>> all_;
  uint64_t set_for_ns_ = 0;
};

/// Calls of other threads, of signals, and each time before the loop sleeps.
class Calls {
 public:
  /// `on_signal`: SIGTERM or SIGINT came. `on_call`: call() was. `before_sleep`: all events were told.
  Calls(Loop& loop, std::function<void(int)> on_signal, std::function<void()> on_call,
        std::function<void()> before_sleep);
  ~Calls();
  Calls(const Calls&) = delete;
  Calls& operator=(const Calls&) = delete;
  /// Thread-safe.
  void call();

 private:
  struct Handles;
  Handles* handles_;
};

}  // namespace ringbolt::tools::bridge
