// What a receive circuit does beside frames where its sender writes to the program's memory. Hot path: see
// receive_circuit.h.
//
// A receive is done, and its memory the program's again, when frames have said of all its pieces that they are there.
// On RC a piece's WRITE is there before its frame is, so by the rail of that frame nothing comes late. When a rail
// fails, what was written by it and is not known to be taken comes again, as frames, for which this end knows whether
// it has them; it is never written a second time. As far as this end knows the WRITE may still be on its way: the
// frame names its rail, which ends here before the piece counts.
#include <algorithm>

#include <fmt/format.h>

#include "base/crc.h"
#include "circuit/receive_circuit.h"

namespace ringbolt::circuit {

/// From which message on none is matched, if all receives so far are full: what a receive that is posted now may be
/// told of without any other.
std::optional<uint32_t> ReceiveCircuit::base() const {
  if (!queue_.is_taken()) {
    return std::nullopt;
  }
  for (uint32_t number = first_unmatched_; number != next_message_; ++number) {
    const Message& one = messages_[number % kMostMessages];
    // One between them is matched: a base can't say that.
    if (one.number != number || one.stage != Message::Stage::unmatched) {
      return std::nullopt;
    }
  }
  return first_unmatched_;
}

/// All frames of clearances go by one rail, so that they come in order; by another one when that has failed.
// Null: no rail by which one may write; nothing is told, and all goes by frames.
ReceiveCircuit::OnRail* ReceiveCircuit::rail_for_clear_to_send() {
  OnRail* first = nullptr;
  for (OnRail& rail : rails_) {
    if (rail.has_failed || !rail.is_greeted || !rail.rail->is_direct()) {
      continue;
    }
    if (clear_to_send_rail_ == rail.number) {
      return &rail;
    }
    first = first == nullptr ? &rail : first;
  }
  if (first != nullptr) {
    // What the old rail carried may be lost.
    clear_to_send_rail_ = first->number;
    clearing_->restart();
  }
  return first;
}

void ReceiveCircuit::tell_clearances() {
  if (!clearing_->has_something_to_tell() || failure() != FailureKind::none) {
    return;
  }
  OnRail* const by = rail_for_clear_to_send();
  if (by == nullptr) {
    return;
  }
  // Any direct rail may be written by, not only the one that carries the frame.
  std::array<Clearing::WrittenRail, kMostRails> rails;
  size_t n_rails = 0;
  for (const OnRail& rail : rails_) {
    if (!rail.has_failed && rail.is_greeted && rail.rail->is_direct() && n_rails < kMostRails) {
      rails[n_rails++] = {rail.number, rail.rail->device().number};
    }
  }
  while (clearing_->has_something_to_tell() && by->rail->may_send() && !by->has_failed) {
    FrameHeader header;
    header.rail = by->number;
    header.circuit = static_cast<uint32_t>(id());
    // Its last frame has been heard, and so sent, or its rail has failed.
    const size_t place = n_clear_to_send_++ % kClearToSendPlaces;
    std::byte* const at = answers_.bytes().data() + kClearToSendAt + place * kClearToSendBytes;
    const uint32_t length = clearing_->tell(header, std::span(rails).first(n_rails),
                                            std::span<std::byte, kClearToSendBytes>(at, kClearToSendBytes));
    by->has_failed = !by->rail->send(at, length);
  }
}

/// By the rail that a piece was written by before it came by `rail` nothing can come late, once this returns.
void ReceiveCircuit::end_tried(const OnRail& rail, uint16_t number) {
  OnRail* const tried = find(number);
  if (tried != nullptr && tried != &rail && !tried->has_failed) {
    // fail() returns only when its queue pair is in ERR or destroyed.
    tried->has_failed = !tried->rail->fail("the sender has given it up");
  }
}

/// Of a piece that is said to be at its place. False: it can't be, and the circuit has failed.
bool ReceiveCircuit::check_written(const Message& of, const FrameHeader& header) {
  const Part& part = *of.place.part;
  if (!part.is_cleared || of.place.receive->clearance != header.clearance) {
    fail(FailureKind::protocol,
         fmt::format("{} says that it has written {} bytes of message {} by clearance {}, which are to go "
                     "elsewhere",
                     peer_name(), header.length, header.message, header.clearance));
    return false;
  }
  // Read out of the program's memory: it must leave a buffer alone until its receive is done.
  if (header.has_checksum && base::crc32c(0, {part.data + header.offset, header.length}) != header.checksum) {
    fail(FailureKind::protocol,
         fmt::format(
             "the checksum of {} bytes at {} of message {}, which {} has written, is wrong: memory, a cable or a "
             "device spoils data",
             header.length, header.offset, header.message, peer_name()));
    return false;
  }
  return true;
}

/// Its memory is the sender's again once it knows.
void ReceiveCircuit::tell_owed() {
  owes_ = false;
  for (OnRail& rail : rails_) {
    if (!rail.has_failed && rail.n_taken != rail.n_told) {
      tell_taken(rail);
    }
  }
}

// When this returns no WRITE lands in the program's memory any more: fail() ends with the queue pair in ERR or
// destroyed.
void ReceiveCircuit::let_go() {
  for (OnRail& rail : rails_) {
    if (clearing_ && !queue_.is_empty() && !rail.has_failed && rail.rail->is_direct()) {
      rail.has_failed = !rail.rail->fail("its circuit has ended while it could be written by");
    }
  }
}

}  // namespace ringbolt::circuit
