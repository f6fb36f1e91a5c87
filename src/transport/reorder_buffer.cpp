#include "transport/reorder_buffer.h"

#include <algorithm>
#include <cstring>

namespace ringbolt::transport {

ReorderBuffer::ReorderBuffer(uint32_t mtu_bytes)
    : mtu_bytes_(mtu_bytes),
      slot_of_(kWindowPackets),
      slots_(kWindowPackets),
      bytes_(new std::byte[size_t{kWindowPackets} * mtu_bytes]) {
  free_.reserve(kWindowPackets);
  clear();
}

void ReorderBuffer::clear() {
  held_.reset();
  free_.clear();
  for (uint32_t slot = kWindowPackets; slot-- > 0;) {
    free_.push_back(static_cast<uint16_t>(slot));
  }
}

bool ReorderBuffer::hold(uint64_t sequence, const wire::PacketView& packet) {
  if (packet.payload.size() > mtu_bytes_) {
    return false;
  }
  const bool is_new = !held_.test(sequence);
  if (is_new) {
    held_.set(sequence);
    slot_of_[sequence % kWindowPackets] = free_.back();
    free_.pop_back();
  }
  const uint16_t slot = slot_of_[sequence % kWindowPackets];
  slots_[slot] = {packet.headers, static_cast<uint32_t>(packet.payload.size())};
  if (!packet.payload.empty()) {
    std::memcpy(bytes_.get() + slot * mtu_bytes_, packet.payload.data(), packet.payload.size());
  }
  return is_new;
}

wire::PacketView ReorderBuffer::at(uint64_t sequence) const {
  const uint16_t slot = slot_of_[sequence % kWindowPackets];
  return {slots_[slot].headers, {bytes_.get() + slot * mtu_bytes_, slots_[slot].length}};
}

void ReorderBuffer::release(uint64_t from, uint64_t to) {
  to = std::min(to, from + kWindowPackets);
  for (uint64_t at = held_.find_set(from, to); at != to; at = held_.find_set(at + 1, to)) {
    held_.clear(at);
    free_.push_back(slot_of_[at % kWindowPackets]);
  }
}

wire::SelectiveAck ReorderBuffer::describe(uint64_t missing, uint64_t expected) const {
  wire::SelectiveAck ack;
  for (uint64_t i = 0; i < wire::kSelectiveAckBits; ++i) {
    const uint64_t sequence = missing + 1 + i;
    // What is held lies between `expected` and a window after it; bits beyond that are other packets'.
    if (sequence < expected || (sequence < expected + kWindowPackets && held_.test(sequence))) {
      ack.set(i);
    }
  }
  return ack;
}

}  // namespace ringbolt::transport
