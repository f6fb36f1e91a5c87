#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "base/assert.h"
#include "engine/cable.h"
#include "engine/slots.h"

namespace ringbolt::engine {

/// Memory of ours in the slab, a message each, for what is sent. A slot is taken, filled, waits in a queue, is sent,
/// perhaps more than once, and is free again when nobody needs what it holds and nobody reads it any more. Not
/// thread-safe.
/// Owned by the engine, over memory of the station's. Used under the lock of the engine's owner. A slot's id says which
/// row it is of: small ones come first.
class ChunkSlots {
 public:
  // Together they bound what is unacknowledged of all flows, and so keep each within kSequenceWindow.
  static constexpr uint32_t kLarge = 96;
  static constexpr uint32_t kSmall = 256;

  /// Rows of the slab.
  struct Rows {
    SlotRow small;
    SlotRow large;
  };
  static Rows make_rows(SlabLayout& layout);
  ChunkSlots(const Rows& rows, std::span<std::byte> slab);

  struct Slot {
    std::byte* bytes = nullptr;  ///< of the payload
    uint32_t id = 0;
  };
  /// For a payload of up to kLargePayloadBytes; nothing while all are in use, or all small ones but `n_kept`.
  std::optional<Slot> take(uint32_t length_bytes, uint32_t n_kept) {
    RINGBOLT_ASSERT(length_bytes <= kLargePayloadBytes);
    const bool is_small = size_for(length_bytes) == Size::small;
    FreeSlots& free = is_small ? free_small_ : free_large_;
    if (free.size() <= (is_small ? n_kept : 0)) {
      return std::nullopt;
    }
    const uint32_t slot = free.take() + (is_small ? 0 : kSmall);
    return Slot{slab_.data() + offset_of(slot) + kHeaderBytes, slot};
  }
  /// Nobody needs or reads it.
  void free(uint32_t slot);
  static Size size_of(uint32_t slot) { return slot < kSmall ? Size::small : Size::large; }
  static Size size_for(uint32_t length_bytes) { return length_bytes <= kSmallPayloadBytes ? Size::small : Size::large; }
  /// In the slab, of the message: header and payload.
  size_t offset_of(uint32_t slot) const {
    return slot < kSmall ? rows_.small.offset_of(slot) : rows_.large.offset_of(slot - kSmall);
  }
  bool run_low() const { return free_large_.size() < kLarge / 2 || free_small_.size() < kSmall / 2; }

  /// It was handed to a device at least once, whether or not it waits to be sent again.
  bool was_sent(uint32_t slot) const { return states_[slot].cable != nullptr; }
  bool is_queued(uint32_t slot) const { return states_[slot].is_queued; }
  void note_queued(uint32_t slot) { states_[slot].is_queued = true; }
  /// It holds a copy of what has been sent from another slot: that it has been received says nothing of this one.
  void note_copy(uint32_t slot) { states_[slot].is_repeated = true; }
  void note_unqueued(uint32_t slot) { states_[slot].is_queued = false; }
  /// It was handed to the cable's device as the last message.
  void note_sent(uint32_t slot, Cable& cable);
  /// Whether a device still reads it: it must not be written, neither with a header for another cable nor with another
  /// message.
  bool is_read(uint32_t slot) const {
    const State& state = states_[slot];
    return state.cable != nullptr && !state.cable->is_done_with(size_of(slot), state.serial);
  }
  /// Of one that is read: whether the device has been asked to tell when that is over.
  bool will_be_told_of(uint32_t slot) const {
    return states_[slot].cable->will_tell_of(size_of(slot), states_[slot].serial);
  }

  /// Nobody needs what it holds any more: it is free once it is in no queue and no device reads it.
  // States: taken (by who fills it), queued, read by a device, and none of these: then free.
  void retire(uint32_t slot);
  /// The same of what its destination has received, so that it has been read if it was sent once.
  void retire_received(uint32_t slot);
  /// The same; but until then somebody may read it where it is. Times don't go back from call to call.
  void retire_at(uint32_t slot, uint64_t ns);
  /// It still waits in a queue although nobody needs it.
  bool is_needless(uint32_t slot) const { return states_[slot].is_retired; }
  /// Frees those that are retired and read no longer.
  void free_retired();
  /// Retires those whose time has come.
  void wake_resting(uint64_t now_ns);

 private:
  struct State {
    bool is_queued = false;
    bool is_retired = false;   // while it is queued
    bool is_resting = false;   // in resting_, which retires it
    bool is_repeated = false;  // what it holds was handed to a device more than once
    Cable* cable = nullptr;    // to whose device it was handed last, and as which message
    uint32_t serial = 0;
  };
  struct Resting {
    uint32_t slot = 0;
    uint64_t until_ns = 0;
  };

  Rows rows_;
  std::span<std::byte> slab_;
  FreeSlots free_small_{kSmall};
  FreeSlots free_large_{kLarge};
  std::vector<State> states_ = std::vector<State>(kSmall + kLarge);  // small ones, then large ones
  std::vector<uint32_t> retired_;
  std::deque<Resting> resting_;  // in the order of their times
};

}  // namespace ringbolt::engine
