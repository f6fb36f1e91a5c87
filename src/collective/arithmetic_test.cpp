#include "collective/arithmetic.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

namespace ringbolt::collective {
namespace {

/// Two or more sources of one type, and what reduce() makes of them.
template <class N>
std::vector<N> reduced(Type type, Reduction reduction, const std::vector<std::vector<N>>& sources,
                       uint32_t divisor = 0) {
  std::vector<const std::byte*> from;
  for (const auto& source : sources) {
    from.push_back(reinterpret_cast<const std::byte*>(source.data()));
  }
  std::vector<N> out(sources[0].size());
  reduce(type, reduction, reinterpret_cast<std::byte*>(out.data()), from, out.size() * sizeof(N), divisor);
  return out;
}

// The definition of the formats, by arithmetic alone.
double value_of_half(uint16_t half) {
  const int exponent = (half >> 10) & 31;
  const double mantissa = half & 1023;
  const double magnitude = exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return (half & 0x8000) != 0 ? -magnitude : magnitude;
}

bool is_nan_half(uint16_t half) { return (half & 0x7fff) > 0x7c00; }

TEST(Arithmetic, adds_up_in_order) {
  // In any other order the result is another: 1e8 swallows the ones one by one.
  const std::vector<std::vector<float>> sources = {{1e8F}, {1}, {1}, {1}, {1}, {1}, {-1e8F}};
  EXPECT_EQ(reduced(Type::float32, Reduction::sum, sources)[0], 0.0F);
  const std::vector<std::vector<float>> other = {{1}, {1}, {1}, {1}, {1}, {1e8F}, {-1e8F}};
  EXPECT_EQ(reduced(Type::float32, Reduction::sum, other)[0], 8.0F);
}

TEST(Arithmetic, rounds_narrow_types_once) {
  // 2048 + 1 is a tie in half; rounded each time it would stay 2048.
  const std::vector<std::vector<uint16_t>> halves = {{0x6800}, {0x3c00}, {0x3c00}, {0x3c00}};
  EXPECT_EQ(reduced(Type::float16, Reduction::sum, halves)[0], 0x6802);  // 2051 is a tie of 2050 and 2052: to even
  const std::vector<std::vector<uint16_t>> bfloats = {{0x4380}, {0x3f80}, {0x3f80}};  // 256 + 1 + 1
  EXPECT_EQ(reduced(Type::bfloat16, Reduction::sum, bfloats)[0], 0x4381);             // 258
}

TEST(Arithmetic, reads_and_writes_every_half) {
  for (uint32_t half = 0; half < 65536; ++half) {
    const std::vector<std::vector<uint16_t>> source = {std::vector<uint16_t>(9, static_cast<uint16_t>(half))};
    const auto out = reduced(Type::float16, Reduction::sum, source);
    for (const uint16_t got : out) {  // some through vectors, the last alone
      ASSERT_EQ(got, is_nan_half(source[0][0]) ? half | 0x200 : half);
    }
  }
}

TEST(Arithmetic, rounds_to_the_nearest_half) {
  // The average of two halves lies on one, or between neighbours: to the nearer, or the even one.
  std::mt19937 random(7);
  for (int i = 0; i < 200'000; ++i) {
    const auto a = static_cast<uint16_t>(random());
    const auto b = static_cast<uint16_t>(random());
    if ((a & 0x7c00) == 0x7c00 || (b & 0x7c00) == 0x7c00) {
      continue;
    }
    const float exact = static_cast<float>(value_of_half(a)) + static_cast<float>(value_of_half(b));
    const uint16_t got = reduced<uint16_t>(Type::float16, Reduction::sum, {{a}, {b}})[0];
    if ((got & 0x7fff) == 0x7c00) {
      ASSERT_GE(std::fabs(exact), 65520.0F);
      continue;
    }
    const double error = std::fabs(value_of_half(got) - static_cast<double>(exact));
    for (const int step : {-1, 1}) {
      const auto other = static_cast<uint16_t>(got + step);
      if ((other & 0x7c00) != 0x7c00 && (got & 0x7fff) != 0) {
        const double other_error = std::fabs(value_of_half(other) - static_cast<double>(exact));
        ASSERT_TRUE(error < other_error || (error == other_error && got % 2 == 0)) << a << " + " << b;
      }
    }
  }
}

TEST(Arithmetic, keeps_every_bfloat) {
  for (uint32_t word = 0; word < 65536; ++word) {
    const bool is_nan = (word & 0x7fff) > 0x7f80;
    const auto out = reduced<uint16_t>(Type::bfloat16, Reduction::sum, {{static_cast<uint16_t>(word)}});
    ASSERT_EQ(out[0], is_nan ? word | 0x40 : word);
  }
}

TEST(Arithmetic, extremes_have_one_answer_in_any_order) {
  const float nan = std::bit_cast<float>(0xffc01234U);
  const std::vector<float> odd = {
      0.0F, -0.0F, 1, -1, nan, std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(), 1e-45F};
  for (const float a : odd) {
    for (const float b : odd) {
      for (const Reduction reduction : {Reduction::max, Reduction::min}) {
        const float one = reduced<float>(Type::float32, reduction, {{a}, {b}})[0];
        const float other = reduced<float>(Type::float32, reduction, {{b}, {a}})[0];
        ASSERT_EQ(std::bit_cast<uint32_t>(one), std::bit_cast<uint32_t>(other)) << a << ' ' << b;
        if (std::isnan(a) || std::isnan(b)) {
          ASSERT_EQ(std::bit_cast<uint32_t>(one), 0x7fc00000U);
        } else {
          ASSERT_EQ(one, reduction == Reduction::max ? std::max(a, b) : std::min(a, b));
        }
      }
    }
  }
  EXPECT_FALSE(std::signbit(reduced<float>(Type::float32, Reduction::max, {{-0.0F}, {0.0F}})[0]));
  EXPECT_TRUE(std::signbit(reduced<float>(Type::float32, Reduction::min, {{0.0F}, {-0.0F}})[0]));
  EXPECT_EQ(reduced<uint16_t>(Type::float16, Reduction::max, {{0x3c00}, {0xfc01}})[0], 0x7e00);
  EXPECT_EQ(reduced<uint16_t>(Type::bfloat16, Reduction::min, {{0xff81}, {0x3f80}})[0], 0x7fc0);
}

TEST(Arithmetic, integers_wrap) {
  EXPECT_EQ(reduced<int8_t>(Type::int8, Reduction::sum, {{127}, {1}})[0], -128);
  EXPECT_EQ(reduced<uint16_t>(Type::uint16, Reduction::prod, {{65535}, {65535}})[0], 1);
  EXPECT_EQ(reduced<int64_t>(Type::int64, Reduction::sum, {{INT64_MAX}, {INT64_MAX}})[0], -2);
  EXPECT_EQ(reduced<int32_t>(Type::int32, Reduction::prod, {{INT32_MIN}, {-1}})[0], INT32_MIN);
  EXPECT_EQ(reduced<int8_t>(Type::int8, Reduction::max, {{-1}, {1}})[0], 1);
  EXPECT_EQ(reduced<uint8_t>(Type::uint8, Reduction::max, {{255}, {1}})[0], 255);
}

TEST(Arithmetic, averages) {
  EXPECT_EQ(reduced<int32_t>(Type::int32, Reduction::avg, {{-3}, {-4}}, 2)[0], -3);
  EXPECT_EQ(reduced<uint8_t>(Type::uint8, Reduction::avg, {{100}, {101}}, 2)[0], 100);
  EXPECT_EQ(reduced<float>(Type::float32, Reduction::avg, {{1}, {2}, {4}}, 3)[0], 7.0F / 3.0F);
  EXPECT_EQ(reduced<uint16_t>(Type::float16, Reduction::avg, {{0x7bff}, {0x7bff}}, 2)[0], 0x7bff);  // no overflow
}

TEST(Arithmetic, booleans_are_or_and_and) {
  const std::vector<std::vector<uint8_t>> sources = {{0, 0, 2, 255}, {0, 1, 0, 4}};
  EXPECT_EQ(reduced(Type::boolean, Reduction::sum, sources), (std::vector<uint8_t>{0, 1, 1, 1}));
  EXPECT_EQ(reduced(Type::boolean, Reduction::max, sources), (std::vector<uint8_t>{0, 1, 1, 1}));
  EXPECT_EQ(reduced(Type::boolean, Reduction::prod, sources), (std::vector<uint8_t>{0, 0, 0, 1}));
  EXPECT_EQ(reduced(Type::boolean, Reduction::min, sources), (std::vector<uint8_t>{0, 0, 0, 1}));
}

TEST(Arithmetic, multiplies_complex_numbers) {
  using C = std::complex<float>;
  EXPECT_EQ(reduced<C>(Type::complex64, Reduction::prod, {{C(1, 2)}, {C(3, -4)}})[0], C(11, 2));
  EXPECT_EQ(reduced<C>(Type::complex64, Reduction::avg, {{C(1, 2)}, {C(3, -4)}}, 2)[0], C(2, -1));
}

/// Memory that begins at an odd address, so that nothing is aligned.
struct Misaligned {
  explicit Misaligned(size_t length, uint32_t seed) : memory(length + 1) {
    std::mt19937 random(seed);
    for (std::byte& byte : memory) {
      byte = static_cast<std::byte>(random());
    }
  }
  std::byte* data() { return memory.data() + 1; }
  std::vector<std::byte> memory;
};

/// With one NaN for all: of a sum of several, compilers choose whose payload stays when they turn operands round.
template <class Word>
void make_nans_one(std::vector<std::byte>& bytes, Word infinity) {
  const Word magnitude = static_cast<Word>(~(Word{1} << (8 * sizeof(Word) - 1)));
  for (size_t at = 0; at + sizeof(Word) <= bytes.size(); at += sizeof(Word)) {
    Word word;
    std::memcpy(&word, &bytes[at], sizeof word);
    if ((word & magnitude) > infinity) {
      std::memcpy(&bytes[at], &magnitude, sizeof word);
    }
  }
}

/// A result as it may be compared.
std::vector<std::byte> told(Type type, const std::byte* result, size_t length) {
  std::vector<std::byte> bytes(result, result + length);
  switch (type) {
    case Type::float16:
      make_nans_one<uint16_t>(bytes, 0x7c00);
      break;
    case Type::bfloat16:
      make_nans_one<uint16_t>(bytes, 0x7f80);
      break;
    case Type::float32:
    case Type::complex64:
      make_nans_one<uint32_t>(bytes, 0x7f800000);
      break;
    case Type::float64:
      make_nans_one<uint64_t>(bytes, 0x7ff0000000000000);
      break;
    default:
      break;
  }
  return bytes;
}

TEST(Arithmetic, is_the_same_on_every_processor_in_place_and_misaligned) {
  for (uint32_t t = 0; t < kTypes; ++t) {
    for (uint32_t r = 0; r < kReductions; ++r) {
      const auto type = static_cast<Type>(t);
      const auto reduction = static_cast<Reduction>(r);
      if (!can_reduce(type, reduction)) {
        continue;
      }
      for (const size_t count : {size_t{0}, size_t{1}, size_t{7}, size_t{1024}, size_t{1025}, size_t{3001}}) {
        for (const size_t n_sources : {size_t{1}, size_t{2}, size_t{3}, size_t{4}, size_t{5}}) {
          const size_t length = count * bytes_of(type);
          std::vector<Misaligned> sources;
          std::vector<const std::byte*> from;
          for (size_t i = 0; i < n_sources; ++i) {
            sources.emplace_back(length, static_cast<uint32_t>(t * 100 + r * 10 + i));
          }
          for (Misaligned& source : sources) {
            from.push_back(source.data());
          }
          const uint32_t divisor = reduction == Reduction::avg ? 3 : 0;
          Misaligned expected(length, 1);
          reduce_by(Arithmetic::baseline, type, reduction, expected.data(), from, length, divisor);
          for (const Arithmetic code : kArithmetics) {
            for (size_t place = 0; place < n_sources && can_run(code); ++place) {  // in place of each source
              Misaligned kept = sources[place];
              reduce_by(code, type, reduction, sources[place].data(), from, length, divisor);
              ASSERT_EQ(told(type, sources[place].data(), length), told(type, expected.data(), length))
                  << text(code) << ' ' << text(type) << ' ' << text(reduction) << ' ' << count
                  << " elements, in place of source " << place;
              std::memcpy(sources[place].data(), kept.data(), length);
            }
          }
        }
      }
    }
  }
}

TEST(Element, names_lead_back) {
  for (uint32_t t = 0; t < kTypes; ++t) {
    EXPECT_EQ(type_of(text(static_cast<Type>(t))), static_cast<Type>(t));
  }
  for (uint32_t r = 0; r < kReductions; ++r) {
    EXPECT_EQ(reduction_of(text(static_cast<Reduction>(r))), static_cast<Reduction>(r));
  }
  EXPECT_EQ(type_of("half"), Type::float16);
  EXPECT_EQ(type_of("float8"), std::nullopt);
  EXPECT_EQ(reduction_of("SUM"), std::nullopt);
}

}  // namespace
}  // namespace ringbolt::collective
