#include "engine/chunk_slots.h"

namespace ringbolt::engine {

ChunkSlots::Rows ChunkSlots::make_rows(SlabLayout& layout) {
  const SlotRow small = layout.add_row(kSmallBytes, kSmall);
  return {small, layout.add_row(kLargeBytes, kLarge)};
}

ChunkSlots::ChunkSlots(const Rows& rows, std::span<std::byte> slab) : rows_(rows), slab_(slab) {}

void ChunkSlots::free(uint32_t slot) {
  states_[slot] = {};
  if (slot < kSmall) {
    free_small_.give(slot);
  } else {
    free_large_.give(slot - kSmall);
  }
}

void ChunkSlots::note_sent(uint32_t slot, Cable& cable) {
  State& state = states_[slot];
  state.is_queued = false;
  state.is_repeated = state.is_repeated || state.cable != nullptr;
  state.cable = &cable;
  state.serial = cable.serial(size_of(slot));
}

void ChunkSlots::retire(uint32_t slot) {
  if (states_[slot].is_queued) {
    states_[slot].is_retired = true;
  } else if (states_[slot].is_resting) {
    return;  // a repetition that is not sent any more: what was sent before may still be read
  } else if (is_read(slot)) {
    retired_.push_back(slot);
  } else {
    free(slot);
  }
}

void ChunkSlots::retire_received(uint32_t slot) {
  if (states_[slot].is_queued || states_[slot].is_repeated) [[unlikely]] {
    retire(slot);
  } else {
    free(slot);
  }
}

void ChunkSlots::retire_at(uint32_t slot, uint64_t ns) {
  states_[slot].is_resting = true;
  states_[slot].is_retired = states_[slot].is_queued;  // it is not sent again
  resting_.push_back({slot, ns});
}

void ChunkSlots::free_retired() {
  std::erase_if(retired_, [&](uint32_t slot) {
    if (is_read(slot)) {
      return false;
    }
    free(slot);
    return true;
  });
}

void ChunkSlots::wake_resting(uint64_t now_ns) {
  for (; !resting_.empty() && resting_.front().until_ns <= now_ns; resting_.pop_front()) {
    states_[resting_.front().slot].is_resting = false;
    retire(resting_.front().slot);
  }
}

}  // namespace ringbolt::engine
