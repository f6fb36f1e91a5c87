#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>
#endif

#include "base/clock.h"

/// The processor's counter of time, which all processes of a host share: a few nanoseconds to read, where the kernel's
/// clock takes twenty.
namespace ringbolt::trace {

/// Whether the counter runs at one speed whatever the processor does (Intel SDM 3B, 18.17.1; of ARM64 it always does).
/// Asks the processor, in tens to thousands of cycles (CPUID leaves a virtual machine): ask once and keep the answer.
inline bool has_counter() {
#if defined(__x86_64__)
  constexpr unsigned kPowerLeaf = 0x80000007;
  constexpr unsigned kInvariant = 1U << 8U;
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  return __get_cpuid(kPowerLeaf, &a, &b, &c, &d) != 0 && (d & kInvariant) != 0;
#elif defined(__aarch64__)
  return true;
#else
  return false;
#endif
}

/// Ticks, whose rate tick_clock.h finds out. Not ordered with loads and stores around it: it may be some nanoseconds
/// off.
inline uint64_t read_counter() {
#if defined(__x86_64__)
  return __rdtsc();
#elif defined(__aarch64__)
  uint64_t now = 0;
  // The virtual count, which the kernel lets programs read; its own clock uses it, too.
  asm volatile("mrs %0, cntvct_el0" : "=r"(now));
  return now;
#else
  return base::now_ns();
#endif
}

}  // namespace ringbolt::trace
