#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace ringbolt::tools {

/// One step of SplitMix64: every bit of the result depends on every bit of `value`. Thread-safe.
constexpr uint64_t mixed(uint64_t value) {
  value += 0x9e3779b97f4a7c15U;
  value = (value ^ (value >> 30U)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27U)) * 0x94d049bb133111ebU;
  return value ^ (value >> 31U);
}

/// How two spans of bytes of the same length differ.
struct Difference {
  size_t first = 0;  ///< offset of the first byte that differs
  std::byte expected{};
  std::byte found{};
  size_t bytes = 0;  ///< how many differ
  size_t bits = 0;
};

/// A pattern without end whose byte at each place depends on `base` and on the place: no word of it repeats. `offset`:
/// where in the pattern `bytes` begins. Hot path. Thread-safe.
void fill(std::span<std::byte> bytes, size_t offset, uint64_t base);
/// Whether the bytes are that pattern. Hot path. Thread-safe.
bool is_filled(std::span<const std::byte> bytes, size_t offset, uint64_t base);
/// Where they are not. Thread-safe.
std::optional<Difference> difference(std::span<const std::byte> bytes, size_t offset, uint64_t base);

/// Pattern number `number`: a message that is stale, shifted or cut short does not pass for it. Thread-safe.
void fill_pattern(std::span<std::byte> bytes, uint32_t number);
/// Where `bytes` first departs from that, if anywhere. Thread-safe.
std::optional<size_t> find_mismatch(std::span<const std::byte> bytes, uint32_t number);

}  // namespace ringbolt::tools
