#pragma once

#include <cstdint>

/// Addresses whose upper half does not count along. Pure. Thread-safe.
namespace ringbolt::device {

inline constexpr uint64_t kFourGib = uint64_t{1} << 32U;

/// Whether there is a boundary of 4 GiB between the first and the last of `length` bytes from `address` on.
constexpr bool crosses_4_gib(uint64_t address, uint64_t length) {
  return length != 0 && address / kFourGib != (address + length - 1) / kFourGib;
}

/// Where a byte at `address` of a region that begins at `first` lands if the sum loses its carry.
constexpr uint64_t without_carry(uint64_t first, uint64_t address) {
  return address / kFourGib == first / kFourGib ? address : address - kFourGib;
}

}  // namespace ringbolt::device
