#pragma once

#include <atomic>
#include <cstdint>

namespace ringbolt::device {

/// When the service thread looks at the timers of sends next. Who sets one wakes it only where that would be too late:
/// a program that sends all the time sets one with every send, and most of them never run out.
class NextLook {
 public:
  /// A timer runs out at `deadline_ns`, where the service thread finds it. True: wake it. Thread-safe, without locks.
  bool is_too_late_for(uint64_t deadline_ns) {
    // The timer was stored before: either begin() comes later, and what it begins finds the timer, or its end is seen.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    for (uint64_t known = at_ns_.load(std::memory_order_relaxed); deadline_ns < known;) {
      if (at_ns_.compare_exchange_weak(known, deadline_ns, std::memory_order_seq_cst)) {
        return !is_looking_.load(std::memory_order_seq_cst);  // who looks finds it in end()
      }
    }
    return false;
  }

  // For the service thread alone.
  /// When it was to look, which may be later: the timer that it was woken for need not have run out.
  uint64_t begin() {
    is_looking_.store(true, std::memory_order_seq_cst);
    const uint64_t was_to_look_at_ns = at_ns_.exchange(UINT64_MAX, std::memory_order_seq_cst);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return was_to_look_at_ns;
  }
  /// It wants to look at `at_ns` at the latest, UINT64_MAX: not of its own accord. When it has to.
  uint64_t end(uint64_t at_ns) {
    is_too_late_for(at_ns);
    is_looking_.store(false, std::memory_order_seq_cst);
    return at_ns_.load(std::memory_order_seq_cst);
  }

 private:
  // CLOCK_MONOTONIC. Lowered by those who set timers, taken by the service thread.
  std::atomic<uint64_t> at_ns_{UINT64_MAX};
  std::atomic<bool> is_looking_{false};
};

}  // namespace ringbolt::device
