#pragma once

#include <time.h>

#include <cstdint>

namespace ringbolt::base {

/// Monotonic time in nanoseconds; about 20 ns a call (vDSO). Thread-safe.
inline uint64_t now_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000U + static_cast<uint64_t>(t.tv_nsec);
}

/// The same, as it was at the kernel's last tick: up to 10 ms ago, and a fraction of the cost. For what is only told as
/// an age. Thread-safe.
inline uint64_t coarse_now_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000U + static_cast<uint64_t>(t.tv_nsec);
}

}  // namespace ringbolt::base
