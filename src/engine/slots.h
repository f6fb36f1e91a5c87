#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/chunk_header.h"

namespace ringbolt::engine {

// Pieces of the slab that hold one message each. The payload lies at a multiple of 64 bytes.

inline constexpr uint32_t kLargePayloadBytes = 65536;
inline constexpr uint32_t kLargeBytes = kHeaderBytes + kLargePayloadBytes;
inline constexpr uint32_t kSmallBytes = 4096;  ///< one frame of a device over Thunderbolt
inline constexpr uint32_t kSmallPayloadBytes = kSmallBytes - kHeaderBytes;

/// `count` slots of one size somewhere in the slab.
struct SlotRow {
  size_t offset = 0;  ///< of the first slot's message
  uint32_t slot_bytes = 0;
  uint32_t stride_bytes = 0;
  uint32_t count = 0;

  size_t offset_of(uint32_t slot) const { return offset + size_t{slot} * stride_bytes; }
};

/// Cuts a slab into rows. The same calls in the same order on a layout without memory say how much is needed.
/// Counts only, owns nothing: whoever makes the slab sees to the memory.
class SlabLayout {
 public:
  SlotRow add_row(uint32_t slot_bytes, uint32_t count) {
    constexpr size_t kAlign = 64;
    const auto stride = static_cast<uint32_t>((slot_bytes + kAlign - 1) / kAlign * kAlign);
    const SlotRow row{used_ + kAlign - kHeaderBytes % kAlign, slot_bytes, stride, count};
    used_ += size_t{stride} * count + kAlign;
    return row;
  }
  size_t used_bytes() const { return used_; }

 private:
  size_t used_ = 0;
};

/// The free slots of a row. Not thread-safe.
class FreeSlots {
 public:
  explicit FreeSlots(uint32_t count) : free_(count), is_free_(count, 1), size_(count) {
    for (uint32_t i = 0; i < count; ++i) {
      free_[i] = count - 1 - i;
    }
  }
  uint32_t size() const { return size_; }
  /// There is one.
  uint32_t take() {
    const uint32_t slot = free_[--size_];
    is_free_[slot] = 0;
    return slot;
  }
  /// `slot`: less than the count. One that is free stays free, once, though a device completes its send twice: given
  /// out twice, two messages would be written over each other.
  void give(uint32_t slot) {
    if (is_free_[slot] == 0) [[likely]] {
      is_free_[slot] = 1;
      free_[size_++] = slot;
    }
  }

 private:
  std::vector<uint32_t> free_;    // the first size_
  std::vector<uint8_t> is_free_;  // of each slot: 1 or 0
  uint32_t size_;
};

}  // namespace ringbolt::engine
