// Bytes that depend on their origin and position, so that a stale, shifted, torn or mirrored message is noticed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

namespace ringbolt::chaos {

/// Where a message comes from: every field changes every byte.
struct Origin {
  std::uint32_t round = 0;
  std::uint32_t side = 0;
  std::uint64_t sequence = 0;
};

/// The 8 bytes at word `index` of a message.
constexpr std::uint64_t pattern_word(const Origin& origin, std::uint64_t index) {
  std::uint64_t mixed = origin.sequence * 0x9E3779B97F4A7C15U + (std::uint64_t{origin.round} << 32U) + origin.side;
  mixed = (mixed ^ (mixed >> 29U)) + index * 0xBF58476D1CE4E5B9U;
  return mixed ^ (mixed >> 31U);
}

/// Fills a message. Any length, no alignment needed.
inline void fill_pattern(std::span<std::byte> bytes, const Origin& origin) {
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(std::uint64_t)) {
    const std::uint64_t word = pattern_word(origin, at);
    std::memcpy(bytes.data() + at, &word, std::min(sizeof word, bytes.size() - at));
  }
}

/// The offset of the first wrong word, or nothing when every byte is right.
inline std::optional<std::size_t> first_wrong(std::span<const std::byte> bytes, const Origin& origin) {
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(std::uint64_t)) {
    const std::uint64_t word = pattern_word(origin, at);
    if (std::memcmp(bytes.data() + at, &word, std::min(sizeof word, bytes.size() - at)) != 0) return at;
  }
  return std::nullopt;
}

}  // namespace ringbolt::chaos
