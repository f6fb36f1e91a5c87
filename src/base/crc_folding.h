#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace ringbolt::base {

/// Whether this processor can fold: carry-less multiplication of 64-bit numbers.
bool can_fold_crc32();

/// The least that can be folded.
inline constexpr size_t kMinFoldedBytes = 16;

/// The CRC-32 register after `bytes`, of which there are a multiple of 16 and at least 16; without the inversion before
/// and after. Precondition: can_fold_crc32(). Thread-safe.
/// Source: Gopal et al. 2009, "Fast CRC computation for generic polynomials using PCLMULQDQ".
uint32_t fold_crc32(uint32_t value, std::span<const std::byte> bytes);

}  // namespace ringbolt::base
