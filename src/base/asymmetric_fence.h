#pragma once

#include <atomic>

/// Ordering a store before a later load costs a full fence on both of two sides that watch each other. Where one side
/// acts millions of times a second and the other seldom, the seldom one can pay for both: membarrier(2) makes every
/// running thread of the processes that registered pass through a fence. Thread-safe.
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
