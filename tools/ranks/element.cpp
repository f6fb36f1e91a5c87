// Compiled without contraction of a * b + c: what is expected must be rounded as IEEE 754 says, step by step.
#include "ranks/element.h"

#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <type_traits>

#include "base/assert.h"
#include "collective/element.h"

namespace ringbolt::tools::ranks {
namespace {

template <class T>
T read_at(std::span<const std::byte> from, size_t index) {
  T value;
  std::memcpy(&value, from.data() + index * sizeof(T), sizeof(T));
  return value;
}

template <class T>
void write_at(std::span<std::byte> to, size_t index, T value) {
  std::memcpy(to.data() + index * sizeof(T), &value, sizeof(T));
}

// 16-bit numbers, by arithmetic rather than by bits: significand times a power of two.

float number_of(uint16_t bits, int significand_bits, int bias) {
  const int exponent_bits = 15 - significand_bits;
  const int exponent = (bits >> significand_bits) & ((1 << exponent_bits) - 1);
  const int significand = bits & ((1 << significand_bits) - 1);
  const float sign = (bits & 0x8000U) != 0 ? -1.0F : 1.0F;
  if (exponent == (1 << exponent_bits) - 1) {
    return sign * (significand == 0 ? std::numeric_limits<float>::infinity() : std::numeric_limits<float>::quiet_NaN());
  }
  const int whole = exponent == 0 ? significand : significand + (1 << significand_bits);
  return sign * std::ldexp(static_cast<float>(whole), std::max(exponent, 1) - bias - significand_bits);
}

/// Rounded to nearest, ties to even, as nearbyint() does by default.
uint16_t nearest(float number, int significand_bits, int bias) {
  const int largest = 1 << (15 - significand_bits);  // the exponent field of infinity, plus one
  const uint32_t sign = std::signbit(number) ? 0x8000U : 0U;
  const uint32_t infinity = static_cast<uint32_t>(largest - 1) << significand_bits;
  if (number == 0 || std::isnan(number)) {
    return static_cast<uint16_t>(number == 0 ? sign : infinity + 1);
  }
  if (std::isinf(number)) {
    return static_cast<uint16_t>(sign | infinity);
  }
  const int exponent = std::max(std::ilogb(number), 1 - bias);
  const double whole = std::nearbyint(std::ldexp(std::fabs(double{number}), significand_bits - exponent));
  // A whole number of 2^significand_bits and above has its leading bit in the exponent's field.
  const auto bits = (static_cast<uint32_t>(exponent + bias - 1) << significand_bits) + static_cast<uint32_t>(whole);
  return static_cast<uint16_t>(sign | std::min(bits, infinity));
}

struct Half {
  uint16_t bits;
  static constexpr int kSignificandBits = 10;
  static constexpr int kBias = 15;
};
struct Bfloat {
  uint16_t bits;
  static constexpr int kSignificandBits = 7;
  static constexpr int kBias = 127;
};
struct Boolean {
  uint8_t bits;
};

template <class T>
constexpr bool kIsShort = std::is_same_v<T, Half> || std::is_same_v<T, Bfloat>;
using Complex = std::complex<float>;

// What is calculated with.
template <class T>
auto value_of(T stored) {
  if constexpr (kIsShort<T>) {
    return number_of(stored.bits, T::kSignificandBits, T::kBias);
  } else if constexpr (std::is_same_v<T, Boolean>) {
    return stored.bits != 0;
  } else {
    return stored;
  }
}

template <class T, class V>
T stored_of(V value) {
  if constexpr (kIsShort<T>) {
    return T{nearest(value, T::kSignificandBits, T::kBias)};
  } else if constexpr (std::is_same_v<T, Boolean>) {
    return Boolean{static_cast<uint8_t>(value ? 1 : 0)};
  } else {
    return value;
  }
}

template <class V>
V sum_of(V a, V b) {
  if constexpr (std::is_same_v<V, bool>) {
    return a || b;
  } else if constexpr (std::is_integral_v<V>) {
    return static_cast<V>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  } else {
    return a + b;
  }
}

template <class V>
V product_of(V a, V b) {
  if constexpr (std::is_same_v<V, bool>) {
    return a && b;
  } else if constexpr (std::is_integral_v<V>) {
    return static_cast<V>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  } else if constexpr (std::is_same_v<V, Complex>) {
    return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
  } else {
    return a * b;
  }
}

template <class V>
V combined(Reduction reduction, V a, V b) {
  if (reduction == Reduction::prod) {
    return product_of(a, b);
  }
  if constexpr (!std::is_same_v<V, Complex>) {
    if (reduction == Reduction::max) {
      return a < b ? b : a;
    }
    if (reduction == Reduction::min) {
      return b < a ? b : a;
    }
  }
  return sum_of(a, b);
}

template <class V>
V average_of(V sum, size_t n) {
  if constexpr (std::is_same_v<V, Complex>) {
    return {sum.real() / static_cast<float>(n), sum.imag() / static_cast<float>(n)};
  } else if constexpr (std::is_same_v<V, bool>) {
    return sum;
  } else if constexpr (std::is_integral_v<V> && std::is_signed_v<V>) {
    return static_cast<V>(int64_t{sum} / static_cast<int64_t>(n));
  } else if constexpr (std::is_integral_v<V>) {
    return static_cast<V>(uint64_t{sum} / n);  // of 8 bits, 256 ranks would be none
  } else {
    return static_cast<V>(sum / static_cast<V>(n));
  }
}

template <class T>
void reduce_typed(Reduction reduction, const std::vector<std::span<const std::byte>>& inputs,
                  std::span<std::byte> out) {
  for (size_t i = 0; i < out.size() / sizeof(T); ++i) {
    auto value = value_of(read_at<T>(inputs[0], i));
    for (size_t rank = 1; rank < inputs.size(); ++rank) {
      value = combined(reduction, value, value_of(read_at<T>(inputs[rank], i)));
    }
    if (reduction == Reduction::avg) {
      value = average_of(value, inputs.size());
    }
    write_at(out, i, stored_of<T>(value));
  }
}

// Data.

/// A floating-point number of any sign and significand; of moderate size, so that 256 of them neither overflow nor all
/// but one are lost in rounding. `bits`: 1 of sign, then of exponent, then of significand.
template <class Bits>
Bits rounding_number(uint64_t random, int significand_bits, int bias, bool is_factor) {
  const int exponent =
      is_factor ? bias - 1 + static_cast<int>((random >> 56U) & 1U) : bias - 4 + static_cast<int>((random >> 56U) & 7U);
  const Bits sign = static_cast<Bits>(static_cast<Bits>(random >> 63U) << (8 * sizeof(Bits) - 1));
  const Bits significand = static_cast<Bits>(random & ((uint64_t{1} << significand_bits) - 1));
  return static_cast<Bits>(sign | static_cast<Bits>(static_cast<Bits>(exponent) << significand_bits) | significand);
}

/// A whole number within +-`most`.
int64_t small_number(uint64_t random, int64_t most) {
  return static_cast<int64_t>((random >> 20U) % static_cast<uint64_t>(2 * most + 1)) - most;
}

template <class T>
T element_of(uint64_t random, const Data& data) {
  const bool is_factor = data.reduction == Reduction::prod;
  if constexpr (std::is_same_v<T, Boolean>) {
    // What is true need not be 1.
    return Boolean{static_cast<uint8_t>((random & 1U) != 0 ? (random >> 8U) | 1U : 0U)};
  } else if constexpr (kIsShort<T>) {
    if (data.is_exact) {
      // All sums of 256 of them are below 2^8, or 2^11, where every whole number has its own bits.
      const float number = is_factor ? ((random & 1U) != 0 ? 1.0F : -1.0F)
                                     : static_cast<float>(small_number(random, std::is_same_v<T, Half> ? 7 : 1));
      return T{nearest(number, T::kSignificandBits, T::kBias)};
    }
    return T{rounding_number<uint16_t>(random, T::kSignificandBits, T::kBias, is_factor)};
  } else if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
    using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
    if (data.is_exact) {
      return static_cast<T>(is_factor ? ((random & 1U) != 0 ? 1 : -1) : small_number(random, 32767));
    }
    const auto bits = sizeof(T) == 4 ? rounding_number<Bits>(random, 23, 127, is_factor)
                                     : rounding_number<Bits>(random, 52, 1023, is_factor);
    T number;
    std::memcpy(&number, &bits, sizeof(T));
    return number;
  } else if constexpr (std::is_same_v<T, Complex>) {
    return {element_of<float>(random, data), element_of<float>(mixed(random), data)};
  } else {
    return static_cast<T>(random >> 13U);
  }
}

template <class T>
void generate_typed(const Data& data, uint32_t rank, uint64_t first, std::span<std::byte> to) {
  const uint64_t base = mixed(data.seed + 1000003 * uint64_t{rank});
  for (size_t i = 0; i < to.size() / sizeof(T); ++i) {
    write_at(to, i, element_of<T>(mixed(base + first + i), data));
  }
}

/// Calls `use` with an element of that type.
template <class Use>
void with_type(Type type, const Use& use) {
  switch (type) {
    case Type::boolean:
      return use(Boolean{});
    case Type::int8:
      return use(int8_t{});
    case Type::int16:
      return use(int16_t{});
    case Type::int32:
      return use(int32_t{});
    case Type::int64:
      return use(int64_t{});
    case Type::uint8:
      return use(uint8_t{});
    case Type::uint16:
      return use(uint16_t{});
    case Type::uint32:
      return use(uint32_t{});
    case Type::uint64:
      return use(uint64_t{});
    case Type::float16:
      return use(Half{});
    case Type::bfloat16:
      return use(Bfloat{});
    case Type::float32:
      return use(float{});
    case Type::float64:
      return use(double{});
    case Type::complex64:
      return use(Complex{});
  }
}

}  // namespace

size_t bytes_of(Type type) { return collective::bytes_of(static_cast<collective::Type>(type)); }

bool has_exact_data(Type type, Reduction reduction) { return type != Type::complex64 || reduction != Reduction::prod; }

void generate(const Data& data, uint32_t rank, uint64_t first, std::span<std::byte> to) {
  with_type(data.type, [&](auto one) { generate_typed<decltype(one)>(data, rank, first, to); });
}

void reduce_serially(Type type, Reduction reduction, const std::vector<std::span<const std::byte>>& inputs,
                     std::span<std::byte> out) {
  RINGBOLT_ASSERT(!inputs.empty());
  with_type(type, [&](auto one) { reduce_typed<decltype(one)>(reduction, inputs, out); });
}

}  // namespace ringbolt::tools::ranks
