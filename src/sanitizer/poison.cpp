#include "sanitizer/poison.h"

#include <algorithm>
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

}  // namespace

void fill_with_poison(std::span<std::byte> memory, uint32_t number) {
  const uint64_t word = word_at(memory.data(), number);
  size_t at = 0;
  for (; at + kWord <= memory.size(); at += kWord) {
    std::memcpy(memory.data() + at, &word, kWord);
  }
  std::memcpy(memory.data() + at, &word, memory.size() - at);
}

std::optional<size_t> first_unpoisoned(std::span<const std::byte> memory, uint32_t number) {
  const uint64_t word = word_at(memory.data(), number);
  size_t at = 0;
  for (; at + kBlock <= memory.size(); at += kBlock) {
    uint64_t differs = 0;
    for (size_t i = 0; i < kBlock; i += kWord) {
      uint64_t there = 0;
      std::memcpy(&there, memory.data() + at + i, kWord);
      differs |= there ^ word;
    }
    if (differs != 0) {
      break;
    }
  }
  const auto* const expected = reinterpret_cast<const std::byte*>(&word);
  for (; at < memory.size(); ++at) {
    if (memory[at] != expected[at % kWord]) {
      return at;
    }
  }
  return std::nullopt;
}

void restore(std::span<std::byte> memory, const std::byte* kept, uint32_t number) {
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
  for (size_t at = 0; at + kWord <= memory.size(); ++at) {
    const void* const next =
        std::memchr(memory.data() + at, static_cast<int>(kMark & 0xffU), memory.size() - at - kWord + 1);
    if (next == nullptr) {
      break;
    }
    at = static_cast<size_t>(static_cast<const std::byte*>(next) - memory.data());
    uint32_t number = 0;
    std::memcpy(&number, memory.data() + at + sizeof kMark, sizeof number);
    if (std::memcmp(memory.data() + at, &kMark, sizeof kMark) == 0 && number - first < count) {
      return FoundPoison{at, number};
    }
  }
  return std::nullopt;
}

}  // namespace ringbolt::sanitizer
