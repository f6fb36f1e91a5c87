// Included by one source file for each instruction set, which is compiled with that set's flags. All of it is in an
// unnamed namespace and uses no inline function of the standard library: a copy that was compiled for a newer processor
// must not stand for one that runs on all.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__F16C__)
#include <immintrin.h>
#endif

#include "collective/arithmetic_table.h"

#if defined(__clang__)
#define RINGBOLT_INDEPENDENT  // checks overlaps at run time
#else
#define RINGBOLT_INDEPENDENT _Pragma("GCC ivdep")
#endif

namespace ringbolt::collective {
namespace {

/// A number as it lies in memory: of any alignment, and in anybody's memory.
template <class N>
struct __attribute__((packed, may_alias)) InMemory {
  N number;
};

constexpr size_t kBlock = 1024;  // elements; two blocks of the widest stay in the first cache

template <class To, class From>
To bits(From from) {
  To to;
  static_assert(sizeof(to) == sizeof(from));
  __builtin_memcpy(&to, &from, sizeof(to));
  return to;
}

float float_of_half(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000U) << 16;
  const uint32_t rest = half & 0x7fffU;
  // The exponent is moved to float's bias by a multiplication, which also makes subnormal numbers normal.
  const float scaled = bits<float>(rest << 13) * 0x1p112F;
  const uint32_t value = rest >= 0x7c00U ? (0x7f800000U | ((rest & 0x3ffU) << 13) | (rest > 0x7c00U ? 0x400000U : 0U))
                                         : bits<uint32_t>(scaled);
  return bits<float>(sign | value);
}

uint16_t half_of_float(float value) {
  const uint32_t word = bits<uint32_t>(value);
  const uint32_t sign = (word >> 16) & 0x8000U;
  const uint32_t rest = word & 0x7fffffffU;
  // Below the least normal half, adding 0.5 puts the bits that stay at the end of the mantissa, rounded.
  const uint32_t subnormal = bits<uint32_t>(bits<float>(rest) + 0.5F) - 0x3f000000U;
  const uint32_t normal = (rest + 0xc8000fffU + ((rest >> 13) & 1U)) >> 13;
  const uint32_t nan = 0x7e00U | ((rest >> 13) & 0x3ffU);
  uint32_t half = rest < 0x38800000U ? subnormal : normal;
  half = rest >= 0x47800000U ? 0x7c00U : half;
  half = rest > 0x7f800000U ? nan : half;
  return static_cast<uint16_t>(sign | half);
}

float float_of_bfloat(uint16_t bfloat) { return bits<float>(static_cast<uint32_t>(bfloat) << 16); }

uint16_t bfloat_of_float(float value) {
  const uint32_t word = bits<uint32_t>(value);
  const uint32_t rounded = (word + 0x7fffU + ((word >> 16) & 1U)) >> 16;
  const uint32_t nan = (word >> 16) | 0x40U;
  return static_cast<uint16_t>((word & 0x7fffffffU) > 0x7f800000U ? nan : rounded);
}

// How a type lies in memory (Stored), and what is calculated with (Value).

template <class Number>
struct Plain {
  using Value = Number;
  using Stored = InMemory<Number>;
  static Value load(const Stored* from) { return from->number; }
  static void store(Stored* to, Value value) { to->number = value; }
};

struct Boolean {
  using Value = uint8_t;
  using Stored = InMemory<uint8_t>;
  static Value load(const Stored* from) { return from->number != 0 ? 1 : 0; }
  static void store(Stored* to, Value value) { to->number = value; }
};

struct Half {
  using Value = float;
  using Stored = InMemory<uint16_t>;
  static Value load(const Stored* from) { return float_of_half(from->number); }
  static void store(Stored* to, Value value) { to->number = half_of_float(value); }
};

struct Bfloat {
  using Value = float;
  using Stored = InMemory<uint16_t>;
  static Value load(const Stored* from) { return float_of_bfloat(from->number); }
  static void store(Stored* to, Value value) { to->number = bfloat_of_float(value); }
};

struct ComplexPair {
  float real;
  float imaginary;
};
struct Complex {
  using Value = ComplexPair;
  using Stored = InMemory<ComplexPair>;
  static Value load(const Stored* from) { return from->number; }
  static void store(Stored* to, Value value) { to->number = value; }
};

template <class T>
void load_block(typename T::Value* to, const typename T::Stored* from, size_t count) {
  RINGBOLT_INDEPENDENT
  for (size_t i = 0; i < count; ++i) {
    to[i] = T::load(from + i);
  }
}

template <class T>
void store_block(typename T::Stored* to, const typename T::Value* from, size_t count) {
  RINGBOLT_INDEPENDENT
  for (size_t i = 0; i < count; ++i) {
    T::store(to + i, from[i]);
  }
}

#if defined(__F16C__)
template <>
inline void load_block<Half>(float* to, const InMemory<uint16_t>* from, size_t count) {
  size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i_u*>(from + i));
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(halves));
  }
  for (; i < count; ++i) {
    to[i] = float_of_half(from[i].number);
  }
}

