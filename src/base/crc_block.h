#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

/// 128 bits in a register that can be multiplied without carries: x86's PCLMULQDQ, ARM64's PMULL. For crc_folding.cpp
/// alone: in an unnamed namespace, since it is code for processors that have them.
#if defined(__x86_64__) || defined(__aarch64__)
#define RINGBOLT_HAS_CRC_BLOCKS 1

namespace ringbolt::base {
namespace {

#if defined(__x86_64__)

#define RINGBOLT_FOLDING_TARGET __attribute__((target("pclmul,sse4.1")))
#define RINGBOLT_FOLDING RINGBOLT_FOLDING_TARGET inline

// Little-endian: byte 0 of what is loaded is the lowest of the lower half.
using Block = __m128i;
RINGBOLT_FOLDING Block block_of(uint64_t upper, uint64_t lower) {
  return _mm_set_epi64x(static_cast<long long>(upper), static_cast<long long>(lower));
}
RINGBOLT_FOLDING uint64_t lower_half(Block block) { return static_cast<uint64_t>(_mm_cvtsi128_si64(block)); }
RINGBOLT_FOLDING uint64_t upper_half(Block block) { return static_cast<uint64_t>(_mm_extract_epi64(block, 1)); }
// Unaligned; 16 bytes that must be there.
RINGBOLT_FOLDING Block load(const std::byte* at) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at)); }
RINGBOLT_FOLDING Block exclusive_or(Block a, Block b) { return _mm_xor_si128(a, b); }
// Of 64 by 64 bits without carries: 127 bits. The halves of equal place are multiplied.
RINGBOLT_FOLDING Block lower_product(Block a, Block b) { return _mm_clmulepi64_si128(a, b, 0x00); }
RINGBOLT_FOLDING Block upper_product(Block a, Block b) { return _mm_clmulepi64_si128(a, b, 0x11); }

#else

// ARM64 needs no attribute: the extension is named in the assembler's text.
#define RINGBOLT_FOLDING_TARGET
#define RINGBOLT_FOLDING inline

using Block = uint64x2_t;
RINGBOLT_FOLDING Block block_of(uint64_t upper, uint64_t lower) {
  return vcombine_u64(vcreate_u64(lower), vcreate_u64(upper));
}
RINGBOLT_FOLDING uint64_t lower_half(Block block) { return vgetq_lane_u64(block, 0); }
RINGBOLT_FOLDING uint64_t upper_half(Block block) { return vgetq_lane_u64(block, 1); }
RINGBOLT_FOLDING Block load(const std::byte* at) {
  return vreinterpretq_u64_u8(vld1q_u8(reinterpret_cast<const uint8_t*>(at)));
}
RINGBOLT_FOLDING Block exclusive_or(Block a, Block b) { return veorq_u64(a, b); }
// By the assembler's name, as in crc_instruction.h.
RINGBOLT_FOLDING Block lower_product(Block a, Block b) {
  Block product;
  asm(".arch_extension aes\n\tpmull %0.1q, %1.1d, %2.1d" : "=w"(product) : "w"(a), "w"(b));
  return product;
}
RINGBOLT_FOLDING Block upper_product(Block a, Block b) {
  Block product;
  asm(".arch_extension aes\n\tpmull2 %0.1q, %1.2d, %2.2d" : "=w"(product) : "w"(a), "w"(b));
  return product;
}

#endif

}  // namespace
}  // namespace ringbolt::base

#endif
