#include "engine/rooms.h"

#include "base/assert.h"

namespace ringbolt::engine {

Rooms::Rows Rooms::make_rows(SlabLayout& layout) {
  const SlotRow small = layout.add_row(kSmallBytes, kSmall);
  return {small, layout.add_row(kLargeBytes, kLarge)};
}

Rooms::Rooms(const Rows& rows, std::span<std::byte> slab) : rows_(rows), slab_(slab) {}

std::optional<Rooms::Room> Rooms::take(uint32_t length_bytes, uint32_t n_kept) {
  RINGBOLT_ASSERT(length_bytes <= kLargePayloadBytes);
  const bool is_small = size_for(length_bytes) == Size::small;
  FreeSlots& free = is_small ? free_small_ : free_large_;
  if (free.size() <= (is_small ? n_kept : 0)) {
    return std::nullopt;
  }
  const uint32_t room = free.take() + (is_small ? 0 : kSmall);
  return Room{slab_.data() + offset_of(room) + kHeaderBytes, room};
}

void Rooms::free(uint32_t room) {
  states_[room] = {};
  if (room < kSmall) {
    free_small_.give(room);
  } else {
    free_large_.give(room - kSmall);
  }
}

void Rooms::note_sent(uint32_t room, Cable& cable) {
  State& state = states_[room];
  state.is_queued = false;
  state.is_repeated = state.is_repeated || state.cable != nullptr;
  state.cable = &cable;
  state.serial = cable.serial(size_of(room));
}

void Rooms::retire(uint32_t room) {
  if (states_[room].is_queued) {
    states_[room].is_retired = true;
  } else if (is_read(room)) {
    retired_.push_back(room);
  } else {
    free(room);
  }
}

void Rooms::retire_received(uint32_t room) {
  if (states_[room].is_queued || states_[room].is_repeated) [[unlikely]] {
    retire(room);
  } else {
    free(room);
  }
}

void Rooms::free_retired() {
  std::erase_if(retired_, [&](uint32_t room) {
    if (is_read(room)) {
      return false;
    }
    free(room);
    return true;
  });
}

void Rooms::wake_resting(uint64_t now_ns) {
  for (; !resting_.empty() && resting_.front().until_ns <= now_ns; resting_.pop_front()) {
    retire(resting_.front().room);
  }
}

}  // namespace ringbolt::engine
