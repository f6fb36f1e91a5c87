#pragma once

#include <cstddef>
#include <cstdint>

namespace ringbolt::bench {

/// Largest payload of any case: 16 MiB.
constexpr std::size_t kMaxPayload = std::size_t{16} << 20U;

/// Small slots behind the payload buffers, for streams of small messages and for one-sided targets.
constexpr std::size_t kSlotBytes = 64;
constexpr std::size_t kSlots = 1024;

/// The memory of one rank, laid out alike for every peer: outgoing payload, incoming payload, slots.
struct Arena {
  static constexpr std::size_t kBytes = 2 * kMaxPayload + kSlots * kSlotBytes;

  std::byte* base = nullptr;

  std::byte* outgoing() const { return base; }
  std::byte* incoming() const { return base + kMaxPayload; }
  std::byte* slot(std::size_t index) const { return base + 2 * kMaxPayload + index * kSlotBytes; }
};

/// Page-aligned private memory of Arena::kBytes, every page touched. Freed at exit. Throws std::bad_alloc.
Arena make_private_arena();

/// Writes every byte of the payload: the 64-bit word i becomes seed + i * (an odd constant), so that a word that is
/// stale, shifted or from elsewhere is seen. `size_bytes` is a multiple of 8.
void fill(std::byte* payload, std::size_t size_bytes, uint64_t seed);

/// Reads every byte; true when the payload is what fill() wrote for `seed`.
bool holds(const std::byte* payload, std::size_t size_bytes, uint64_t seed);

/// Throws std::runtime_error when the payload is not what fill() wrote. Any peer that lies is caught here.
void expect_holds(const std::byte* payload, std::size_t size_bytes, uint64_t seed);

/// The seed of what `rank` sends in `iteration`.
constexpr uint64_t seed_of(unsigned rank, uint64_t iteration) {
  return (iteration + 1) * 0x9e3779b97f4a7c15U + rank;
}

}  // namespace ringbolt::bench
