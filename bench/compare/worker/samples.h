#pragma once

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace ringbolt::bench {

/// The processor's time stamp: the same clock that ucx_perftest reads, about 10 ns a call. On ARM64 the virtual count,
/// which ticks each nanosecond on newer processors and every 10 to 40 ns on older ones.
inline uint64_t now_ticks() {
#if defined(__x86_64__)
  return __rdtsc();
#elif defined(__aarch64__)
  uint64_t ticks = 0;
  asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
#else
#error "now_ticks: no clock known for this processor"
#endif
}

/// The same, once everything before it is done: without the fence the processor reads the clock while the operation's
/// last loads are still on their way.
inline uint64_t settled_ticks() {
#if defined(__x86_64__)
  _mm_lfence();
#else
  asm volatile("dsb ish\n\tisb" ::: "memory");
#endif
  return now_ticks();
}

/// Nanoseconds per tick, measured once against CLOCK_MONOTONIC (takes 20 ms). Thread-safe.
double ns_per_tick();

/// Durations of the operations of one block. All memory is there before the block starts. Not thread-safe.
class Samples {
 public:
  /// Largest number of samples of a block.
  static constexpr uint64_t kMax = 1U << 20U;

  Samples();
  /// Starts a block. `iterations` is at most kMax.
  void begin(uint64_t iterations);
  /// What took longer than 32 bits of ticks, more than a second, counts as that long.
  void add(uint64_t ticks) { ticks_[count_++] = static_cast<uint32_t>(std::min<uint64_t>(ticks, UINT32_MAX)); }

  /// Ends a block of latencies: `ok p50_ns= p99_ns= max_ns= mean_ns= n= seconds= switches=`, each sample divided by
  /// `trips` (2 makes half of a round trip).
  std::string latency_report(double trips);

  /// Ends a block of `count` messages of a stream: `ok rate= n= seconds= switches=`, messages per second.
  std::string rate_report(uint64_t count);

 private:
  std::string tail();

  std::vector<uint32_t> ticks_;
  uint64_t count_ = 0;
  uint64_t start_ticks_ = 0;
  uint64_t end_ticks_ = 0;
  long start_switches_ = 0;
};

}  // namespace ringbolt::bench
