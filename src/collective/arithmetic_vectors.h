// 16-bit numbers a whole register at a time, from being read to being rounded. Part of arithmetic_kernels.h where that
// is compiled for AVX2 and F16C, for AVX-512, or for NEON; in an unnamed namespace, like all of the kernels.
#pragma once

#if defined(__aarch64__)
#include <arm_neon.h>
#else
#include <immintrin.h>
#endif

#include "collective/arithmetic_numbers.h"

namespace ringbolt::collective {
namespace {

// What the processor has: a register of float32, or of as many 32-bit words.
#if defined(__aarch64__)
using Floats = float32x4_t;
using Words = uint32x4_t;
inline Words load_words(const std::byte* from) {
  return vreinterpretq_u32_u8(vld1q_u8(reinterpret_cast<const uint8_t*>(from)));
}
inline void store_words(std::byte* to, Words words) {
  vst1q_u8(reinterpret_cast<uint8_t*>(to), vreinterpretq_u8_u32(words));
}
inline Words words_of(uint32_t word) { return vdupq_n_u32(word); }
inline Floats as_floats(Words words) { return vreinterpretq_f32_u32(words); }
inline Words as_words(Floats floats) { return vreinterpretq_u32_f32(floats); }
inline Words up_16(Words words) { return vshlq_n_u32(words, 16); }
inline Words down_16(Words words) { return vshrq_n_u32(words, 16); }
inline Words sum_of(Words a, Words b) { return vaddq_u32(a, b); }
inline Words both_of(Words a, Words b) { return vandq_u32(a, b); }
inline Words any_of(Words a, Words b) { return vorrq_u32(a, b); }
inline Words upper_of(Words lower, Words upper) { return vbslq_u32(words_of(0xffff0000U), upper, lower); }
inline Words where_nan(Floats a, Floats b, Words nan, Words number) {
  return vbslq_u32(vandq_u32(vceqq_f32(a, a), vceqq_f32(b, b)), number, nan);
}
inline Words where_equal(Floats a, Floats b, Words equal, Words other) {
  return vbslq_u32(vceqq_f32(a, b), equal, other);
}
inline Floats floats_of(float value) { return vdupq_n_f32(value); }
inline Floats added(Floats a, Floats b) { return vaddq_f32(a, b); }
inline Floats multiplied(Floats a, Floats b) { return vmulq_f32(a, b); }
inline Floats divided_by(Floats a, Floats b) { return vdivq_f32(a, b); }
inline Floats greater(Floats a, Floats b) { return vmaxq_f32(a, b); }
inline Floats lesser(Floats a, Floats b) { return vminq_f32(a, b); }
// Conversions of the base instruction set: rounded to nearest, ties to even, as the control register says from the start.
inline Floats load_halves(const std::byte* from) {
  return vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8(reinterpret_cast<const uint8_t*>(from))));
}
inline void store_halves(std::byte* to, Floats numbers) {
  vst1_u8(reinterpret_cast<uint8_t*>(to), vreinterpret_u8_f16(vcvt_f16_f32(numbers)));
}
#elif defined(__AVX512BW__)
using Floats = __m512;
using Words = __m512i;
inline Words load_words(const std::byte* from) { return _mm512_loadu_si512(from); }
inline void store_words(std::byte* to, Words words) { _mm512_storeu_si512(to, words); }
inline Words words_of(uint32_t word) { return _mm512_set1_epi32(static_cast<int>(word)); }
inline Floats as_floats(Words words) { return _mm512_castsi512_ps(words); }
inline Words as_words(Floats floats) { return _mm512_castps_si512(floats); }
inline Words up_16(Words words) { return _mm512_slli_epi32(words, 16); }
inline Words down_16(Words words) { return _mm512_srli_epi32(words, 16); }
inline Words sum_of(Words a, Words b) { return _mm512_add_epi32(a, b); }
inline Words both_of(Words a, Words b) { return _mm512_and_si512(a, b); }
inline Words any_of(Words a, Words b) { return _mm512_or_si512(a, b); }
inline Words upper_of(Words lower, Words upper) { return _mm512_mask_blend_epi16(0xaaaaaaaaU, lower, upper); }
inline Words where_nan(Floats a, Floats b, Words nan, Words number) {
  return _mm512_mask_blend_epi32(_mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q), number, nan);
}
inline Words where_equal(Floats a, Floats b, Words equal, Words other) {
  return _mm512_mask_blend_epi32(_mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ), other, equal);
}
inline Floats floats_of(float value) { return _mm512_set1_ps(value); }
inline Floats added(Floats a, Floats b) { return _mm512_add_ps(a, b); }
inline Floats multiplied(Floats a, Floats b) { return _mm512_mul_ps(a, b); }
inline Floats divided_by(Floats a, Floats b) { return _mm512_div_ps(a, b); }
inline Floats greater(Floats a, Floats b) { return _mm512_max_ps(a, b); }
inline Floats lesser(Floats a, Floats b) { return _mm512_min_ps(a, b); }
inline Floats load_halves(const std::byte* from) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i_u*>(from)));
}
inline void store_halves(std::byte* to, Floats numbers) {
  _mm256_storeu_si256(reinterpret_cast<__m256i_u*>(to), _mm512_cvtps_ph(numbers, _MM_FROUND_TO_NEAREST_INT));
}
#else
using Floats = __m256;
using Words = __m256i;
inline Words load_words(const std::byte* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i_u*>(from));
}
inline void store_words(std::byte* to, Words words) {
  _mm256_storeu_si256(reinterpret_cast<__m256i_u*>(to), words);
}
inline Words words_of(uint32_t word) { return _mm256_set1_epi32(static_cast<int>(word)); }
inline Floats as_floats(Words words) { return _mm256_castsi256_ps(words); }
inline Words as_words(Floats floats) { return _mm256_castps_si256(floats); }
inline Words up_16(Words words) { return _mm256_slli_epi32(words, 16); }
inline Words down_16(Words words) { return _mm256_srli_epi32(words, 16); }
inline Words sum_of(Words a, Words b) { return _mm256_add_epi32(a, b); }
inline Words both_of(Words a, Words b) { return _mm256_and_si256(a, b); }
inline Words any_of(Words a, Words b) { return _mm256_or_si256(a, b); }
inline Words upper_of(Words lower, Words upper) { return _mm256_blend_epi16(lower, upper, 0xaa); }
inline Words where_nan(Floats a, Floats b, Words nan, Words number) {
  return _mm256_blendv_epi8(number, nan, as_words(_mm256_cmp_ps(a, b, _CMP_UNORD_Q)));
}
inline Words where_equal(Floats a, Floats b, Words equal, Words other) {
  return _mm256_blendv_epi8(other, equal, as_words(_mm256_cmp_ps(a, b, _CMP_EQ_OQ)));
}
inline Floats floats_of(float value) { return _mm256_set1_ps(value); }
inline Floats added(Floats a, Floats b) { return _mm256_add_ps(a, b); }
inline Floats multiplied(Floats a, Floats b) { return _mm256_mul_ps(a, b); }
inline Floats divided_by(Floats a, Floats b) { return _mm256_div_ps(a, b); }
inline Floats greater(Floats a, Floats b) { return _mm256_max_ps(a, b); }
inline Floats lesser(Floats a, Floats b) { return _mm256_min_ps(a, b); }
inline Floats load_halves(const std::byte* from) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i_u*>(from)));
}
inline void store_halves(std::byte* to, Floats numbers) {
  _mm_storeu_si128(reinterpret_cast<__m128i_u*>(to), _mm256_cvtps_ph(numbers, _MM_FROUND_TO_NEAREST_INT));
}
#endif

