#pragma once

#include <poll.h>

#include <vector>

#include "base/unique_fd.h"
#include "rsocket/deadline.h"

namespace ringbolt::rsocket {

/// What a thread sleeps on besides the descriptors it waits for, so that another thread that has taken an event off one
/// of them can wake it. One per thread. ring() is thread-safe, the rest is for its own thread.
/// Lives as long as its thread.
class Sleeper {
 public:
  static Sleeper& of_this_thread();

  /// Sleeps until one of `waits` has something, somebody rings, or `deadline` bounds the sleep. Returns as poll(); what
  /// it says of `waits` is in them.
  int sleep(std::vector<pollfd>& waits, const Deadline& deadline);
  /// Never blocks. Rung before it sleeps, it does not sleep.
  void ring();
  /// The most that one sleep takes; UINT64_MAX: what its deadline leaves. Of tests, whose lost wake-ups it would hide.
  void set_longest_sleep_ns(uint64_t ns) { longest_sleep_ns_ = ns; }
  /// Scratch space, so that waiting allocates nothing.
  std::vector<pollfd>& scratch() { return scratch_; }

 private:
  Sleeper();
  base::UniqueFd bell_;
  uint64_t longest_sleep_ns_ = kMaxSleepNs;
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
  // not owned: each is here only while its thread sleeps
  std::vector<Sleeper*> watchers_;
};

}  // namespace ringbolt::rsocket
