// Empty but for ARM64.
#if defined(RINGBOLT_NEON_KERNELS)
#include "collective/arithmetic_kernels.h"

namespace ringbolt::collective {

const KernelTable& neon_kernels() {
  static const KernelTable table = make_table();
  return table;
}

}  // namespace ringbolt::collective
#endif
