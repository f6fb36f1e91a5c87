// What kernels calculate with: numbers as they lie in memory, and the operations. Part of arithmetic_kernels.h.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ringbolt::collective {
namespace {

/// A number as it lies in memory: of any alignment, and in anybody's memory.
/// Only the compiler's own loads and stores: on x86-64 and ARM64 these take any address.
template <class N>
struct __attribute__((packed, may_alias)) InMemory {
  N number;
};

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

/// Rounded to nearest, ties to even (IEEE 754-2019, 4.3.1); too large ones become infinite, NaNs quiet with what fits
/// of their payload.
uint16_t half_of_float(float value) {
  const uint32_t word = bits<uint32_t>(value);
  const uint32_t sign = (word >> 16) & 0x8000U;
  const uint32_t rest = word & 0x7fffffffU;
  // Below the least normal half, adding 0.5 puts the bits that stay at the end of the mantissa, rounded.
  const uint32_t subnormal = bits<uint32_t>(bits<float>(rest) + 0.5F) - 0x3f000000U;
  // The exponent's bias goes from 127 to 15, and 0xfff and the lowest bit that stays round; the sum wraps on purpose.
  const uint32_t normal = (rest + 0xc8000fffU + ((rest >> 13) & 1U)) >> 13;
  const uint32_t nan = 0x7e00U | ((rest >> 13) & 0x3ffU);
  uint32_t half = rest < 0x38800000U ? subnormal : normal;
  half = rest >= 0x47800000U ? 0x7c00U : half;
  half = rest > 0x7f800000U ? nan : half;
  return static_cast<uint16_t>(sign | half);
}

float float_of_bfloat(uint16_t bfloat) { return bits<float>(static_cast<uint32_t>(bfloat) << 16); }

/// The upper half of a float32, rounded likewise.
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

// Operations.

// Without <type_traits>, as all here (arithmetic_kernels.h).
template <class N>
constexpr bool kIsFloat = static_cast<N>(0.5) != static_cast<N>(0);

struct Sum {
  template <class N>
  static N of(N a, N b) {
    if constexpr (kIsFloat<N>) {
      return a + b;
    } else {
      // Modulo 2^bits, as the API promises: signed overflow would be undefined.
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
    // Of 64 bits, so that no pair of values overflows: `divisor` is positive.
    return static_cast<N>(static_cast<int64_t>(value) / static_cast<int64_t>(divisor));
  } else {
    return static_cast<N>(static_cast<uint64_t>(value) / divisor);
  }
}
inline ComplexPair divided(ComplexPair value, uint32_t divisor) {
  const auto by = static_cast<float>(divisor);
  return {value.real / by, value.imaginary / by};
}

}  // namespace
}  // namespace ringbolt::collective
