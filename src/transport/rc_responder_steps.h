#pragma once

// How RcResponder executes a request. Hot path: no allocation, lock, clock, virtual call or I/O per packet.

#include "transport/rc_responder.h"

namespace ringbolt::transport {

template <ResponderHost Host>
void RcResponder::on_packet(uint64_t, const wire::PacketView& packet, Host& host) {
  const wire::Bth& bth = packet.headers.bth;
  if (has_failed_ || !wire::is_rc(bth.opcode) || !wire::is_request(bth.opcode)) {
    ++counters_.dropped;
    return;
  }
  const int32_t ahead = psn_distance(bth.psn, expected_psn());
  if (ahead < 0) {
    on_duplicate(packet, static_cast<uint32_t>(-ahead), host);
    return;
  }
  if (ahead > 0) {
    on_early(packet, expected_ + static_cast<uint32_t>(ahead));
    return;
  }
  uint64_t sequence = expected_;
  Turn turn = execute(packet, host);
  if (early_ == nullptr || early_->is_empty()) {
    return;
  }
  early_->release(sequence, expected_);  // copies of it, too
  while (turn == Turn::executed && early_->has(expected_)) {
    sequence = expected_;
    turn = execute(early_->at(sequence), host);
    early_->release(sequence, expected_);
  }
  if (is_not_ready_) {
    early_->clear();  // the peer sends all of it again after its pause
  } else if (!has_failed_) {
    acknowledge();  // tells what was repaired, and what is still missing
  }
}

template <class Host>
RcResponder::Turn RcResponder::execute(const wire::PacketView& packet, Host& host) {
  const uint8_t opcode = packet.headers.bth.opcode;
  if (!message_.allows(packet, attributes_.mtu_bytes)) {
    return fail(wire::kNakInvalidRequest, ResponderFailure::invalid_request, host);
  }
  const Turn turn = wire::is_send(opcode)    ? execute_send(packet, host)
                    : wire::is_write(opcode) ? execute_write(packet, host)
                    : wire::has_reth(opcode) ? execute_read(packet, host)
                                             : execute_atomic(packet, host);
  if (turn == Turn::executed) {
    ++counters_.packets;
    is_silent_ = false;
    is_not_ready_ = false;
  }
  return turn;
}

template <class Host>
RcResponder::Turn RcResponder::execute_send(const wire::PacketView& packet, Host& host) {
  const uint8_t opcode = packet.headers.bth.opcode;
  if (wire::begins_message(opcode)) {
    if (!host.take_receive()) {
      return not_ready();
    }
    message_ = {.kind = InboundMessage::send};
  }
  if (!packet.payload.empty()) {
    const Placed placed = host.place_receive(message_.done, packet.payload);
    if (placed == Placed::too_long) {
      return fail(wire::kNakInvalidRequest, ResponderFailure::receive_too_short, host);
    }
    if (placed == Placed::protection) {
      return fail(wire::kNakRemoteOperation, ResponderFailure::receive_protection, host);
    }
    message_.done += static_cast<uint32_t>(packet.payload.size());
  }
  if (wire::ends_message(opcode)) {
    return finish_message(packet, Received::send, host);
  }
  advance(1, packet.headers.bth.wants_ack);
  return Turn::executed;
}

template <class Host>
RcResponder::Turn RcResponder::execute_write(const wire::PacketView& packet, Host& host) {
  const uint8_t opcode = packet.headers.bth.opcode;
  const wire::Reth& reth = packet.headers.reth;
  if (wire::begins_message(opcode) && reth.length != 0 &&
      !host.may_access(reth.address, reth.length, reth.key, Access::write)) {
    return fail(wire::kNakRemoteAccess, ResponderFailure::remote_access, host);
  }
  // Before any of its bytes are written: a packet that finds no receive is repeated whole.
  if (wire::has_immediate(opcode) && !host.take_receive()) {
    return not_ready();
  }
  if (wire::begins_message(opcode)) {
    message_ = {.kind = InboundMessage::write, .total = reth.length, .key = reth.key, .address = reth.address};
  }
  if (!packet.payload.empty() && !host.write(message_.address + message_.done, message_.key, packet.payload)) {
    return fail(wire::kNakRemoteAccess, ResponderFailure::remote_access, host);
  }
  message_.done += static_cast<uint32_t>(packet.payload.size());
  if (wire::ends_message(opcode)) {
    return finish_message(packet, Received::write_immediate, host);
  }
  advance(1, packet.headers.bth.wants_ack);
  return Turn::executed;
}

template <class Host>
RcResponder::Turn RcResponder::finish_message(const wire::PacketView& packet, Received::Kind kind, Host& host) {
  const wire::Headers& headers = packet.headers;
  const bool has_immediate = wire::has_immediate(headers.bth.opcode);
  const bool invalidates = wire::has_invalidate(headers.bth.opcode);
  if (invalidates && !host.invalidate(headers.invalidate_key)) {
    return fail(wire::kNakRemoteAccess, ResponderFailure::remote_access, host);
  }
  if (kind == Received::send || has_immediate) {
    host.complete_receive({.kind = kind,
                           .has_immediate = has_immediate,
                           .invalidated = invalidates,
                           .is_solicited = headers.bth.is_solicited,
                           .length = message_.done,
                           .immediate = has_immediate ? headers.immediate : 0,
                           .invalidated_key = invalidates ? headers.invalidate_key : 0});
  }
  message_ = {};
  ++messages_;
  advance(1, headers.bth.wants_ack);
  return Turn::executed;
}

template <class Host>
RcResponder::Turn RcResponder::execute_read(const wire::PacketView& packet, Host& host) {
  const wire::Reth& reth = packet.headers.reth;
  if (reth.length != 0 && !host.may_access(reth.address, reth.length, reth.key, Access::read)) {
    return fail(wire::kNakRemoteAccess, ResponderFailure::remote_access, host);
  }
  // Not executed, and not acknowledged: its sender repeats it when its timer runs out, or sooner if it is one of ours.
  if (!responses_.has_room()) {
    ++counters_.dropped;
    return Turn::waits;
  }
  const uint32_t packets = packets_of(reth.length, attributes_.mtu_bytes);
  ++messages_;
  push_read(packet.headers.bth.psn, reth, packets);
  advance(packets, false);
  return Turn::executed;
}

template <class Host>
RcResponder::Turn RcResponder::execute_atomic(const wire::PacketView& packet, Host& host) {
  const wire::AtomicEth& atomic = packet.headers.atomic;
  if (atomic.address % kAtomicBytes != 0) {
    return fail(wire::kNakInvalidRequest, ResponderFailure::invalid_request, host);
  }
  if (!host.may_access(atomic.address, kAtomicBytes, atomic.key, Access::atomic)) {
    return fail(wire::kNakRemoteAccess, ResponderFailure::remote_access, host);
  }
  if (!responses_.has_room()) {
    ++counters_.dropped;
    return Turn::waits;
  }
  const std::optional<uint64_t> found =
      packet.headers.bth.opcode == wire::kRcCompareSwap
          ? host.compare_swap(atomic.address, atomic.key, atomic.compare, atomic.swap_or_add)
          : host.fetch_add(atomic.address, atomic.key, atomic.swap_or_add);
  if (!found) {
    return fail(wire::kNakRemoteAccess, ResponderFailure::remote_access, host);
  }
  ++messages_;
  remember(packet.headers.bth.psn, *found);
  push_atomic(packet.headers.bth.psn, *found);
  advance(1, false);
  return Turn::executed;
}

/// IBTA volume 1, section 9.7.5.1.4: SEND and WRITE are acknowledged again, READs read again, atomics answered from
/// memory.
template <class Host>
void RcResponder::on_duplicate(const wire::PacketView& packet, uint32_t packets_behind, Host& host) {
  ++counters_.duplicates;
  const wire::Headers& headers = packet.headers;
  if (wire::is_atomic_request(headers.bth.opcode)) {
    const Executed* executed = recall(headers.bth.psn);
    if (executed != nullptr && responses_.has_room() && !responses_.covers(headers.bth.psn, 1)) {
      push_atomic(headers.bth.psn, executed->value);
    }
    return;
  }
  if (headers.bth.opcode != wire::kRcReadRequest) {
    acknowledge();
    return;
  }
  const wire::Reth& reth = headers.reth;
  const uint32_t packets = packets_of(reth.length, attributes_.mtu_bytes);
  // Ranges beyond what was asked before, or whose answer is still to be sent, get none.
  if (reth.length > kMaxMessageBytes || packets > packets_behind || !responses_.has_room() ||
      responses_.covers(headers.bth.psn, packets)) {
    ++counters_.dropped;
    return;
  }
  if (reth.length == 0 || host.may_access(reth.address, reth.length, reth.key, Access::read)) {
    push_read(headers.bth.psn, reth, packets);
  } else {
    ++counters_.dropped;
  }
}

template <class Host>
RcResponder::Turn RcResponder::fail(uint8_t syndrome, ResponderFailure why, Host& host) {
  refuse(syndrome, expected_psn());
  responses_.push(refusal_);
  host.fail(why);
  return Turn::failed;
}

}  // namespace ringbolt::transport