template <>
inline void store_block<Half>(InMemory<uint16_t>* to, const float* from, size_t count) {
  size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m128i halves = _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i_u*>(to + i), halves);
  }
  for (; i < count; ++i) {
    to[i].number = half_of_float(from[i]);
  }
}
#endif

// Operations.

template <class N>
constexpr bool kIsFloat = static_cast<N>(0.5) != static_cast<N>(0);

struct Sum {
  template <class N>
  static N of(N a, N b) {
    if constexpr (kIsFloat<N>) {
      return a + b;
    } else {
      return static_cast<N>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
    }
  }
  static ComplexPair of(ComplexPair a, ComplexPair b) { return {a.real + b.real, a.imaginary + b.imaginary}; }
};

struct Product {
  template <class N>
  static N of(N a, N b) {
    if constexpr (kIsFloat<N>) {
      return a * b;
    } else {
      return static_cast<N>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
    }
  }
  static ComplexPair of(ComplexPair a, ComplexPair b) {
    return {a.real * b.real - a.imaginary * b.imaginary, a.real * b.imaginary + a.imaginary * b.real};
  }
};

template <class N>
N not_a_number() {
  if constexpr (sizeof(N) == 4) {
    return bits<N>(uint32_t{0x7fc00000});
  } else {
    return bits<N>(uint64_t{0x7ff8000000000000});
  }
}

// Of equal numbers only zeros differ: their signs are and-ed for the greater, or-ed for the lesser.
template <bool kGreater>
struct Extreme {
  template <class N>
  static N of(N a, N b) {
    if constexpr (kIsFloat<N>) {
      N equal;
      if constexpr (sizeof(N) == 4) {
        const auto x = bits<uint32_t>(a);
        const auto y = bits<uint32_t>(b);
        equal = bits<N>(kGreater ? x & y : x | y);
      } else {
        const auto x = bits<uint64_t>(a);
        const auto y = bits<uint64_t>(b);
        equal = bits<N>(kGreater ? x & y : x | y);
      }
      const N larger = a > b ? a : b;
      const N smaller = a > b ? b : a;
      const N ordered = a == b ? equal : (kGreater ? larger : smaller);
      return a != a || b != b ? not_a_number<N>() : ordered;
    } else {
      return (kGreater ? a > b : a < b) ? a : b;
    }
  }
};

template <class N>
N divided(N value, uint32_t divisor) {
  if constexpr (kIsFloat<N>) {
    return value / static_cast<N>(divisor);
  } else if constexpr (static_cast<N>(-1) < static_cast<N>(1)) {
    return static_cast<N>(static_cast<int64_t>(value) / static_cast<int64_t>(divisor));
  } else {
    return static_cast<N>(static_cast<uint64_t>(value) / divisor);
  }
}
inline ComplexPair divided(ComplexPair value, uint32_t divisor) {
  const auto by = static_cast<float>(divisor);
  return {value.real / by, value.imaginary / by};
}

/// See Kernel. A block at a time, so that what is reduced stays in the first cache and `out` may be any source.
template <class T, class Op>
void run(std::byte* out, const std::byte* const* sources, size_t n_sources, size_t count, uint32_t divisor) {
  using Value = typename T::Value;
  using Stored = typename T::Stored;
  Value result[kBlock];
  Value more[kBlock];
  for (size_t done = 0; done < count; done += kBlock) {
    const size_t length = count - done < kBlock ? count - done : kBlock;
    const auto from = [&](size_t source) { return reinterpret_cast<const Stored*>(sources[source]) + done; };
    load_block<T>(result, from(0), length);
    for (size_t source = 1; source < n_sources; ++source) {
      load_block<T>(more, from(source), length);
      for (size_t i = 0; i < length; ++i) {
        result[i] = Op::of(result[i], more[i]);
      }
    }
    if (divisor != 0) {
      for (size_t i = 0; i < length; ++i) {
        result[i] = divided(result[i], divisor);
      }
    }
    store_block<T>(reinterpret_cast<Stored*>(out) + done, result, length);
  }
}

