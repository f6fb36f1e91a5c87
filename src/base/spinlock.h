#pragma once

#include <sched.h>

#include <atomic>
#include <cstdint>

#include "base/lock_guard.h"

namespace ringbolt::base {

/// The built-in, since the header of its intrinsic takes longer to parse than most files that need a lock.
inline void cpu_pause() { __builtin_ia32_pause(); }

/// A lock of four bytes for sections of nanoseconds. A waiter spins briefly, then gives its core away: with more
/// threads than cores the owner may be off the processor. Thread-safe.
class RINGBOLT_CAPABILITY("spinlock") Spinlock {
 public:
  void lock() RINGBOLT_ACQUIRE() RINGBOLT_NOT_ANALYSED {
    if (try_lock()) [[likely]] {
      return;
    }
    lock_contended();
  }
  bool try_lock() RINGBOLT_TRY_ACQUIRE(true) RINGBOLT_NOT_ANALYSED {
    return held_.load(std::memory_order_relaxed) == 0 && held_.exchange(1, std::memory_order_acquire) == 0;
  }
  void unlock() RINGBOLT_RELEASE() RINGBOLT_NOT_ANALYSED { held_.store(0, std::memory_order_release); }

 private:
  void lock_contended() RINGBOLT_NOT_ANALYSED {
    constexpr int kSpinsBeforeYield = 64;
    for (int spins = 0; !try_lock(); ++spins) {
      if (spins < kSpinsBeforeYield) {
        cpu_pause();
      } else {
        sched_yield();
      }
    }
  }

  std::atomic<uint32_t> held_{0};
};

}  // namespace ringbolt::base
