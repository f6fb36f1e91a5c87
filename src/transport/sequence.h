#pragma once

#include <cstdint>

#include "wire/headers.h"

/// Packet sequence numbers: 24 bits that wrap.
namespace ringbolt::transport {

/// How far `psn` lies ahead of `from` (negative: behind), -2^23 .. 2^23 - 1.
// Right as long as the two lie within 2^23 of each other.
constexpr int32_t psn_distance(uint32_t psn, uint32_t from) {
  const uint32_t difference = (psn - from) & wire::kPsnMask;
  return difference < 0x800000U ? static_cast<int32_t>(difference) : static_cast<int32_t>(difference) - 0x1000000;
}

constexpr uint32_t psn_add(uint32_t psn, uint32_t count) { return (psn + count) & wire::kPsnMask; }

/// Packets that `length` bytes take; nothing takes one as well.
constexpr uint32_t packets_of(uint32_t length, uint32_t mtu_bytes) {
  return length == 0 ? 1 : (length - 1) / mtu_bytes + 1;
}

static_assert(psn_distance(0, 0xffffff) == 1 && psn_distance(0xffffff, 0) == -1 && psn_distance(0x800000, 0) < 0);
static_assert(packets_of(0, 256) == 1 && packets_of(256, 256) == 1 && packets_of(257, 256) == 2);

}  // namespace ringbolt::transport