/// Two sources of a type that is calculated with as it lies in memory: nothing needs to be kept in between.
template <class T, class Op>
void run_plain(std::byte* out, const std::byte* const* sources, size_t n_sources, size_t count, uint32_t divisor) {
  using Stored = typename T::Stored;
  if (n_sources != 2 || divisor != 0) {
    run<T, Op>(out, sources, n_sources, count, divisor);
    return;
  }
  const auto* a = reinterpret_cast<const Stored*>(sources[0]);
  const auto* b = reinterpret_cast<const Stored*>(sources[1]);
  auto* to = reinterpret_cast<Stored*>(out);
  RINGBOLT_INDEPENDENT
  for (size_t i = 0; i < count; ++i) {
    T::store(to + i, Op::of(T::load(a + i), T::load(b + i)));
  }
}

template <class T>
void fill_plain(Kernel* row) {
  row[static_cast<size_t>(Reduction::sum)] = run_plain<T, Sum>;
  row[static_cast<size_t>(Reduction::prod)] = run_plain<T, Product>;
  row[static_cast<size_t>(Reduction::max)] = run_plain<T, Extreme<true>>;
  row[static_cast<size_t>(Reduction::min)] = run_plain<T, Extreme<false>>;
  row[static_cast<size_t>(Reduction::avg)] = run_plain<T, Sum>;
}

template <class T>
void fill_narrow(Kernel* row) {
  row[static_cast<size_t>(Reduction::sum)] = run<T, Sum>;
  row[static_cast<size_t>(Reduction::prod)] = run<T, Product>;
  row[static_cast<size_t>(Reduction::max)] = run<T, Extreme<true>>;
  row[static_cast<size_t>(Reduction::min)] = run<T, Extreme<false>>;
  row[static_cast<size_t>(Reduction::avg)] = run<T, Sum>;
}

KernelTable make_table() {
  KernelTable table;
  const auto row = [&](Type type) { return table.kernels[static_cast<size_t>(type)]; };
  // Of booleans the sum is "or" and the product "and": those of 0 and 1 are the extremes.
  row(Type::boolean)[static_cast<size_t>(Reduction::sum)] = run_plain<Boolean, Extreme<true>>;
  row(Type::boolean)[static_cast<size_t>(Reduction::max)] = run_plain<Boolean, Extreme<true>>;
  row(Type::boolean)[static_cast<size_t>(Reduction::prod)] = run_plain<Boolean, Extreme<false>>;
  row(Type::boolean)[static_cast<size_t>(Reduction::min)] = run_plain<Boolean, Extreme<false>>;
  fill_plain<Plain<int8_t>>(row(Type::int8));
  fill_plain<Plain<int16_t>>(row(Type::int16));
  fill_plain<Plain<int32_t>>(row(Type::int32));
  fill_plain<Plain<int64_t>>(row(Type::int64));
  fill_plain<Plain<uint8_t>>(row(Type::uint8));
  fill_plain<Plain<uint16_t>>(row(Type::uint16));
  fill_plain<Plain<uint32_t>>(row(Type::uint32));
  fill_plain<Plain<uint64_t>>(row(Type::uint64));
  fill_narrow<Half>(row(Type::float16));
  fill_narrow<Bfloat>(row(Type::bfloat16));
  fill_plain<Plain<float>>(row(Type::float32));
  fill_plain<Plain<double>>(row(Type::float64));
  row(Type::complex64)[static_cast<size_t>(Reduction::sum)] = run_plain<Complex, Sum>;
  row(Type::complex64)[static_cast<size_t>(Reduction::prod)] = run_plain<Complex, Product>;
  row(Type::complex64)[static_cast<size_t>(Reduction::avg)] = run_plain<Complex, Sum>;
  return table;
}

}  // namespace
}  // namespace ringbolt::collective
