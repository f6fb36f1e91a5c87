#include "base/crc_folding.h"

#include <array>

#include "base/crc_block.h"
#include "base/crc_tables.h"

// A message is a polynomial; its CRC is the message times x^32 modulo P. So a block of 128 bits may be replaced by
// anything that is the same modulo P: here by two products of 64 by 32 bits, placed where the next block begins. Four
// blocks go side by side, since a product takes several cycles.
//
// All is reflected: the lowest bit of a block has the highest power. In this order a product of two 64-bit halves comes
// out multiplied by x, which the powers below make up for: they are one less.
namespace ringbolt::base {

#if defined(RINGBOLT_HAS_CRC_BLOCKS)
namespace {

/// x^n modulo P as the upper half of a 64-bit factor: bit 63 is x^0.
constexpr uint64_t power_of_x(uint32_t polynomial, unsigned n) {
  uint32_t value = 0x80000000;
  for (unsigned i = 0; i < n; ++i) {
    value = value >> 1 ^ (polynomial & (0U - (value & 1U)));
  }
  return uint64_t{value} << 32;
}

template <uint32_t P, unsigned n>
constexpr uint64_t kPowerOfX = power_of_x(P, n);

/// P itself, 33 bits: bit 32 is x^0.
template <uint32_t P>
constexpr uint64_t kDivisor = uint64_t{P} << 1 | 1;

/// The quotient of x^64 by P, 33 bits, as kDivisor is written.
constexpr uint64_t quotient_of_x64(uint64_t divisor) {
  uint64_t quotient = 0;
  uint64_t rest = 1;  // 33 bits of the dividend from the top, reflected as all else
  for (unsigned power = 0; power <= 32; ++power) {
    if ((rest & 1) != 0) {
      quotient |= uint64_t{1} << power;
      rest ^= divisor;
    }
    rest >>= 1;
  }
  return quotient;
}
template <uint32_t P>
constexpr uint64_t kQuotient = quotient_of_x64(kDivisor<P>);

/// Factors that move a block by `bits` towards the end.
template <uint32_t P, unsigned bits>
RINGBOLT_FOLDING Block factors() {
  constexpr uint64_t lower = kPowerOfX<P, bits + 64 - 1>;  // for the lower half, whose powers are the higher ones
  constexpr uint64_t upper = kPowerOfX<P, bits - 1>;
  return block_of(upper, lower);
}

/// `block`, moved by the distance of `factor`, on top of `onto`.
RINGBOLT_FOLDING Block fold(Block block, Block factor, Block onto) {
  return exclusive_or(exclusive_or(lower_product(block, factor), upper_product(block, factor)), onto);
}

/// The last block, times x^32, modulo P.
template <uint32_t P>
RINGBOLT_FOLDING uint32_t reduce(Block block) {
  const Block to_96 = block_of(kPowerOfX<P, 32 - 1>, kPowerOfX<P, 96 - 1>);
  const Block of_96 = fold(block, to_96, block_of(0, 0));  // lies in the upper 96 bits
  // The 32 bits of x^64 and above are the upper half of the lower quadword; 64 bits remain, in the upper quadword.
  const Block to_64 = block_of(0, kPowerOfX<P, 64 - 1>);
  const Block of_64 = exclusive_or(of_96, lower_product(of_96, to_64));
  // Barrett: the quotient by P from the upper 32 powers, then the rest.
  const uint64_t value = upper_half(of_64);
  const Block quotient = lower_product(block_of(0, value & 0xffffffff), block_of(0, kQuotient<P>));
  const Block kept = block_of(0, lower_half(quotient) & 0xffffffff);
  const Block product = lower_product(kept, block_of(0, kDivisor<P>));
  return static_cast<uint32_t>((value ^ lower_half(product)) >> 32);
}

#if defined(__x86_64__)
#define RINGBOLT_WIDE __attribute__((target("avx512f,vpclmulqdq,pclmul,sse4.1"))) inline

/// From so many bytes on, and in such steps, four blocks go into a register and four registers side by side.
constexpr ptrdiff_t kWideBytes = 256;

RINGBOLT_WIDE __m512i fold_wide(__m512i blocks, __m512i factor, __m512i onto) {
  const __m512i lower = _mm512_clmulepi64_epi128(blocks, factor, 0x00);
  const __m512i upper = _mm512_clmulepi64_epi128(blocks, factor, 0x11);
  return _mm512_ternarylogic_epi64(lower, upper, onto, 0x96);  // exclusive or of the three
}

RINGBOLT_WIDE __m512i load_wide(const std::byte* at) { return _mm512_loadu_si512(at); }

/// Folds as many bytes as come in steps of kWideBytes, at least one step; moves `at` behind them. Returns their last
/// block.
template <uint32_t P>
__attribute__((target("avx512f,vpclmulqdq,pclmul,sse4.1"))) __m128i fold_wide_steps(uint32_t value,
                                                                                    const std::byte*& at,
                                                                                    const std::byte* end) {
  constexpr __mmask16 kAll = 0xffff;  // GCC 12 warns of its own header where there is no mask
  const __m512i by_512 = _mm512_maskz_broadcast_i32x4(kAll, factors<P, 512>());
  const __m512i by_2048 = _mm512_maskz_broadcast_i32x4(kAll, factors<P, 2048>());
  const __m512i before = _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<int>(value)));
  __m512i first = _mm512_xor_si512(load_wide(at), before);
  __m512i second = load_wide(at + 64);
  __m512i third = load_wide(at + 128);
  __m512i fourth = load_wide(at + 192);
  for (at += kWideBytes; end - at >= kWideBytes; at += kWideBytes) {
    first = fold_wide(first, by_2048, load_wide(at));
    second = fold_wide(second, by_2048, load_wide(at + 64));
    third = fold_wide(third, by_2048, load_wide(at + 128));
    fourth = fold_wide(fourth, by_2048, load_wide(at + 192));
  }
  const __m512i all = fold_wide(fold_wide(fold_wide(first, by_512, second), by_512, third), by_512, fourth);
  // Once a message, so that the way by memory costs nothing that could be measured.
  std::array<std::byte, 64> blocks;
  _mm512_storeu_si512(blocks.data(), all);
  const __m128i by_128 = factors<P, 128>();
  const __m128i front = fold(load(blocks.data()), by_128, load(blocks.data() + 16));
  return fold(fold(front, by_128, load(blocks.data() + 32)), by_128, load(blocks.data() + 48));
}

