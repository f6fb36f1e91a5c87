#include "sanitizer/poison.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace ringbolt::sanitizer {
namespace {

constexpr size_t kWord = sizeof(uint64_t);
constexpr size_t kBlock = 64;
constexpr uint32_t kMark = 0xa5a5a5a5;

/// As it stands in memory of any byte order: the mark first.
uint64_t word_of(uint32_t number) {
  uint64_t word = 0;
  std::memcpy(&word, &kMark, sizeof kMark);
  std::memcpy(reinterpret_cast<std::byte*>(&word) + sizeof kMark, &number, sizeof number);
  return word;
}

/// The word as it begins at `memory`.
uint64_t word_at(const std::byte* memory, uint32_t number) {
  const uint64_t word = word_of(number);
  uint64_t twice[2] = {word, word};
  uint64_t turned = 0;
  std::memcpy(&turned, reinterpret_cast<const std::byte*>(twice) + reinterpret_cast<uintptr_t>(memory) % kWord, kWord);
  return turned;
}

/// Enough of it to compare and copy by the C library, which does these at the speed of memory.
// 512 bytes, a multiple of a word: so each part of memory begins with the same byte of it.
struct Pattern {
  static constexpr size_t kBytes = 512;

  Pattern(const std::byte* memory, uint32_t number) {
    const uint64_t word = word_at(memory, number);
    for (size_t at = 0; at < kBytes; at += kWord) {
      std::memcpy(bytes.data() + at, &word, kWord);
    }
  }

  std::array<std::byte, kBytes> bytes;  // NOLINT: filled above
};

/// Pairs of bytes, many at a time.
using Pairs __attribute__((vector_size(16))) = uint16_t;
using Hits __attribute__((vector_size(16))) = int16_t;
/// 256 bytes between two looks at what was hit.
constexpr size_t kStride = 16 * sizeof(Pairs);

/// Whether some pair of bytes at an even place is the mark's, as one of any four bytes of the mark in a row is.
/// All four bytes of the mark are 0xa5, so wherever it begins, a pair at an even place lies in it. Others may be hit,
/// too.
bool may_hold_mark(const std::byte* stride) {
  constexpr uint16_t kPair = kMark & 0xffff;
  Hits hits{};
  for (size_t at = 0; at < kStride; at += sizeof(Pairs)) {
    Pairs pairs;
    std::memcpy(&pairs, stride + at, sizeof pairs);
    hits |= pairs == (Pairs{} + kPair);
  }
  std::array<uint64_t, sizeof(hits) / kWord> words{};
  std::memcpy(words.data(), &hits, sizeof hits);
  return std::ranges::any_of(words, [](uint64_t one) { return one != 0; });
}

/// The first of the places from `at` to `end` where poison of these numbers begins.
std::optional<FoundPoison> look_closely(std::span<const std::byte> memory, size_t at, size_t end, uint32_t first,
                                        uint32_t count) {
  for (end = std::min(end, memory.size() < kWord ? 0 : memory.size() - kWord + 1); at < end; ++at) {
    uint32_t number = 0;
    std::memcpy(&number, memory.data() + at + sizeof kMark, sizeof number);
    if (std::memcmp(memory.data() + at, &kMark, sizeof kMark) == 0 && number - first < count) {
      return FoundPoison{at, number};
    }
  }
  return std::nullopt;
}

}  // namespace

void fill_with_poison(std::span<std::byte> memory, uint32_t number) {
  const Pattern pattern(memory.data(), number);
  for (size_t at = 0; at < memory.size(); at += Pattern::kBytes) {
    std::memcpy(memory.data() + at, pattern.bytes.data(), std::min(Pattern::kBytes, memory.size() - at));
  }
}

std::optional<size_t> first_unpoisoned(std::span<const std::byte> memory, uint32_t number) {
  const Pattern pattern(memory.data(), number);
  for (size_t at = 0; at < memory.size(); at += Pattern::kBytes) {
    const auto part = memory.subspan(at, std::min(Pattern::kBytes, memory.size() - at));
    if (std::memcmp(part.data(), pattern.bytes.data(), part.size()) != 0) {
      return at + static_cast<size_t>(std::ranges::mismatch(part, pattern.bytes).in1 - part.begin());
    }
  }
  return std::nullopt;
}

void restore(std::span<std::byte> memory, const std::byte* kept, uint32_t number) {
  if (!first_unpoisoned(memory, number)) {
    std::memcpy(memory.data(), kept, memory.size());
    return;
  }
  for (size_t at = 0; at < memory.size();) {
    // Blocks begin where a word does, so that each begins with the same byte.
    const size_t length =
        std::min(kBlock - reinterpret_cast<uintptr_t>(memory.data() + at) % kBlock, memory.size() - at);
    if (!first_unpoisoned(memory.subspan(at, length), number)) {
      std::memcpy(memory.data() + at, kept + at, length);
    }
    at += length;
  }
}

std::optional<FoundPoison> find_poison(std::span<const std::byte> memory, uint32_t first, uint32_t count) {
  size_t at = 0;
  for (; at + kStride <= memory.size(); at += kStride) {
    if (may_hold_mark(memory.data() + at)) {
      // The mark may have begun before the stride.
      const size_t from = at - std::min(at, sizeof kMark - 1);
      if (const auto found = look_closely(memory, from, at + kStride, first, count)) {
        return found;
      }
    }
  }
  return look_closely(memory, at - std::min(at, sizeof kMark - 1), memory.size(), first, count);
}

}  // namespace ringbolt::sanitizer
