// Hot path.
#include "link/stream_window.h"

#include <bit>
#include <new>

#include "base/assert.h"
#include "base/copy.h"
#include "link/stream_session.h"
#include "wire/bytes.h"

namespace ringbolt::link {

static_assert(kMaxStreamPacketBytes + kStreamNumberBytes == kMaxStreamMessageBytes);

StreamSendWindow::StreamSendWindow(uint32_t packets)
    : slots_(packets), memory_(std::make_unique_for_overwrite<std::byte[]>(packets * kMaxStreamMessageBytes)) {
  RINGBOLT_ASSERT(std::has_single_bit(packets));
}

std::byte* StreamSendWindow::place(uint64_t number) const {
  return memory_.get() + (number & (slots_.size() - 1)) * kMaxStreamMessageBytes;
}

std::span<std::byte> StreamSendWindow::reserve() {
  if (is_full()) {
    return {};
  }
  return {place(end_) + kStreamNumberBytes, kMaxStreamPacketBytes};
}

void StreamSendWindow::commit(size_t bytes) {
  RINGBOLT_ASSERT(!is_full() && bytes <= kMaxStreamPacketBytes);
  wire::put_le(std::span(place(end_), kStreamNumberBytes), 0, end_);
  slot(end_) = {static_cast<uint32_t>(kStreamNumberBytes + bytes), Phase::waiting};
  ++end_;
}

std::optional<uint64_t> StreamSendWindow::first_waiting() const {
  if (returned_ != 0) {
    for (uint64_t number = oldest_; number != fresh_; ++number) {
      if (slot(number).phase == Phase::waiting) {
        return number;
      }
    }
  }
  return fresh_ != end_ ? std::optional(fresh_) : std::nullopt;
}

std::span<const std::byte> StreamSendWindow::message(uint64_t number) const {
  return {place(number), slot(number).bytes};
}

void StreamSendWindow::on_assigned(uint64_t number) {
  RINGBOLT_ASSERT(slot(number).phase == Phase::waiting);
  slot(number).phase = Phase::assigned;
  if (number == fresh_) {
    ++fresh_;
  } else {
    --returned_;
  }
}

void StreamSendWindow::on_returned(uint64_t number) {
  RINGBOLT_ASSERT(slot(number).phase == Phase::assigned);
  slot(number).phase = Phase::waiting;
  ++returned_;
  ++returned_packets_;
}

void StreamSendWindow::on_acknowledged(uint64_t number) {
  RINGBOLT_ASSERT(slot(number).phase == Phase::assigned);
  slot(number).phase = Phase::acknowledged;
  while (oldest_ != fresh_ && slot(oldest_).phase == Phase::acknowledged) {
    ++oldest_;
  }
}

void StreamSendWindow::reset() {
  oldest_ = fresh_ = end_ = 0;
  returned_ = 0;
}

StreamOrder::StreamOrder(uint32_t packets) : slots_(packets) { RINGBOLT_ASSERT(std::has_single_bit(packets)); }

StreamOrder::Verdict StreamOrder::offer(uint64_t number, std::span<const std::byte> packet) {
  if (number < next_) {
    return Verdict::duplicate;
  }
  if (number - next_ >= slots_.size()) {
    return Verdict::beyond;
  }
  if (number == next_) {
    Slot& slot = slots_[number & (slots_.size() - 1)];
    kept_ -= slot.is_held ? 1U : 0U;
    slot.is_held = false;
    ++next_;
    return Verdict::next;
  }
  Slot& slot = slots_[number & (slots_.size() - 1)];
  if (slot.is_held) {
    return Verdict::duplicate;
  }
  if (slot.packet == nullptr) {
    slot.packet.reset(new (std::nothrow) std::byte[kMaxStreamPacketBytes]);
    if (slot.packet == nullptr) {
      return Verdict::no_memory;
    }
  }
  base::copy(slot.packet.get(), packet.data(), packet.size());
  slot.bytes = static_cast<uint32_t>(packet.size());
  slot.is_held = true;
  ++kept_;
  return Verdict::kept;
}

std::optional<std::span<const std::byte>> StreamOrder::take() {
  Slot& slot = slots_[next_ & (slots_.size() - 1)];
  if (!slot.is_held) {
    return std::nullopt;
  }
  slot.is_held = false;
  --kept_;
  ++next_;
  return std::span<const std::byte>(slot.packet.get(), slot.bytes);
}

void StreamOrder::reset() {
  for (Slot& slot : slots_) {
    slot.is_held = false;
  }
  next_ = 0;
  kept_ = 0;
}

}  // namespace ringbolt::link
