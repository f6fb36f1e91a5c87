#pragma once

#include <atomic>
#include <cstdint>

#include "base/lock_guard.h"

namespace ringbolt::base {

/// The lock of hot paths: uncontended, an exchange to lock and a store to unlock, both inline. A waiter spins briefly
/// and then sleeps, so that the owner may make system calls, block, or be off its processor. Unlike with a std::mutex,
/// to have locked it last is no leave to free it: its last owner may still be about to look for sleepers.
/// Thread-safe. Not recursive, not fair, and for the threads of one process alone: the futex is a private one. lock()
/// keeps errno.
class RINGBOLT_CAPABILITY("mutex") AdaptiveMutex {
 public:
  void lock() RINGBOLT_ACQUIRE() RINGBOLT_NOT_ANALYSED {
    if (try_lock()) [[likely]] {
      return;
    }
    lock_contended();
  }
  bool try_lock() RINGBOLT_TRY_ACQUIRE(true) RINGBOLT_NOT_ANALYSED {
    // The look before the exchange keeps the line shared among those who spin: an exchange would take it from the
    // owner each time.
    return held_.load(std::memory_order_relaxed) == 0 && held_.exchange(1, std::memory_order_acquire) == 0;
  }
  void unlock() RINGBOLT_RELEASE() RINGBOLT_NOT_ANALYSED {
    held_.store(0, std::memory_order_release);
    // The processor may look before it has stored: whoever goes to sleep makes up for that with a heavy fence between
    // its own count and its look at `held_` (base/asymmetric_fence.h), see lock_contended().
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (sleepers_.load(std::memory_order_relaxed) != 0) [[unlikely]] {
      wake_one();
    }
  }

 private:
  // Both are outside the class' inline part to keep the callers' code small; neither allocates nor throws.
  void lock_contended();
  void wake_one();

  // 0 or 1: the word that the futex compares.
  std::atomic<uint32_t> held_{0};
  // Threads between their decision to sleep and their lock: whoever unlocks and finds none makes no system call.
  std::atomic<uint32_t> sleepers_{0};
};

}  // namespace ringbolt::base
