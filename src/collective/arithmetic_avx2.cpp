// Compiled for AVX2 and F16C; empty but for x86-64.
#if defined(__x86_64__)
#include "collective/arithmetic_kernels.h"

namespace ringbolt::collective {

const KernelTable& avx2_kernels() {
  // Behind the flags of this file: called only where find_kernels() has found the processor able to.
  static const KernelTable table = make_table();
  return table;
}

}  // namespace ringbolt::collective
#endif
