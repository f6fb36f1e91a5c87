#include "probe/pattern.h"

#include <algorithm>
#include <cstring>

namespace ringbolt::tools {
namespace {

// Odd, so that no word repeats within a pattern; the steps of numbers and places share no small multiple.
constexpr uint64_t kNumberStep = 0x9e3779b97f4a7c15U;
constexpr uint64_t kPlaceStep = 0x0101010101010117U;

constexpr size_t kLanes = 4;  // words compared together: enough for the compiler to use vectors
constexpr size_t kStrideBytes = kLanes * sizeof(uint64_t);

constexpr uint64_t word_at(uint32_t number, size_t place) {
  return (number + uint64_t{1}) * kNumberStep + place * kPlaceStep;
}

/// Whole strides only; true if all words are as they should be.
bool is_intact(std::span<const std::byte> bytes, uint32_t number) {
  uint64_t expected[kLanes];
  uint64_t difference[kLanes] = {};
  for (size_t lane = 0; lane < kLanes; ++lane) {
    expected[lane] = word_at(number, lane);
  }
  for (size_t at = 0; at + kStrideBytes <= bytes.size(); at += kStrideBytes) {
    uint64_t words[kLanes];
    std::memcpy(words, bytes.data() + at, kStrideBytes);
    for (size_t lane = 0; lane < kLanes; ++lane) {
      difference[lane] |= words[lane] ^ expected[lane];
      expected[lane] += kLanes * kPlaceStep;
    }
  }
  return (difference[0] | difference[1] | difference[2] | difference[3]) == 0;
}

}  // namespace

void fill_pattern(std::span<std::byte> bytes, uint32_t number) {
  for (size_t at = 0; at < bytes.size(); at += sizeof(uint64_t)) {
    const uint64_t word = word_at(number, at / sizeof(uint64_t));
    std::memcpy(bytes.data() + at, &word, std::min(sizeof word, bytes.size() - at));
  }
}

std::optional<size_t> find_mismatch(std::span<const std::byte> bytes, uint32_t number) {
  const size_t whole = bytes.size() / kStrideBytes * kStrideBytes;
  size_t at = is_intact(bytes.first(whole), number) ? whole : 0;
  for (; at < bytes.size(); at += sizeof(uint64_t)) {
    const uint64_t word = word_at(number, at / sizeof(uint64_t));
    std::byte expected[sizeof word];
    std::memcpy(expected, &word, sizeof word);
    const size_t length = std::min(sizeof word, bytes.size() - at);
    for (size_t i = 0; i < length; ++i) {
      if (bytes[at + i] != expected[i]) {
        return at + i;
      }
    }
  }
  return std::nullopt;
}

}  // namespace ringbolt::tools
