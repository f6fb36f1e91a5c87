#include "payload.h"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>

// The compiler makes an AVX-512, an AVX2 and a plain version, so that touching the payload costs as little as it can:
// what is left is the way of the cache lines from one core to the other, which is what we want to see.
#if defined(__GNUC__) && !defined(__clang__)
#define RINGBOLT_BENCH_WIDE __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define RINGBOLT_BENCH_WIDE
#endif

namespace ringbolt::bench {
namespace {

constexpr uint64_t kStep = 0xd1342543de82ef95U;

RINGBOLT_BENCH_WIDE void fill_words(uint64_t* words, std::size_t count, uint64_t seed) {
  uint64_t value = seed;
  for (std::size_t i = 0; i < count; ++i) {
    words[i] = value;
    value += kStep;
  }
}

RINGBOLT_BENCH_WIDE uint64_t differing_bits(const uint64_t* words, std::size_t count, uint64_t seed) {
  uint64_t differing = 0;
  uint64_t value = seed;
  for (std::size_t i = 0; i < count; ++i) {
    differing |= words[i] ^ value;
    value += kStep;
  }
  return differing;
}

}  // namespace

Arena make_private_arena() {
  constexpr std::size_t kPage = 4096;
  void* memory = std::aligned_alloc(kPage, Arena::kBytes);
  if (memory == nullptr) {
    throw std::bad_alloc();
  }
  std::memset(memory, 1, Arena::kBytes);
  return Arena{static_cast<std::byte*>(memory)};
}

void fill(std::byte* payload, std::size_t size_bytes, uint64_t seed) {
  if (size_bytes == sizeof seed) {
    std::memcpy(payload, &seed, sizeof seed);
    return;
  }
  fill_words(reinterpret_cast<uint64_t*>(payload), size_bytes / sizeof seed, seed);
}

bool holds(const std::byte* payload, std::size_t size_bytes, uint64_t seed) {
  if (size_bytes == sizeof seed) {
    return std::memcmp(payload, &seed, sizeof seed) == 0;
  }
  return differing_bits(reinterpret_cast<const uint64_t*>(payload), size_bytes / sizeof seed, seed) == 0;
}

void expect_holds(const std::byte* payload, std::size_t size_bytes, uint64_t seed) {
  if (holds(payload, size_bytes, seed)) [[likely]] {
    return;
  }
  const auto* words = reinterpret_cast<const uint64_t*>(payload);
  std::size_t i = 0;
  while (words[i] == seed + i * kStep) {
    ++i;
  }
  throw std::runtime_error(fmt::format("payload of {} bytes is wrong at byte {}: {:#018x} instead of {:#018x}",
                                       size_bytes, i * sizeof seed, words[i], seed + i * kStep));
}

}  // namespace ringbolt::bench