#define RINGBOLT_DOUBLE __attribute__((target("avx2,vpclmulqdq,pclmul,sse4.1"))) inline

/// The same with registers of two blocks.
constexpr ptrdiff_t kDoubleBytes = 128;

RINGBOLT_DOUBLE __m256i fold_double(__m256i blocks, __m256i factor, __m256i onto) {
  const __m256i lower = _mm256_clmulepi64_epi128(blocks, factor, 0x00);
  const __m256i upper = _mm256_clmulepi64_epi128(blocks, factor, 0x11);
  return _mm256_xor_si256(_mm256_xor_si256(lower, upper), onto);
}

RINGBOLT_DOUBLE __m256i load_double(const std::byte* at) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
}

template <uint32_t P>
__attribute__((target("avx2,vpclmulqdq,pclmul,sse4.1"))) __m128i fold_double_steps(uint32_t value, const std::byte*& at,
                                                                                   const std::byte* end) {
  const __m256i by_256 = _mm256_broadcastsi128_si256(factors<P, 256>());
  const __m256i by_1024 = _mm256_broadcastsi128_si256(factors<P, 1024>());
  const __m256i before = _mm256_zextsi128_si256(_mm_cvtsi32_si128(static_cast<int>(value)));
  __m256i first = _mm256_xor_si256(load_double(at), before);
  __m256i second = load_double(at + 32);
  __m256i third = load_double(at + 64);
  __m256i fourth = load_double(at + 96);
  for (at += kDoubleBytes; end - at >= kDoubleBytes; at += kDoubleBytes) {
    first = fold_double(first, by_1024, load_double(at));
    second = fold_double(second, by_1024, load_double(at + 32));
    third = fold_double(third, by_1024, load_double(at + 64));
    fourth = fold_double(fourth, by_1024, load_double(at + 96));
  }
  const __m256i all = fold_double(fold_double(fold_double(first, by_256, second), by_256, third), by_256, fourth);
  return fold(_mm256_castsi256_si128(all), factors<P, 128>(), _mm256_extracti128_si256(all, 1));
}

