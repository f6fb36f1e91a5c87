// Compiled for AVX-512 F, BW, DQ and VL; empty but for x86-64.
#if defined(__x86_64__)
#include "collective/arithmetic_kernels.h"

namespace ringbolt::collective {
namespace {

KernelTable make_wide_table() {
  KernelTable table = make_table();
  // Of two NaNs a product has the payload of the first operand, and compilers choose another first one here.
  constexpr auto kComplex = static_cast<size_t>(Type::complex64);
  for (uint32_t reduction = 0; reduction < kReductions; ++reduction) {
    table.kernels[kComplex][reduction] = avx2_kernels().kernels[kComplex][reduction];
  }
  return table;
}

}  // namespace

const KernelTable& avx512_kernels() {
  static const KernelTable table = make_wide_table();
  return table;
}

}  // namespace ringbolt::collective
#endif
