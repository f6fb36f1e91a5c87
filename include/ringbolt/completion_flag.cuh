#pragma once

// Completion flags (completion_flag.h) in CUDA kernels. Only aligned loads and stores of 64 bits, so that flags may lie
// wherever host and device both reach: pinned host memory mapped for the device is the usual place. By PTX instructions
// of system scope, which every device since Volta (sm_70) has.
//
// A kernel that waits keeps its multiprocessor: before its launch, load every kernel that its signaller needs, and depend
// on no later launch of the same stream. Where no kernel has to go on by itself, cuStreamWaitValue64 (GEQ) and
// cuStreamWriteValue64 on `seq` need no kernel; they know no deadline, so a thread of the host has to abort() the flag.

#include <ringbolt/completion_flag.h>

namespace ringbolt::device {

/// A kernel's own limits. Whichever is reached first ends the wait.
struct FlagBudget {
  uint64_t ns = 2'000'000'000;  ///< below every watchdog of a display
  uint64_t turns = uint64_t{1} << 40;
};

__device__ inline uint64_t load_acquire(const uint64_t& word) {
  uint64_t value;
  asm volatile("ld.acquire.sys.u64 %0, [%1];" : "=l"(value) : "l"(&word) : "memory");
  return value;
}

__device__ inline void store_release(uint64_t& word, uint64_t value) {
  asm volatile("st.release.sys.u64 [%0], %1;" ::"l"(&word), "l"(value) : "memory");
}

__device__ inline uint64_t now_ns() {
  uint64_t now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  return now;
}

/// Like CompletionFlag::signal(): one thread of one kernel at a time, after a __syncthreads() if others wrote the payload. It
/// can't wake a sleeping thread: make the flag with kFlagSignalledByDevice.
__device__ inline FlagSignal signal(CompletionFlag& flag, uint64_t number) {
  const uint64_t before = load_acquire(flag.seq);
  if ((before & CompletionFlag::kPoison) != 0 || load_acquire(flag.abort_word) != 0) {
    return FlagSignal::aborted;
  }
  if (number <= before || number > CompletionFlag::kLast) {
    return FlagSignal::refused;
  }
  __threadfence_system();
  store_release(flag.seq, number);
  __threadfence_system();
  if (load_acquire(flag.abort_word) != 0) {  // the half of the protocol that abort() has on the host, too
    store_release(flag.seq, CompletionFlag::kPoison | (~number & 0xffff'ffffU));
    return FlagSignal::aborted;
  }
  return FlagSignal::done;
}

/// Waits until `number` was signalled, by one thread; the others meet it at a barrier. When its budget is spent it leaves
/// word in `dev_error` with `rank`, from which waiting hosts abort the flag, and later kernels know (is_usable()).
__device__ inline FlagStatus wait(CompletionFlag& flag, uint64_t number, FlagBudget budget, uint16_t rank = 0) {
  if (number == 0 || number > CompletionFlag::kLast) {
    return FlagStatus::refused;
  }
  const uint64_t begin = now_ns();
  for (uint64_t turn = 0;; ++turn) {
    const uint64_t seq = load_acquire(flag.seq);
    if ((seq & CompletionFlag::kPoison) != 0) {
      const bool is_dead = (load_acquire(flag.abort_word) & 0xffffU) == static_cast<uint64_t>(FlagReason::peer_dead);
      return is_dead ? FlagStatus::peer_error : FlagStatus::aborted;
    }
    if (static_cast<int64_t>(seq - number) >= 0) {
      __threadfence_system();
      return FlagStatus::ready;
    }
    if (turn >= budget.turns || now_ns() - begin >= budget.ns) {
      const uint64_t why = static_cast<uint64_t>(FlagReason::deadline) | uint64_t{rank} << 16U | number << 32U;
      store_release(flag.dev_error, why);
      return FlagStatus::timeout;
    }
  }
}

/// Whether a kernel that was launched behind others is to touch the flag at all.
__device__ inline bool is_usable(const CompletionFlag& flag) {
  return (load_acquire(flag.seq) & CompletionFlag::kPoison) == 0 && load_acquire(flag.dev_error) == 0;
}

}  // namespace ringbolt::device