constexpr size_t kWordsBytes = sizeof(Words);
constexpr size_t kNarrowOfWords = kWordsBytes / sizeof(uint16_t);

/// As many 16-bit numbers as a register holds, as float32; which of them lies where is up to the type.
struct Widened {
  Floats first;
  Floats second;
};

template <class T>
struct Vectors;

/// Those of even and those of odd places, since a 32-bit word holds one of each, at its lower and at its upper end.
template <>
struct Vectors<Bfloat> {
  static Widened load(const std::byte* from) {
    const Words words = load_words(from);
    return {as_floats(up_16(words)), as_floats(both_of(words, words_of(0xffff0000U)))};
  }
  static void store(std::byte* to, const Widened& numbers) {
    store_words(to, upper_of(down_16(rounded(numbers.first)), rounded(numbers.second)));
  }

 private:
  /// As bfloat_of_float(), in the upper half of each word.
  static Words rounded(Floats numbers) {
    const Words words = as_words(numbers);
    const Words odd = both_of(down_16(words), words_of(1));
    const Words nearest = sum_of(sum_of(words, words_of(0x7fff)), odd);
    return where_nan(numbers, numbers, any_of(words, words_of(0x400000)), nearest);
  }
};

template <>
struct Vectors<Half> {
  static Widened load(const std::byte* from) { return {load_halves(from), load_halves(from + kWordsBytes / 2)}; }
  static void store(std::byte* to, const Widened& numbers) {
    store_halves(to, numbers.first);
    store_halves(to + kWordsBytes / 2, numbers.second);
  }
};

