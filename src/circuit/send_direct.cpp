// What a send circuit does beside frames: writes long messages from the program's memory into the receiver's. Hot path:
// see send_circuit.h.
//
// A piece of such a message is a WRITE and the frame of a piece that carries no payload, on the same rail, so that the
// frame arrives after the bytes. Numbers, windows, resending and what counts as taken are those of frames. No piece is
// written twice: the first WRITE may have arrived, and the receive be done, when the second one lands. When a rail
// fails, its pieces go as frames, with the name of the rail; the receiver ends that before the piece counts
// (receive_direct.cpp), so that no WRITE lands in memory that its program has back.
#include <algorithm>

#include "base/clock.h"
#include "base/copy.h"
#include "base/crc.h"
#include "circuit/send_circuit.h"

namespace ringbolt::circuit {
namespace {

/// So long a message waits to be told where it goes; then it goes by frames. A receiver that has posted its receive
/// says so within tens of microseconds, and on a busy machine when its processor's turn comes; one that has not is
/// better served by bytes that are on their way. And two programs that each send before they receive must not wait for
/// each other.
constexpr uint64_t kDirectPatienceNs = 2'000'000;

/// Takes the first frame off what is left of a piece.
void cut(FrameHeader& rest) {
  // A number for each kPayloadBytes was set aside when the piece began (sequences_of()).
  rest.sequence += 1;
  rest.offset += kPayloadBytes;
  rest.length -= kPayloadBytes;
}

}  // namespace

/// Begins with a message that is the next to go, or goes on with it.
SendCircuit::Started SendCircuit::start_direct(Send& send) {
  if (send.message == next_begin_) {
    ++next_begin_;
    clearances_->begin(send.tag);
    // The patience counts from the message's turn, not from its posting.
    begun_ns_ = send.is_direct ? base::now_ns() : 0;
  }
  if (!send.is_direct) {
    return Started::by_frames;
  }
  Direct& direct = direct_of(send.message);
  if (!direct.has_target && !find_target(send, direct)) {
    return send.is_direct ? Started::waits : Started::by_frames;
  }
  while (send.n_copied < send.size) {
    const auto length = static_cast<uint32_t>(std::min<size_t>(send.size - send.n_copied, kWrittenBytes));
    OnRail* const rail = n_free_ > 0 && may_go_on() ? pick_to_write(direct, length) : nullptr;
    if (rail == nullptr) {
      // Rails may come back to have room, or all be gone: what is left then goes by frames.
      send.is_direct = has_way_to_write(direct);
      return send.is_direct ? Started::waits : Started::by_frames;
    }
    const uint16_t slot = free_slots_[--n_free_];
    FrameHeader& header = headers_[slot];
    header = {};
    header.kind = FrameKind::piece;
    header.circuit = static_cast<uint32_t>(id());
    header.length = length;
    header.sequence = next_sequence_;
    header.message = send.message;
    header.offset = send.n_copied;
    header.total = send.size;
    header.tag = send.tag;
    header.clearance = direct.target.clearance;
    header.is_written = true;
    if (has_checksums()) {
      header.has_checksum = true;
      header.checksum = base::crc32c(0, {send.data + send.n_copied, length});
    }
    pieces_[slot] = {true, false, false};
    next_sequence_ += sequences_of(length);
    send.n_copied += length;
    ++send.n_open;
    ++n_open_;
    write(*rail, slot);
  }
  ++n_written_;
  return Started::all;
}

/// False: it waits for that, or has been left to frames.
// The receiver's word is of the receive that this message will get: both sides reckon alike (clearances.h).
bool SendCircuit::find_target(Send& send, Direct& direct) {
  const std::optional<Target>& target = clearances_->of_latest();
  if (target && target->is_direct && send.size <= target->capacity) {  // too long: the receiver says so, as of frames
    direct.target = *target;
    direct.has_target = true;
    return true;
  }
  // A target that is not direct, or too short, will not become another one.
  send.is_direct = !target && has_direct_rail() && base::now_ns() - begun_ns_ < kDirectPatienceNs;
  return false;
}

bool SendCircuit::has_direct_rail() const {
  return std::ranges::any_of(rails_, [](const OnRail& rail) { return !rail.has_failed && rail.rail->is_direct(); });
}

// Both keys are needed: ours for the rail's device, and the receiver's for this rail.
bool SendCircuit::can_write(const OnRail& rail, const Direct& direct) const {
  if (!rail.is_live || rail.is_retiring || !rail.rail->is_direct()) {
    return false;
  }
  const size_t device = rail.rail->device().number;
  return device < kMostDevices && direct.keys[device] && direct.target.key_of(rail.number);
}

bool SendCircuit::has_way_to_write(const Direct& direct) const {
  return std::ranges::any_of(rails_, [&](const OnRail& rail) { return can_write(rail, direct); });
}

SendCircuit::OnRail* SendCircuit::pick_to_write(const Direct& direct, uint32_t length) {
  return pick_of(length, [&](const OnRail& rail) { return rail.rail->may_write() && can_write(rail, direct); });
}

void SendCircuit::write(OnRail& rail, uint16_t slot) {
  FrameHeader& header = headers_[slot];
  const Send& send = sends_[header.message % kMostSends];
  const Direct& direct = direct_of(header.message);
  header.rail = rail.number;
  header.heard = static_cast<uint8_t>(clearances_->next_clearance());
  std::byte* const frame = payload(slot) - kFrameHeaderBytes;
  emit(header, frame);
  rail.slots[rail.n_sent % kWindow] = slot;
  ++rail.n_sent;
  rail.bytes += header.length;
  // The receive holds all of the message (find_target()), so the WRITE stays within it.
  const ibv_sge from{reinterpret_cast<uintptr_t>(send.data) + header.offset, header.length,
                     *direct.keys[rail.rail->device().number]};
  const bool is_posted =
      rail.rail->write_and_send(from, direct.target.address + header.offset, *direct.target.key_of(rail.number), frame,
                                kFrameHeaderBytes, slot + 1U);
  if (!is_posted) {
    drop(rail);
  }
}

/// A piece that was written by a rail that has failed: as frames. False: not now.
bool SendCircuit::copy_instead(uint16_t slot) {
  OnRail* const rail = failure() == FailureKind::none ? pick(kPayloadBytes) : nullptr;
  if (rail == nullptr) {
    return false;
  }
  --n_again_;
  FrameHeader& header = headers_[slot];
  header.is_written = false;
  header.was_tried = true;
  header.tried_rail = header.rail;
  if (header.length > kPayloadBytes) {
    FrameHeader& rest = rest_.emplace_back(header);  // there is one for each slot at most
    cut(rest);
    // One more piece: the cut-off part closes for itself.
    ++sends_[header.message % kMostSends].n_open;
    ++n_open_;
    header.length = kPayloadBytes;
  }
  copy_piece(slot);
  put(*rail, slot);
  return true;
}

/// Before failure() is none: the send's memory is the program's otherwise.
// The checksum is made anew: the piece may have been cut.
void SendCircuit::copy_piece(uint16_t slot) {
  FrameHeader& header = headers_[slot];
  base::copy_short(payload(slot), sends_[header.message % kMostSends].data + header.offset, header.length);
  if (header.has_checksum) {
    header.checksum = base::crc32c(0, {payload(slot), header.length});
  }
}

void SendCircuit::send_rest() {
  while (!rest_.empty() && n_free_ > 0 && failure() == FailureKind::none) {
    FrameHeader& rest = rest_.back();
    const uint32_t length = std::min(rest.length, kPayloadBytes);
    OnRail* const rail = pick(length);
    if (rail == nullptr) {
      return;
    }
    const uint16_t slot = free_slots_[--n_free_];
    headers_[slot] = rest;
    headers_[slot].length = length;
    pieces_[slot] = {true, false, false};
    if (length < rest.length) {
      cut(rest);
      ++sends_[rest.message % kMostSends].n_open;
      ++n_open_;
    } else {
      rest_.pop_back();
    }
    copy_piece(slot);
    put(*rail, slot);
  }
}

void SendCircuit::note_taken(uint16_t slot) {
  pieces_[slot].is_taken = true;
  // A copied one needs the program's memory no more. For a written one the device may still read it, where the
  // receiver is faster than the completion.
  if (!headers_[slot].is_written || pieces_[slot].is_completed) {
    close_piece(slot);
  }
}

/// The device has done with a piece's memory. The receiver's word that it was taken may come before this, or after.
void SendCircuit::note_completed(uint32_t cookie) {
  if (cookie >= kRepeatCookie) {
    note_repeat_done(static_cast<uint16_t>(cookie - kRepeatCookie));
    return;
  }
  // Cookies are slots plus 1, as 0 is that of greetings.
  if (cookie == 0 || cookie > pieces_.size()) {
    return;  // a greeting
  }
  const auto slot = static_cast<uint16_t>(cookie - 1);
  pieces_[slot].is_completed = true;
  if (pieces_[slot].is_open && pieces_[slot].is_taken) {
    close_piece(slot);
  }
}

void SendCircuit::close_piece(uint16_t slot) {
  pieces_[slot].is_open = false;
  free_slots_[n_free_++] = slot;
  Send& send = sends_[headers_[slot].message % kMostSends];
  --send.n_open;
  --n_open_;
  if (send.n_open == 0 && send.n_copied == send.size) {
    send.is_done.store(true, std::memory_order_release);
  }
  if (n_open_ == 0 && n_waiting_ == 0) {
    set_awaited(false);
  }
}

/// A rail has failed, and with it whatever its device still did: pieces that were taken are complete.
void SendCircuit::note_dropped(const OnRail& rail) {
  for (uint16_t slot = 0; slot < n_slots_; ++slot) {
    if (pieces_[slot].is_open && pieces_[slot].is_taken && headers_[slot].rail == rail.number) {
      close_piece(slot);
    }
  }
}

void SendCircuit::hear_clear_to_send(const Rail::Received& received, const FrameHeader& header) {
  const std::span<const std::byte> payload = received.head.subspan(kShortHeaderBytes);
  const auto is_unknown = [&](uint16_t rail) { return rail > most_rail_; };
  if (!parse_clear_to_send(header, payload, *clear_to_send_) ||
      std::ranges::any_of(std::span(clear_to_send_->rails).first(clear_to_send_->n_rails), is_unknown) ||
      !clearances_->hear(*clear_to_send_)) {
    fail(FailureKind::protocol, peer_name() + " clears receives that can't be");
  }
}

// The program's memory is its own again when this returns: rails that write are in ERR or destroyed then.
void SendCircuit::let_go() {
  n_waiting_ = 0;
  set_awaited(false);
  if (n_open_ == 0) {
    return;
  }
  for (OnRail& rail : rails_) {
    if (!rail.has_failed && rail.rail->is_direct()) {
      (void)rail.rail->fail("its circuit has ended while it was writing");
      rail.has_failed = true;
      rail.is_live = false;
    }
  }
  n_again_ = 0;  // nothing is read from the program's memory any more
  rest_.clear();
}

}  // namespace ringbolt::circuit
