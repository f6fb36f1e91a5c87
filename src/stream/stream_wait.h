#pragma once

#include "base/cpu_pause.h"
#include "stream/stream.h"

// For the sources of Stream alone.
namespace ringbolt::stream {

/// Waits until `is_done` or the end of time: 0, EAGAIN or ETIMEDOUT. Polls for a while, then sleeps.
/// The lock is given up in it: what was read before is old when it returns. `is_done` runs under the lock.
template <class IsDone>
int Stream::wait(const Deadline& deadline, IsDone is_done) {
  look();
  if (base::call_locked(is_done)) {
    return 0;
  }
  if (deadline.is_now()) {
    if (completions_.is_first_idle()) {
      look_around();
    }
    return base::call_locked(is_done) ? 0 : EAGAIN;
  }
  constexpr int kLooksAtOnce = 32;  // before another thread gets the lock
  uint64_t spins_until_ns = 0;
  ++waiting_;
  int result = 0;
  while (true) {
    for (int i = 0; i < kLooksAtOnce && !base::call_locked(is_done); ++i) {
      look();
    }
    if (base::call_locked(is_done)) {
      break;
    }
    const uint64_t now_ns = base::now_ns();
    if (spins_until_ns == 0) {  // only now: what comes soon is not held up by a look at the clock
      spins_until_ns = now_ns + uint64_t{settings_.spin_us} * 1000;
    }
    if (deadline.is_over(now_ns)) {
      result = ETIMEDOUT;
      break;
    }
    if (now_ns < spins_until_ns) {
      const base::Unlocked unlocked(mutex_);
      base::cpu_pause();
    } else {
      sleep_until(deadline.ns());
    }
  }
  --waiting_;
  return result;
}

}  // namespace ringbolt::stream
