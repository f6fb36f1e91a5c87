#include "base/crc_folding.h"

#include "base/crc_tables.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

// A message is a polynomial; its CRC is the message times x^32 modulo P. So a block of 128 bits may be replaced by
// anything that is the same modulo P: here by two products of 64 by 32 bits, placed where the next block begins. Four
// blocks go side by side, since a product takes several cycles.
//
// All is reflected: the lowest bit of a block has the highest power. In this order a product of two 64-bit halves comes
// out multiplied by x, which the powers below make up for: they are one less.
namespace ringbolt::base {

#ifdef __x86_64__
namespace {

/// x^n modulo P as the upper half of a 64-bit factor: bit 63 is x^0.
constexpr uint64_t power_of_x(unsigned n) {
  uint32_t value = 0x80000000;
  for (unsigned i = 0; i < n; ++i) {
    value = value >> 1 ^ (kCrc32Polynomial & (0U - (value & 1U)));
  }
  return uint64_t{value} << 32;
}

/// P itself, 33 bits: bit 32 is x^0.
constexpr uint64_t kDivisor = uint64_t{kCrc32Polynomial} << 1 | 1;

/// The quotient of x^64 by P, 33 bits, as kDivisor is written.
constexpr uint64_t quotient_of_x64() {
  uint64_t quotient = 0;
  uint64_t rest = 1;  // 33 bits of the dividend from the top, reflected as all else
  for (unsigned power = 0; power <= 32; ++power) {
    if ((rest & 1) != 0) {
      quotient |= uint64_t{1} << power;
      rest ^= kDivisor;
    }
    rest >>= 1;
  }
  return quotient;
}
constexpr uint64_t kQuotient = quotient_of_x64();

#define RINGBOLT_FOLDING __attribute__((target("pclmul,sse4.1"))) inline

/// Factors that move a block by `bits` towards the end.
template <unsigned bits>
RINGBOLT_FOLDING __m128i factors() {
  constexpr uint64_t lower = power_of_x(bits + 64 - 1);  // for the lower half, whose powers are the higher ones
  constexpr uint64_t upper = power_of_x(bits - 1);
  return _mm_set_epi64x(static_cast<long long>(upper), static_cast<long long>(lower));
}

/// `block`, moved by the distance of `factor`, on top of `onto`.
RINGBOLT_FOLDING __m128i fold(__m128i block, __m128i factor, __m128i onto) {
  const __m128i lower = _mm_clmulepi64_si128(block, factor, 0x00);
  const __m128i upper = _mm_clmulepi64_si128(block, factor, 0x11);
  return _mm_xor_si128(_mm_xor_si128(lower, upper), onto);
}

RINGBOLT_FOLDING __m128i load(const std::byte* at) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at)); }

/// The last block, times x^32, modulo P.
RINGBOLT_FOLDING uint32_t reduce(__m128i block) {
  const __m128i to_96 =
      _mm_set_epi64x(static_cast<long long>(power_of_x(32 - 1)), static_cast<long long>(power_of_x(96 - 1)));
  const __m128i of_96 = fold(block, to_96, _mm_setzero_si128());  // lies in the upper 96 bits
  // The 32 bits of x^64 and above are the upper half of the lower quadword; 64 bits remain, in the upper quadword.
  const __m128i to_64 = _mm_set_epi64x(0, static_cast<long long>(power_of_x(64 - 1)));
  const __m128i of_64 = _mm_xor_si128(of_96, _mm_clmulepi64_si128(of_96, to_64, 0x00));
  // Barrett: the quotient by P from the upper 32 powers, then the rest.
  const auto value = static_cast<uint64_t>(_mm_extract_epi64(of_64, 1));
  const __m128i divisor = _mm_set_epi64x(static_cast<long long>(kQuotient), static_cast<long long>(kDivisor));
  const __m128i upper_powers = _mm_set_epi64x(0, static_cast<long long>(value & 0xffffffff));
  const __m128i quotient = _mm_clmulepi64_si128(upper_powers, divisor, 0x10);
  const __m128i kept = _mm_and_si128(quotient, _mm_set_epi64x(0, 0xffffffff));
  const __m128i product = _mm_clmulepi64_si128(kept, divisor, 0x00);
  return static_cast<uint32_t>((value ^ static_cast<uint64_t>(_mm_cvtsi128_si64(product))) >> 32);
}

}  // namespace

bool can_fold_crc32() { return __builtin_cpu_supports("pclmul") != 0 && __builtin_cpu_supports("sse4.1") != 0; }

__attribute__((target("pclmul,sse4.1"))) uint32_t fold_crc32(uint32_t value, std::span<const std::byte> bytes) {
  const std::byte* at = bytes.data();
  const std::byte* const end = at + bytes.size();
  const __m128i by_128 = factors<128>();
  __m128i block = _mm_xor_si128(load(at), _mm_cvtsi32_si128(static_cast<int>(value)));
  at += 16;
  if (end - at >= 3 * 16 + 64) {
    const __m128i by_512 = factors<512>();
    __m128i second = load(at);
    __m128i third = load(at + 16);
    __m128i fourth = load(at + 32);
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
  return reduce(block);
}

#else

bool can_fold_crc32() { return false; }
uint32_t fold_crc32(uint32_t value, std::span<const std::byte> bytes) { return crc32_register_by_tables(value, bytes); }

#endif

}  // namespace ringbolt::base
