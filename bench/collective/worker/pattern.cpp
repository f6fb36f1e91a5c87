#include "pattern.h"

#include <fmt/format.h>

#include <cstring>
#include <stdexcept>

// As in the other workers' payload: looking at the data is to cost as little as it can.
#if defined(__GNUC__) && !defined(__clang__)
#define RINGBOLT_BENCH_WIDE __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define RINGBOLT_BENCH_WIDE
#endif

namespace ringbolt::bench {
namespace {

constexpr uint32_t kStep = 0x9e3779b1U;

/// The words of all ranks at one place differ only by a constant of the rank: one product serves all of them.
inline uint32_t hash_of(uint32_t place, uint32_t call) {
  const uint32_t mixed = place * kStep + call;
  return mixed ^ (mixed >> 16U);
}

constexpr uint32_t salt_of(unsigned rank) { return rank * 0x85ebca6bU; }

constexpr uint32_t call_seed(uint64_t call) { return static_cast<uint32_t>((call + 1) * 0xc2b2ae35U); }

RINGBOLT_BENCH_WIDE void write_words(uint32_t* words, std::size_t count, Pattern pattern, uint32_t salt,
                                     uint32_t seed) {
  for (std::size_t i = 0; i < count; ++i) {
    words[i] = pattern.base + ((hash_of(static_cast<uint32_t>(i), seed) ^ salt) & pattern.mask);
  }
}

RINGBOLT_BENCH_WIDE uint32_t differing_from_one(const uint32_t* words, std::size_t count, Pattern pattern,
                                                uint32_t salt, uint32_t seed) {
  uint32_t differing = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const uint32_t hash = hash_of(static_cast<uint32_t>(i), seed);
    differing |= words[i] ^ (pattern.base + ((hash ^ salt) & pattern.mask));
  }
  return differing;
}

// Mantissas fill all bits but the sign's and the exponent's, of which a half-word of bfloat16 has nine: the sum of four
// stays within its half.
RINGBOLT_BENCH_WIDE uint32_t differing_from_two(const uint32_t* words, std::size_t count, Pattern pattern,
                                                uint32_t first, uint32_t second, uint32_t seed) {
  uint32_t differing = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const uint32_t hash = hash_of(static_cast<uint32_t>(i), seed);
    const uint32_t mantissas = ((hash ^ first) & pattern.mask) + ((hash ^ second) & pattern.mask);
    differing |= words[i] ^ (pattern.base + pattern.doubling + mantissas / 2);
  }
  return differing;
}

RINGBOLT_BENCH_WIDE uint32_t differing_from_four(const uint32_t* words, std::size_t count, Pattern pattern,
                                                 uint32_t first, uint32_t seed) {
  uint32_t differing = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const uint32_t hash = hash_of(static_cast<uint32_t>(i), seed);
    uint32_t mantissas = 0;
    for (unsigned rank = 0; rank < 4; ++rank) {
      mantissas += (hash ^ salt_of(first + rank)) & pattern.mask;
    }
    differing |= words[i] ^ (pattern.base + 2 * pattern.doubling + mantissas / 4);
  }
  return differing;
}

uint32_t expected_word(const Pattern& pattern, std::size_t place, unsigned first, unsigned ranks, uint32_t seed) {
  uint32_t mantissas = 0;
  for (unsigned rank = first; rank < first + ranks; ++rank) {
    mantissas += (hash_of(static_cast<uint32_t>(place), seed) ^ salt_of(rank)) & pattern.mask;
  }
  return pattern.base + pattern.doubling * (ranks / 2) + mantissas / ranks;
}

uint32_t differing_bits(const Pattern& pattern, const uint32_t* words, std::size_t count, unsigned first,
                        unsigned ranks, uint32_t seed) {
  switch (ranks) {
    case 1:
      return differing_from_one(words, count, pattern, salt_of(first), seed);
    case 2:
      return differing_from_two(words, count, pattern, salt_of(first), salt_of(first + 1), seed);
    case 4:
      return differing_from_four(words, count, pattern, first, seed);
    default:
      throw std::runtime_error(fmt::format("sums over {} ranks are not known to be exact: 1, 2 or 4", ranks));
  }
}

}  // namespace

Pattern pattern_of(const std::string& type) {
  if (type == "float32") {
    return {0x43000000U, 0x00800000U, 0x007ffffcU};
  }
  if (type == "float16") {
    return {0x5c005c00U, 0x04000400U, 0x03fc03fcU};
  }
  if (type == "bfloat16") {
    return {0x43004300U, 0x00800080U, 0x007c007cU};
  }
  throw std::runtime_error(fmt::format("no elements of type {}: float32, float16 or bfloat16", type));
}

void write_input(const Pattern& pattern, std::byte* out, std::size_t length_bytes, unsigned rank, uint64_t call) {
  write_words(reinterpret_cast<uint32_t*>(out), length_bytes / sizeof(uint32_t), pattern, salt_of(rank),
              call_seed(call));
}

void expect_sum(const Pattern& pattern, const std::byte* data, std::size_t length_bytes, unsigned first, unsigned ranks,
                uint64_t call) {
  const auto* words = reinterpret_cast<const uint32_t*>(data);
  const std::size_t count = length_bytes / sizeof(uint32_t);
  const uint32_t seed = call_seed(call);
  if (differing_bits(pattern, words, count, first, ranks, seed) == 0) [[likely]] {
    return;
  }
  std::size_t i = 0;
  while (words[i] == expected_word(pattern, i, first, ranks, seed)) {
    ++i;
  }
  throw std::runtime_error(fmt::format("output of {} bytes is wrong at byte {}: {:#010x} instead of {:#010x}",
                                       length_bytes, i * sizeof(uint32_t), words[i],
                                       expected_word(pattern, i, first, ranks, seed)));
}

}  // namespace ringbolt::bench
