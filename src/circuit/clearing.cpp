// Hot path: see clearing.h.
#include "circuit/clearing.h"

#include <algorithm>

namespace ringbolt::circuit {

bool Clearing::is_long(const Receive& receive, uint32_t n_parts) const {
  return std::ranges::any_of(std::span(receive.parts).first(n_parts),
                             [&](const Part& part) { return part.capacity >= least_bytes_; });
}

void Clearing::post(Receive& receive, const Registered* const* registered, std::optional<uint32_t> base) {
  const bool is_worth_it = is_long(receive, receive.n_parts);
  const bool takes_base = is_worth_it && base && (!is_known_ || next_ != told_);
  if (takes_base) {
    next_ = due_ = told_;  // those between are full: nobody has to know them
    is_known_ = true;
  }
  if (!is_known_) {
    return;
  }
  // The sender does not answer: what it has not been told yet is forgotten, and it starts anew from the next base.
  if (next_ - first_unheard_ == kMostKept) {
    next_ = due_ = told_;
    is_known_ = false;
    return;
  }
  receive.clearance = next_;
  Kept& one = kept(next_++);
  one.is_base = takes_base;
  one.base_message = base.value_or(0);
  one.receive.n_parts = receive.n_parts;
  for (uint32_t i = 0; i < receive.n_parts; ++i) {
    Part& part = receive.parts[i];
    ClearedPart& cleared = one.receive.parts[i];
    cleared = {};
    cleared.tag = part.tag;
    const Registered* const memory = registered == nullptr ? nullptr : registered[i];
    // A registration that does not cover the buffer is the program's mistake: the message then goes by frames.
    if (part.capacity >= least_bytes_ && memory != nullptr && memory->holds(part.data, part.capacity)) {
      cleared.is_direct = part.is_cleared = true;
      cleared.capacity = part.capacity;
      cleared.address = reinterpret_cast<uintptr_t>(part.data);
      one.keys[i] = memory->keys();
    }
  }
  if (is_worth_it) {
    due_ = next_;
  }
}

void Clearing::heard(uint8_t lowest_bits) {
  const uint8_t n = static_cast<uint8_t>(lowest_bits - static_cast<uint8_t>(first_unheard_));
  if (n == 0 || n > told_ - first_unheard_) {
    return;
  }
  first_unheard_ += n;
  while (n_frames_ > 0 && static_cast<int32_t>(frames_[first_frame_] - first_unheard_) <= 0) {
    first_frame_ = (first_frame_ + 1) % kMostFrames;
    --n_frames_;
  }
}

/// A buffer that is not registered with the devices of all rails goes by frames.
void Clearing::put_keys(Kept& of, std::span<const WrittenRail> rails, ClearedReceive& to) const {
  to = of.receive;
  for (uint32_t i = 0; i < to.n_parts; ++i) {
    ClearedPart& part = to.parts[i];
    for (size_t rail = 0; rail < rails.size() && part.is_direct; ++rail) {
      const size_t device = rails[rail].device;
      part.is_direct = device < kMostDevices && of.keys[i][device].has_value();
      if (part.is_direct) {
        part.keys[rail] = of.keys[i][device]->remote;
      }
    }
  }
}

uint32_t Clearing::tell(FrameHeader header, std::span<const WrittenRail> rails,
                        std::span<std::byte, kClearToSendBytes> to) {
  frame_.first = told_;
  frame_.is_base = kept(told_).is_base;
  frame_.base_message = frame_.is_base ? kept(told_).base_message : 0;
  frame_.n_rails = static_cast<uint32_t>(rails.size());
  for (size_t i = 0; i < rails.size(); ++i) {
    frame_.rails[i] = rails[i].number;
  }
  frame_.n_receives = 0;
  size_t room = room_for_receives(frame_.n_rails);
  while (told_ != due_ && frame_.n_receives < kMostPerClearToSend) {
    Kept& one = kept(told_);
    ClearedReceive& receive = frame_.receives[frame_.n_receives];
    put_keys(one, rails, receive);
    const size_t bytes = bytes_of(receive, frame_.n_rails);
    // A base can only be a frame's first one: the header has one place for its message.
    if (bytes > room || (one.is_base && frame_.n_receives > 0)) {
      break;
    }
    room -= bytes;
    ++frame_.n_receives;
    ++told_;
  }
  frames_[(first_frame_ + n_frames_++) % kMostFrames] = told_;
  return emit(header, frame_, to);
}

}  // namespace ringbolt::circuit
