#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace ringbolt::base {

/// How wide a register is that can be multiplied without carries.
enum class Crc32Folding { none, bits_128, bits_256, bits_512 };

/// The widest that this processor has.
Crc32Folding widest_crc32_folding();

/// The least that can be folded.
inline constexpr size_t kMinFoldedBytes = 16;

/// The CRC-32 register after `bytes`, of which there are a multiple of 16 and at least 16; without the inversion before
/// and after. The processor has `folding`, which is not `none`. Thread-safe.
/// Source: Gopal et al. 2009, "Fast CRC computation for generic polynomials using PCLMULQDQ".
uint32_t fold_crc32(Crc32Folding folding, uint32_t value, std::span<const std::byte> bytes);
/// Likewise of CRC-32C.
uint32_t fold_crc32c(Crc32Folding folding, uint32_t value, std::span<const std::byte> bytes);

}  // namespace ringbolt::base
