#pragma once

#include <atomic>

/// Ordering a store before a later load costs a full fence on both of two sides that watch each other. Where one side
/// acts millions of times a second and the other seldom, the seldom one can pay for both: membarrier(2) makes every
/// running thread of the processes that registered pass through a fence. Thread-safe.
///
/// Why that is enough on processors that swap a store with a later load, x86 and ARM64 alike: the kernel interrupts each
/// core that runs such a thread, and its handler is a full fence (smp_mb(), `dmb ish` on ARM64) somewhere in that thread's
/// order of instructions. If the handler comes before the frequent side's load, this load finds what the seldom side stored
/// before its call. If it comes after that load, it comes after the store as well, for the compiler's fence keeps the two
/// in their order: the store is visible when the call returns, and the seldom side finds it. A thread that runs on no core
/// has passed, or will pass, the fence of the kernel's own switch of threads. Nothing but the order of one store before
/// one load is had this way: who passes data along releases and acquires besides. Tried in litmus_test.cpp.
namespace ringbolt::base {

/// Registers this process with the kernel, once; whether heavy_fence() works here.
bool has_asymmetric_fences();

/// The frequent side, between its store and its load. `is_light`: the seldom side does use heavy_fence(); if not, or if
/// this process could not register, this is a full fence.
inline void light_fence(bool is_light) {
  if (is_light) [[likely]] {
    std::atomic_signal_fence(std::memory_order_seq_cst);
  } else {
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }
}

/// The seldom side, between its store and its load: some microseconds. Where the kernel lacks it, a full fence.
void heavy_fence();

}  // namespace ringbolt::base
