// Golden data: every byte depends on its position and on the message, so that a shifted, repeated
// or dropped piece shows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace ringbolt::conformance {

/// What memory holds before a test writes to it: a byte that must survive wherever nothing was sent.
inline constexpr uint8_t kGuard = 0xA5;

/// Byte `position` of the message `seed`.
constexpr uint8_t pattern_byte(uint64_t seed, uint64_t position) {
  // The finaliser of SplitMix64 over the 8-byte word that the position lies in.
  uint64_t word = (seed << 32) + position / 8 + 0x9e3779b97f4a7c15ull;
  word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9ull;
  word = (word ^ (word >> 27)) * 0x94d049bb133111ebull;
  word ^= word >> 31;
  return static_cast<uint8_t>(word >> (8 * (position % 8)));
}

/// Writes the bytes [first, first + out.size()) of the message `seed`.
void fill_pattern(std::span<uint8_t> out, uint64_t seed, uint64_t first = 0);

/// Index of the first byte that differs from the message, or -1.
int64_t first_mismatch(std::span<const uint8_t> bytes, uint64_t seed, uint64_t first = 0);

}  // namespace ringbolt::conformance
