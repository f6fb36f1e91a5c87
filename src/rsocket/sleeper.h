#pragma once

#include <poll.h>

#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "base/unique_fd.h"

namespace ringbolt::rsocket {

/// Nobody sleeps longer than this without looking for himself.
inline constexpr uint64_t kMaxSleepNs = 500'000'000;

/// When a call gives up.
class Deadline {
 public:
  static Deadline never() { return Deadline(UINT64_MAX); }
  static Deadline in_ns(uint64_t ns) {
    const uint64_t now = base::now_ns();
    return Deadline(ns > UINT64_MAX - now ? UINT64_MAX : now + ns);
  }
  /// As poll() counts: milliseconds, negative for never.
  static Deadline in_ms(int ms) { return ms < 0 ? never() : in_ns(static_cast<uint64_t>(ms) * 1'000'000); }

  bool is_over() const { return at_ns_ != UINT64_MAX && base::now_ns() >= at_ns_; }
  /// How long one sleep may take: up to here, and at most kMaxSleepNs. Rounded up to whole milliseconds.
  int sleep_ms() const;

 private:
  explicit Deadline(uint64_t at_ns) : at_ns_(at_ns) {}
  uint64_t at_ns_;
};

/// What a thread sleeps on besides the descriptors it waits for, so that another thread that has taken an event off one
/// of them can wake it. One per thread. ring() is thread-safe, the rest is for its own thread.
class Sleeper {
 public:
  static Sleeper& of_this_thread();

  /// Sleeps until one of `waits` has something, somebody rings, or `deadline` bounds the sleep. Returns as poll(); what
  /// it says of `waits` is in them.
  int sleep(std::vector<pollfd>& waits, const Deadline& deadline);
  void ring();
  /// Scratch space, so that waiting allocates nothing.
  std::vector<pollfd>& scratch() { return scratch_; }

 private:
  Sleeper();
  base::UniqueFd bell_;
  std::vector<pollfd> scratch_;
};

/// The threads that sleep on one socket. Guarded by the socket's lock.
class WatchList {
 public:
  void add(Sleeper& sleeper) { watchers_.push_back(&sleeper); }
  void remove(Sleeper& sleeper) { std::erase(watchers_, &sleeper); }
  /// The state of the socket has changed: everybody may look again.
  void ring() {
    for (Sleeper* sleeper : watchers_) {
      sleeper->ring();
    }
  }

 private:
  std::vector<Sleeper*> watchers_;
};

}  // namespace ringbolt::rsocket