// What Sum, Product and Extreme do, of a whole register.

inline Floats all_of(Sum, Floats a, Floats b) { return added(a, b); }
inline Floats all_of(Product, Floats a, Floats b) { return multiplied(a, b); }
template <bool kGreater>
inline Floats all_of(Extreme<kGreater>, Floats a, Floats b) {
  const Words equal = kGreater ? both_of(as_words(a), as_words(b)) : any_of(as_words(a), as_words(b));
  const Words ordered = as_words(kGreater ? greater(a, b) : lesser(a, b));
  return as_floats(where_nan(a, b, words_of(0x7fc00000U), where_equal(a, b, equal, ordered)));
}

/// Two sources that are not divided have a loop without branches of their own.
template <class T, class Op, bool kIsPair>
size_t run_registers(std::byte* out, const std::byte* const* sources, size_t n_sources, size_t count,
                     uint32_t divisor) {
  const Floats by = floats_of(static_cast<float>(divisor));
  const size_t last = kIsPair ? 2 : n_sources;
  const std::byte* const first = sources[0];
  const std::byte* const second = kIsPair ? sources[1] : first;
  size_t done = 0;
  for (; done + kNarrowOfWords <= count; done += kNarrowOfWords) {
    Widened result = Vectors<T>::load(first + 2 * done);
    for (size_t source = 1; source < last; ++source) {
      const Widened more = Vectors<T>::load((kIsPair ? second : sources[source]) + 2 * done);
      result = {all_of(Op(), result.first, more.first), all_of(Op(), result.second, more.second)};
    }
    if (!kIsPair && divisor != 0) {
      result = {divided_by(result.first, by), divided_by(result.second, by)};
    }
    Vectors<T>::store(out + 2 * done, result);
  }
  return done;
}

/// The first elements of what a Kernel has to do, as many as fill whole registers: how many that are. `out` may be any
/// source, since a register's elements of all sources are read before they are written.
template <class T, class Op>
size_t run_vectors(std::byte* out, const std::byte* const* sources, size_t n_sources, size_t count, uint32_t divisor) {
  return n_sources == 2 && divisor == 0 ? run_registers<T, Op, true>(out, sources, n_sources, count, divisor)
                                        : run_registers<T, Op, false>(out, sources, n_sources, count, divisor);
}

}  // namespace
}  // namespace ringbolt::collective
