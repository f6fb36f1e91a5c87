#pragma once

// Hot path: no allocation, lock, system call, exception or logging per message.

#include <array>
#include <cstring>

#include "base/asymmetric_fence.h"
#include "base/remote_access.h"
#include "link/lane.h"

namespace ringbolt::link {

/// The sending end of a lane. Not thread-safe: one caller at a time, except where said.
/// It does not own the memory, which must outlive it. The one caller is who holds the queue pair's lock for sending.
class LaneProducer {
 public:
  explicit LaneProducer(LaneMemory& memory) : memory_(&memory) {
    memory.producer_fences.store(can_be_fenced_ ? 1 : 0, std::memory_order_relaxed);
  }

  /// Where the payload of the next slot goes.
  struct Place {
    std::byte* data = nullptr;
    uint32_t data_at = 0;
  };

  /// As far as take_consumed() has heard; refresh() before it is given up.
  bool has_slot() const { return next_ - seen_consumed_ < kLaneSlots; }

  /// Room for `length` bytes in the data ring, in one piece; false when there is none yet.
  /// `length`: at most kLaneDataBytes. It is ours only with publish(), and given up by the next reserve(). Pieces begin
  /// at multiples of a cache line.
  bool reserve(uint32_t length, Place& place) {
    uint64_t tail = data_tail_;
    const uint64_t to_end = kLaneDataBytes - tail % kLaneDataBytes;
    if (length > to_end) {
      tail += to_end;
    }
    if (tail + length - data_freed_ > kLaneDataBytes) {
      return false;
    }
    place.data_at = static_cast<uint32_t>(tail % kLaneDataBytes);
    place.data = memory_->data + place.data_at;
    reserved_tail_ = tail + ((length + 63U) & ~63U);
    return true;
  }

  /// The slot that publish() makes visible; its body may be filled.
  Slot& next_slot() { return memory_->slots[next_ % kLaneSlots]; }

  /// Publishes the next slot, with the last reserved place when `uses_data`. fence() after the last one.
  /// The header is filled where it lies: a header built elsewhere and copied would be loaded while its stores still
  /// wait for the previous slot's cache line.
  void publish(SlotKind kind, uint16_t flags, uint32_t length, uint32_t immediate, uint32_t consumed, uint32_t data_at,
               bool uses_data) {
    Slot& slot = next_slot();
    slot.header.kind = kind;
    slot.header.flags = flags;
    slot.header.length = length;
    slot.header.immediate = immediate;
    slot.header.consumed = consumed;
    slot.header.data_at = data_at;
    if (uses_data) {
      data_tail_ = reserved_tail_;
    }
    data_end_[next_ % kLaneSlots] = data_tail_;
    ++next_;
    slot.sequence.store(next_, std::memory_order_release);
    if (uses_data) {
      // The consumer has read the next lines one round ago: they come back while nobody waits for them.
      const std::byte* const next_data = memory_->data + data_tail_ % kLaneDataBytes;
      __builtin_prefetch(next_data, 1);
      __builtin_prefetch(next_data + 64, 1);
      __builtin_prefetch(next_data + 128, 1);
    }
  }

  void publish(const SlotHeader& header, bool uses_data) {
    publish(header.kind, header.flags, header.length, header.immediate, header.consumed, header.data_at, uses_data);
  }

  /// Between what was published and a look at what the consumer waits for, whose heavy fence lies between its wish and
  /// its look at the slots: one of the two sees the other.
  void fence() const { base::light_fence(has_light_fences()); }

  /// Slots published so far (wraps).
  uint32_t published() const { return next_; }
  /// Slots that the consumer is known to be done with (wraps).
  uint32_t consumed() const { return seen_consumed_; }
  /// The slots before `end` are done with. Numbers wrap: right as long as fewer than 2^31 slots lie between.
  bool is_done(uint32_t end) const { return static_cast<int32_t>(seen_consumed_ - end) >= 0; }

  /// Takes over a count that came with a message of the other direction, or the lane's own word. A count that was never
  /// published is a lie of the peer's, and ignored.
  void take_consumed(uint32_t consumed) {
    if (consumed - seen_consumed_ <= next_ - seen_consumed_ && consumed != seen_consumed_) {
      data_freed_ = data_end_[(consumed - 1) % kLaneSlots];
      seen_consumed_ = consumed;
    }
  }
  /// Reads a cache line that the consumer writes: not where it can be helped.
  void refresh() { take_consumed(memory_->consumed.load(std::memory_order_acquire)); }

  Refusal refusal() const {
    const uint32_t value = memory_->refusal.load(std::memory_order_acquire);
    return value <= static_cast<uint32_t>(Refusal::memory) ? static_cast<Refusal>(value) : Refusal::operation;
  }
  /// The consumer holds a message for which no receive is posted.
  /// Of the slot that is next to be consumed, so that a note of before counts no longer.
  bool waits_for_receive() const {
    const uint32_t slot = memory_->waits_for_receive.load(std::memory_order_relaxed);
    return slot != 0 && slot == seen_consumed_ + 1;
  }
  uint32_t rnr_timer_us() const { return memory_->rnr_timer_us.load(std::memory_order_relaxed); }
  uint32_t remote_access() const { return memory_->access.load(std::memory_order_relaxed); }
  uint32_t pulls() const { return memory_->pulls.load(std::memory_order_relaxed); }
  bool is_closed() const { return memory_->is_closed.load(std::memory_order_acquire) != 0; }

  /// The service thread waits for room, or no longer. Then base::heavy_fence(), then refresh(). Thread-safe.
  void wait_for_room(bool waits) { memory_->producer_waits.store(waits ? 1 : 0, std::memory_order_relaxed); }
  bool waits_for_room() const { return memory_->producer_waits.load(std::memory_order_relaxed) != 0; }

  /// The sends that the consumer is not done with are flushed: it must not match them with receives posted after this.
  void end() { memory_->is_ended.store(1, std::memory_order_release); }

  /// From here to end_access() the owner of the region waits before it lets the memory go; look the region up after it.
  /// The first fence is for who polls that memory, the second for that owner, who looks for the key after hiding it.
  void announce_access(uint32_t key) {
    base::remote_access_fence();
    memory_->announced_key.store(key, std::memory_order_relaxed);
    base::light_fence(has_light_fences());
  }
  void end_access() { memory_->announced_key.store(0, std::memory_order_release); }

  /// Its `sequence` is to be acquired before the value or the read buffer is looked at.
  const Response& response(uint32_t operation) const { return memory_->responses[operation % kLaneResponses]; }
  const std::byte* read_buffer() const { return memory_->read_buffer; }

 private:
  bool has_light_fences() const {
    return can_be_fenced_ && memory_->consumer_fences.load(std::memory_order_relaxed) != 0;
  }

  LaneMemory* memory_;
  const bool can_be_fenced_ = base::has_asymmetric_fences();
  uint32_t next_ = 0;
  uint32_t seen_consumed_ = 0;
  uint64_t data_tail_ = 0;  // bytes since the lane began
  uint64_t data_freed_ = 0;
  uint64_t reserved_tail_ = 0;
  std::array<uint64_t, kLaneSlots> data_end_{};
};
static_assert(kLaneDataBytes % 64 == 0 && (uint64_t{1} << 32U) % kLaneSlots == 0);

}  // namespace ringbolt::link
