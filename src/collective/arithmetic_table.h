#pragma once

#include <cstddef>
#include <cstdint>

#include "collective/element.h"

namespace ringbolt::collective {

/// `count` elements of `n_sources` sources; see reduce().
using Kernel = void (*)(std::byte* out, const std::byte* const* sources, size_t n_sources, size_t count,
                        uint32_t divisor);

/// The kernels of one instruction set; null where can_reduce() says no.
/// Immutable once it is made.
struct KernelTable {
  Kernel kernels[kTypes][kReductions] = {};
};

const KernelTable& baseline_kernels();
/// Only for processors with AVX2 and F16C.
const KernelTable& avx2_kernels();
/// Only for processors with AVX-512 F, BW, DQ and VL.
const KernelTable& avx512_kernels();
/// Only for ARM64, whose processors all have NEON.
const KernelTable& neon_kernels();

}  // namespace ringbolt::collective
