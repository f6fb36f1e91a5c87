#pragma once

// Hot path: no allocation, lock, system call, exception or logging per message.

#include "base/asymmetric_fence.h"
#include "link/lane.h"

namespace ringbolt::link {

/// The receiving end of a lane. It trusts nothing that it reads there: bounds are checked before memory is touched.
/// Not thread-safe: one caller at a time, except where said.
/// It does not own the memory, which must outlive it. The one caller is who holds the queue pair's lock for receiving.
class LaneConsumer {
 public:
  explicit LaneConsumer(LaneMemory& memory) : memory_(&memory) {
    memory.consumer_fences.store(can_be_fenced_ ? 1 : 0, std::memory_order_relaxed);
  }

  /// A filled slot waits. Thread-safe.
  bool has_slot() const {
    const uint32_t next = next_.load(std::memory_order_relaxed);
    return memory_->slots[next % kLaneSlots].sequence.load(std::memory_order_acquire) == next + 1;
  }

  /// The header of the waiting slot; false when there is none.
  bool peek(SlotHeader& header) const {
    if (!has_slot()) {
      return false;
    }
    header = slot().header;
    return true;
  }
  /// What the last of the waiting slots says of the lane in the other direction, which is the producer's latest word on
  /// it; false when none waits.
  bool last_heard(uint32_t& consumed) const {
    const uint32_t next = next_.load(std::memory_order_relaxed);
    uint32_t end = next;
    while (end - next < kLaneSlots &&
           memory_->slots[end % kLaneSlots].sequence.load(std::memory_order_acquire) == end + 1) {
      consumed = memory_->slots[end % kLaneSlots].header.consumed;
      ++end;
    }
    return end != next;
  }
  /// The fields of the waiting slot's body, copied out.
  template <class Fields>
  Fields fields() const {
    Fields fields;
    __builtin_memcpy(&fields, slot().body, sizeof fields);
    return fields;
  }
  /// Memory that the producer may change meanwhile: kInlineBytes of it, so copy out of it and then look.
  const std::byte* inline_body() const { return slot().body; }
  /// The payload in the data ring; nullptr when the header points outside it.
  const std::byte* payload(const SlotHeader& header) const {
    if (header.length > kLaneDataBytes || header.data_at > kLaneDataBytes - header.length) {
      return nullptr;
    }
    return memory_->data + header.data_at;
  }

  /// Done with the waiting slot. The producer learns it from tell() or with the next message to it. A release, since
  /// that message may be another thread's: what was read out of the slot must have been read before it is filled anew.
  void release() { next_.store(next_.load(std::memory_order_relaxed) + 1, std::memory_order_release); }
  /// Slots done with (wraps). Pairs with release(). Thread-safe.
  uint32_t consumed() const { return next_.load(std::memory_order_acquire); }

  /// The producer does not know yet how far we are.
  bool has_news() const { return untold() != 0; }
  uint32_t untold() const { return consumed() - told_.load(std::memory_order_relaxed); }
  /// A message to the producer carried the count. Thread-safe.
  void note_told(uint32_t consumed) { told_.store(consumed, std::memory_order_relaxed); }
  /// Tells the producer how far we are; true when its service thread waits for that. A light fence.
  bool tell() {
    const uint32_t consumed = this->consumed();
    told_.store(consumed, std::memory_order_relaxed);
    memory_->consumed.store(consumed, std::memory_order_release);
    base::light_fence(can_be_fenced_ && memory_->producer_fences.load(std::memory_order_relaxed) != 0);
    return memory_->producer_waits.load(std::memory_order_relaxed) != 0;
  }
  /// The message that waits: the producer takes it for that of slot consumed(). tell() after it.
  void refuse(Refusal why) { memory_->refusal.store(static_cast<uint32_t>(why), std::memory_order_release); }
  /// The waiting slot finds no receive posted; the producer's RNR timer runs while the note stands. False: it stood.
  bool note_waits_for_receive() {
    if (has_noted_wait_) {
      return false;
    }
    has_noted_wait_ = true;
    memory_->waits_for_receive.store(consumed() + 1, std::memory_order_relaxed);
    return true;
  }
  void note_receive_posted() {
    if (has_noted_wait_) {
      has_noted_wait_ = false;
      memory_->waits_for_receive.store(0, std::memory_order_relaxed);
    }
  }

  // Relaxed: the producer may go by the word of a moment ago, as packets do that are under way.
  void set_access(uint32_t access) { memory_->access.store(access, std::memory_order_relaxed); }
  void set_rnr_timer_us(uint32_t timer_us) { memory_->rnr_timer_us.store(timer_us, std::memory_order_relaxed); }
  /// What it wishes to read itself, a bit for each class of lengths.
  void set_pulls(uint32_t classes) { memory_->pulls.store(classes, std::memory_order_relaxed); }
  /// For good. Thread-safe. The caller then waits for announced_key() where memory is to go, behind a heavy fence.
  void close() { memory_->is_closed.store(1, std::memory_order_release); }
  /// The region that the producer is copying from or to; 0 for none. Thread-safe.
  uint32_t announced_key() const { return memory_->announced_key.load(std::memory_order_seq_cst); }

  /// The producer has flushed its sends; those in the slots may still take a receive that was posted before.
  /// Thread-safe.
  bool is_ended() const { return memory_->is_ended.load(std::memory_order_acquire) != 0; }

  /// `operation`: as the producer numbers them; it keeps to kLaneResponses at a time. What is in the read buffer is
  /// released with it.
  void respond(uint32_t operation, uint64_t value) {
    Response& response = memory_->responses[operation % kLaneResponses];
    response.value = value;
    response.sequence.store(operation + 1, std::memory_order_release);
  }
  /// kLaneReadBufferBytes; the producer has one READ under way at a time.
  std::byte* read_buffer() { return memory_->read_buffer; }

 private:
  const Slot& slot() const { return memory_->slots[next_.load(std::memory_order_relaxed) % kLaneSlots]; }

  LaneMemory* memory_;
  bool can_be_fenced_ = base::has_asymmetric_fences();
  // Written by the caller under its lock; read by anybody who looks whether there is something to do.
  std::atomic<uint32_t> next_{0};
  std::atomic<uint32_t> told_{0};
  bool has_noted_wait_ = false;
};

}  // namespace ringbolt::link
