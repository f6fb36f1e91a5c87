#include "base/adaptive_mutex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

#include "base/asymmetric_fence.h"
#include "base/cpu_pause.h"

namespace ringbolt::base {
namespace {

// About a microsecond of pauses, which is longer than most owners hold such a lock, and shorter than two switches of
// threads.
constexpr int kSpinsBeforeSleep = 64;

// FUTEX_PRIVATE_FLAG: the word is never in memory shared with another process, and the kernel need not look for one
// (futex(2)).
long futex(std::atomic<uint32_t>& word, int operation, uint32_t value, const timespec* timeout) {
  return syscall(SYS_futex, &word, operation | FUTEX_PRIVATE_FLAG, value, timeout, nullptr, 0);
}

}  // namespace

/// A part of lock(), which says that it takes the lock.
void AdaptiveMutex::lock_contended() RINGBOLT_NOT_ANALYSED {
  for (int spins = 0; spins < kSpinsBeforeSleep; ++spins) {
    cpu_pause();
    if (try_lock()) {
      return;
    }
  }
  const int error = errno;  // callers lock between a system call that failed and their look at why
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  // Every thread has now passed a fence: an owner that did not see us has made its store visible, and we find the lock
  // free; all others see us. Where the kernel has no such fence, who was missed looks again a millisecond later.
  heavy_fence();
  const timespec look_again{0, 1'000'000};
  const timespec* const timeout = has_asymmetric_fences() ? nullptr : &look_again;
  // A wake-up, a changed word, a signal and a timeout all lead to another try: nothing needs to be told apart.
  while (!try_lock()) {
    futex(held_, FUTEX_WAIT, 1, timeout);
  }
  // Relaxed: a stale larger count costs an owner one needless system call, and never a wake-up.
  sleepers_.fetch_sub(1, std::memory_order_relaxed);
  errno = error;
}

// One is enough: it either takes the lock and wakes the next one as it unlocks, or somebody else has it and does so.
void AdaptiveMutex::wake_one() { futex(held_, FUTEX_WAKE, 1, nullptr); }

}  // namespace ringbolt::base
