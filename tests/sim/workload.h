#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "random.h"
#include "transport/operation.h"

namespace ringbolt::sim {

inline constexpr uint64_t kRegionAddress = 0x7000'0000'0000;
inline constexpr uint32_t kRegionKey = 0x1234'5678;
inline constexpr uint32_t kForeignKey = 0x0bad'0bad;
inline constexpr uint32_t kWindowKey = 0x5eed'0000;  ///< keys that a SEND may invalidate count up from here

/// The byte that belongs at `offset` of what `side` sends as operation `operation`: it differs with each of the three.
constexpr std::byte pattern(uint32_t side, uint32_t operation, uint64_t offset) {
  uint64_t mixed = (offset + 1) * 0x9e3779b97f4a7c15U ^ (uint64_t{operation} << 32) ^ (uint64_t{side} << 60);
  mixed ^= mixed >> 29;
  return static_cast<std::byte>(mixed * 0xbf58476d1ce4e5b9U >> 56);
}

/// What one side asks of the other, in order, and what that needs there.
struct Workload {
  std::vector<transport::Operation> operations;
  std::vector<uint32_t> receives;  ///< capacity of each receive that the other side posts
  uint64_t written_bytes = 0;      ///< the first part of the other's region: each WRITE has its own piece of it
  uint64_t read_bytes = 0;         ///< then what is read
  uint64_t counter_address = 0;    ///< then a counter for the atomics
  uint64_t region_bytes() const { return written_bytes + read_bytes + transport::kAtomicBytes; }
};

enum class Kinds : uint8_t { all, unconnected };  ///< UC has neither READ, atomics nor invalidation

/// `count` operations of random kinds and lengths.
Workload make_workload(Random& random, uint32_t count, uint32_t mtu_bytes, Kinds kinds);

}  // namespace ringbolt::sim
