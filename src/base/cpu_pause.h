#pragma once

namespace ringbolt::base {

/// One turn of a loop that waits for another core: some ten nanoseconds in which this one asks for nothing. Thread-safe.
inline void cpu_pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();  // the built-in: the header of its intrinsic takes longer to parse than most files that need it
#elif defined(__aarch64__)
  // Not `yield`, which most ARM64 cores take for a no-operation: the loop would then load the line that it waits for as
  // fast as it can. An `isb` empties the pipeline, and so takes about as long as x86's pause.
  asm volatile("isb");
#else
#error "cpu_pause: no instruction known for this processor"
#endif
}

}  // namespace ringbolt::base
