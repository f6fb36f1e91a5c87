#pragma once

#include <uv.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "bridge/relay.h"
#include "bridge/sockets.h"
#include "stream/stream.h"

namespace ringbolt::tools::bridge {

/// libuv's event loop. What is made on it ends before it. Throws base::Error when it can't be made. Not thread-safe.
/// Owns the loop; handles on it are owned by what made them, until libuv has said that they are closed.
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
/// Told on the loop's thread.
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
  /// Both false: nothing is told until something is wanted again. Level-triggered, as poll(2).
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
  /// `before_ns`: what it was moved to last, which its owner keeps; 0: it has none. Who ends moves to 0 first.
  void move(Listening& listening, uint64_t before_ns, uint64_t at_ns);

 private:
  void set_timer();
  void fire();

  struct Handle;
  Handle* handle_;
  // not owned
  std::set<std::pair<uint64_t, Listening*>> all_;
  uint64_t set_for_ns_ = 0;
};

/// Calls of other threads, of signals, and each time before the loop sleeps.
/// All but call() on the loop's thread.
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

/// What all connections of a bridge share. Outlives them.
struct Surroundings {
  Loop& loop;
  Deadlines& deadlines;
  std::shared_ptr<stream::Service> service;
  RelaySettings relay;
  stream::StreamSettings stream;
  uint64_t connect_timeout_ns = 0;
};

/// Where sockets are connected to: what a place's name stood for when the bridge began.
struct SocketTarget {
  Place place;
  std::vector<stream::Address> addresses;  ///< of TCP, one at least
};

class Connection;

/// Who has connections. Told once of each that it has ended, from within a call of it: it ends it later.
class ConnectionOwner {
 public:
  virtual ~ConnectionOwner() = default;
  /// `problem`: in words, where somebody should know; empty: it ended as connections do.
  virtual void on_ended(Connection& connection, const std::string& reason, const std::string& problem) = 0;
};

/// A stream as a relay's end.
class FabricOnStream : public FabricEnd {
 public:
  explicit FabricOnStream(stream::Stream& stream) : stream_(stream) {}
  std::span<std::byte> room() override { return stream_.room(); }
  int send(std::span<const std::byte> filled) override { return stream_.send(filled); }
  base::Result<Pieces> peek() override { return stream_.peek(stream::Deadline::now()); }
  void consume(size_t count) override { stream_.consume(count); }
  bool is_drained() override { return stream_.is_drained(); }
  bool is_ended() override { return stream_.reason() != stream::CloseReason::none; }

 private:
  stream::Stream& stream_;
};

/// One connection of a bridge: a stream, a socket, and the relay between them. Told of events, it never blocks. Not
/// thread-safe.
/// Owns stream and socket. Its owner destroys it after on_ended(), and never from within.
class Connection : public Listening {
 public:
  /// Of a socket that was accepted: the stream is being connected. Throws base::Error. So does the next.
  Connection(Surroundings& around, ConnectionOwner& owner, std::unique_ptr<stream::Stream> stream,
             base::UniqueFd socket);
  /// Of a stream that was accepted: connects the socket first.
  Connection(Surroundings& around, ConnectionOwner& owner, std::unique_ptr<stream::Stream> stream,
             const SocketTarget& target);
  ~Connection() override;

  /// Something may have happened: looks.
  void on_event() override;
  /// Ends it in good order, soon.
  void stop(std::string_view reason);

  Moved moved() const { return relay_ ? relay_->moved() : Moved{}; }
  stream::Statistics statistics() const { return stream_->statistics(); }

 private:
  bool open_socket();
  bool try_target();
  void begin(base::UniqueFd socket);
  void begin_relay();
  void apply(const Wants& wants);
  void end(const std::string& reason, const std::string& problem);
  void end_of_relay();
  void set_deadline(uint64_t at_ns);

  Surroundings& around_;
  ConnectionOwner& owner_;
  std::unique_ptr<stream::Stream> stream_;
  FabricOnStream fabric_;
  std::optional<SocketOnDescriptor> socket_;
  std::optional<Watch> stream_watch_, socket_watch_;  // gone before what they watch
  std::optional<Relay> relay_;                        // none while the socket is being connected
  // the pair's; null: the socket was accepted
  const SocketTarget* target_ = nullptr;
  size_t next_target_ = 0;
  int connect_error_ = 0;
  uint64_t connect_until_ns_ = 0;
  uint64_t deadline_ns_ = 0;
  uint32_t events_ = stream::kReadable;  // that the stream's descriptor stands for
  bool has_ended_ = false;
};

}  // namespace ringbolt::tools::bridge
