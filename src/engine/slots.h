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
  explicit FreeSlots(uint32_t count) {
    for (uint32_t slot = count; slot > 0; --slot) {
      free_.push_back(slot - 1);
    }
  }
  bool is_empty() const { return free_.empty(); }
  size_t size() const { return free_.size(); }
  uint32_t take() {
    const uint32_t slot = free_.back();
    free_.pop_back();
    return slot;
  }
  void give(uint32_t slot) { free_.push_back(slot); }

 private:
  std::vector<uint32_t> free_;
};

}  // namespace ringbolt::engine
