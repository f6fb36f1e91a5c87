// Hot path: touches every byte of every message, twice.
#include "pattern.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace ringbolt::tools {
namespace {

constexpr size_t kWordBytes = sizeof(uint64_t);
constexpr size_t kLanes = 4;  // words compared together: enough for the compiler to use vectors
constexpr size_t kStrideBytes = kLanes * kWordBytes;
// Odd, so that words differ as far as memory goes; bits all over, so that no byte of a word stays for long.
constexpr uint64_t kStep = 0x0101010101010117U;

constexpr uint64_t word_at(uint64_t base, size_t index) { return base + index * kStep; }

std::byte byte_at(uint64_t base, size_t place) {
  const uint64_t word = word_at(base, place / kWordBytes);
  std::byte bytes[kWordBytes];
  std::memcpy(bytes, &word, sizeof word);
  return bytes[place % kWordBytes];
}

/// How many bytes it takes from `offset` to the next word.
size_t head_of(size_t offset, size_t length) {
  return std::min((kWordBytes - offset % kWordBytes) % kWordBytes, length);
}

/// Whether the bytes, whole strides of them, are the pattern from its word `first` on.
bool are_strides(std::span<const std::byte> bytes, uint64_t first) {
  uint64_t expected[kLanes];
  uint64_t differing[kLanes] = {};
  for (size_t lane = 0; lane < kLanes; ++lane) {
    expected[lane] = first + lane * kStep;
  }
  for (size_t at = 0; at + kStrideBytes <= bytes.size(); at += kStrideBytes) {
    uint64_t words[kLanes];
    std::memcpy(words, bytes.data() + at, sizeof words);
    for (size_t lane = 0; lane < kLanes; ++lane) {
      differing[lane] |= words[lane] ^ expected[lane];
      expected[lane] += kLanes * kStep;
    }
  }
  return (differing[0] | differing[1] | differing[2] | differing[3]) == 0;
}

/// The step of numbers and that of places share no small multiple.
constexpr uint64_t base_of(uint32_t number) { return (number + uint64_t{1}) * 0x9e3779b97f4a7c15U; }

}  // namespace

void fill(std::span<std::byte> bytes, size_t offset, uint64_t base) {
  size_t at = 0;
  for (const size_t head = head_of(offset, bytes.size()); at < head; ++at) {
    bytes[at] = byte_at(base, offset + at);
  }
  uint64_t word = word_at(base, (offset + at) / kWordBytes);
  for (; at + kWordBytes <= bytes.size(); at += kWordBytes) {
    std::memcpy(bytes.data() + at, &word, sizeof word);
    word += kStep;
  }
  for (; at < bytes.size(); ++at) {
    bytes[at] = byte_at(base, offset + at);
  }
}

bool is_filled(std::span<const std::byte> bytes, size_t offset, uint64_t base) {
  size_t at = 0;
  for (const size_t head = head_of(offset, bytes.size()); at < head; ++at) {
    if (bytes[at] != byte_at(base, offset + at)) {
      return false;
    }
  }
  uint64_t word = word_at(base, (offset + at) / kWordBytes);
  const size_t strides = (bytes.size() - at) / kStrideBytes * kStrideBytes;
  if (!are_strides(bytes.subspan(at, strides), word)) {
    return false;
  }
  at += strides;
  word += strides / kWordBytes * kStep;
  for (; at + kWordBytes <= bytes.size(); at += kWordBytes, word += kStep) {
    if (std::memcmp(bytes.data() + at, &word, sizeof word) != 0) {
      return false;
    }
  }
  for (; at < bytes.size(); ++at) {
    if (bytes[at] != byte_at(base, offset + at)) {
      return false;
    }
  }
  return true;
}

std::optional<Difference> difference(std::span<const std::byte> bytes, size_t offset, uint64_t base) {
  Difference found;
  for (size_t at = 0; at < bytes.size(); ++at) {
    const std::byte expected = byte_at(base, offset + at);
    if (bytes[at] == expected) {
      continue;
    }
    if (found.bytes == 0) {
      found.first = at;
      found.expected = expected;
      found.found = bytes[at];
    }
    ++found.bytes;
    found.bits += static_cast<size_t>(std::popcount(static_cast<uint8_t>(bytes[at] ^ expected)));
  }
  return found.bytes == 0 ? std::nullopt : std::optional(found);
}

void fill_pattern(std::span<std::byte> bytes, uint32_t number) { fill(bytes, 0, base_of(number)); }

std::optional<size_t> find_mismatch(std::span<const std::byte> bytes, uint32_t number) {
  if (is_filled(bytes, 0, base_of(number))) {
    return std::nullopt;
  }
  // Bytes that come late may have come between the two looks.
  const std::optional<Difference> found = difference(bytes, 0, base_of(number));
  return found ? std::optional(found->first) : std::nullopt;
}

}  // namespace ringbolt::tools
