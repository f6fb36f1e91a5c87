#pragma once

// How a host reaches the words of a completion flag (completion_flag.h): the barriers of each processor, and how a
// thread sleeps on a word.

#include <cerrno>
#include <cstdint>
#include <ctime>

#include <sched.h>
#if defined(__linux__)
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace ringbolt::detail {

inline void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#endif
}

inline void nap(uint64_t ns) {
  const timespec time{static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
  nanosleep(&time, nullptr);  // a signal may shorten it: the caller looks again
}

/// Whether the signaller can run while this thread spins: not with one processor.
inline bool can_spin() {
#if defined(__linux__)
  static const bool is_worth_it = [] {
    cpu_set_t allowed;
    return sched_getaffinity(0, sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) > 1;
  }();
  return is_worth_it;
#else
  return true;
#endif
}

/// Memory as the processor has it. No state; thread-safe.
struct HostAccess {
  static uint64_t load_acquire(const uint64_t& word) { return __atomic_load_n(&word, __ATOMIC_ACQUIRE); }
  static uint32_t load_relaxed(const uint32_t& word) { return __atomic_load_n(&word, __ATOMIC_RELAXED); }
  static void add(uint32_t& word, uint32_t amount) { __atomic_fetch_add(&word, amount, __ATOMIC_SEQ_CST); }
  static void set_if_zero(uint64_t& word, uint64_t value) {
    uint64_t zero = 0;
    __atomic_compare_exchange_n(&word, &zero, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  }

  /// x86-64: an exchange, which is a full fence, too. AArch64: STLR.
  static void store_release(uint64_t& word, uint64_t value) {
#if defined(__x86_64__)
    __atomic_store_n(&word, value, __ATOMIC_SEQ_CST);
#else
    __atomic_store_n(&word, value, __ATOMIC_RELEASE);
#endif
  }

  /// Between a store and a load of another word. By the processor's own instruction: ThreadSanitizer knows no fences,
  /// and needs none here, since each word is atomic.
  static void full_fence() {
#if defined(__x86_64__)
    asm volatile("" ::: "memory");  // store_release(), add() and set_if_zero() are full fences already
#elif defined(__aarch64__)
    asm volatile("dmb ish" ::: "memory");
#else
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
  }

  /// Payload before flag, as a device sees them: stores that bypass the caches on x86-64, which a release does not
  /// order.
  static void order_for_device() {
#if defined(__x86_64__)
    asm volatile("sfence" ::: "memory");
#elif defined(__aarch64__)
    asm volatile("dmb oshst" ::: "memory");
#endif
  }

  /// Behind the store of the flag. On AArch64 a precaution with no promise: what ends a wait for sure is its deadline.
  static void publish_to_device() {
#if defined(__aarch64__)
#if defined(RINGBOLT_FLAG_DSB_ST)
    asm volatile("dsb st" ::: "memory");
#else
    asm volatile("dsb sy" ::: "memory");
#endif
#endif
  }

  /// Flag before payload, where a device wrote both.
  static void order_after_dma() {
#if defined(__aarch64__)
    asm volatile("dmb oshld" ::: "memory");
#elif defined(__x86_64__)
    asm volatile("lfence" ::: "memory");  // for loads that may bypass the order of memory; rdma-core has the same one
#endif
  }

  /// The futex is shared, not private: waiters may be of other processes. It lies in the low half of the number.
  static uint32_t* low_half(uint64_t& word) { return reinterpret_cast<uint32_t*>(&word); }

  static void wake_all(uint64_t& word) {
#if defined(__linux__)
    syscall(SYS_futex, low_half(word), FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0);
#else
    static_cast<void>(word);
#endif
  }

  static void sleep_while(uint64_t& word, uint32_t seen, uint64_t longest_ns) {
#if defined(__linux__)
    const timespec time{static_cast<time_t>(longest_ns / 1'000'000'000), static_cast<long>(longest_ns % 1'000'000'000)};
    syscall(SYS_futex, low_half(word), FUTEX_WAIT, seen, &time, nullptr, 0);
#else
    static_cast<void>(word), static_cast<void>(seen);
    nap(longest_ns);
#endif
  }
};

}  // namespace ringbolt::detail