#endif

/// The register's state before `bytes` is added to their first block; `at` moves behind what is in the block returned.
RINGBOLT_FOLDING Block begin(uint32_t value, const std::byte*& at) {
  const Block block = exclusive_or(load(at), block_of(0, value));
  at += 16;
  return block;
}

template <uint32_t P>
RINGBOLT_FOLDING_TARGET uint32_t fold(Crc32Folding folding, uint32_t value, std::span<const std::byte> bytes) {
  const std::byte* at = bytes.data();
  const std::byte* const end = at + bytes.size();
  const Block by_128 = factors<P, 128>();
#if defined(__x86_64__)
  Block block;
  if (folding == Crc32Folding::bits_512 && end - at >= kWideBytes) {
    block = fold_wide_steps<P>(value, at, end);
  } else if (folding == Crc32Folding::bits_256 && end - at >= kDoubleBytes) {
    block = fold_double_steps<P>(value, at, end);
  } else {
    block = begin(value, at);
  }
#else
  static_cast<void>(folding);  // there is but one
  Block block = begin(value, at);
#endif
  // Three more blocks to start the other lanes with and one full round: below that one lane is as fast.
  if (end - at >= 3 * 16 + 64) {
    const Block by_512 = factors<P, 512>();
    Block second = load(at);
    Block third = load(at + 16);
    Block fourth = load(at + 32);
    at += 48;
    for (; end - at >= 64; at += 64) {
      block = fold(block, by_512, load(at));
      second = fold(second, by_512, load(at + 16));
      third = fold(third, by_512, load(at + 32));
      fourth = fold(fourth, by_512, load(at + 48));
    }
    block = fold(fold(fold(block, by_128, second), by_128, third), by_128, fourth);
  }
  for (; at != end; at += 16) {
    block = fold(block, by_128, load(at));
  }
  return reduce<P>(block);
}

}  // namespace

Crc32Folding widest_crc32_folding() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("pclmul") == 0 || __builtin_cpu_supports("sse4.1") == 0) {
    return Crc32Folding::none;
  }
  // __builtin_cpu_supports() also asks whether the operating system saves those registers (XCR0).
  if (__builtin_cpu_supports("vpclmulqdq") == 0 || __builtin_cpu_supports("avx2") == 0) {
    return Crc32Folding::bits_128;
  }
  return __builtin_cpu_supports("avx512f") != 0 ? Crc32Folding::bits_512 : Crc32Folding::bits_256;
#else
  static const bool has_products = (getauxval(AT_HWCAP) & HWCAP_PMULL) != 0;
  return has_products ? Crc32Folding::bits_128 : Crc32Folding::none;
#endif
}

uint32_t fold_crc32(Crc32Folding folding, uint32_t value, std::span<const std::byte> bytes) {
  return fold<kCrc32Polynomial>(folding, value, bytes);
}

uint32_t fold_crc32c(Crc32Folding folding, uint32_t value, std::span<const std::byte> bytes) {
  return fold<kCrc32cPolynomial>(folding, value, bytes);
}

#else

Crc32Folding widest_crc32_folding() { return Crc32Folding::none; }
uint32_t fold_crc32(Crc32Folding, uint32_t value, std::span<const std::byte> bytes) {
  return crc_register_by_tables<kCrc32Polynomial>(value, bytes);
}
uint32_t fold_crc32c(Crc32Folding, uint32_t value, std::span<const std::byte> bytes) {
  return crc_register_by_tables<kCrc32cPolynomial>(value, bytes);
}

#endif

}  // namespace ringbolt::base
