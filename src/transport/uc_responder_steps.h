#pragma once

// How UcResponder executes a request. Hot path: no allocation, lock, clock, virtual call or I/O per packet.

#include "transport/uc_responder.h"

namespace ringbolt::transport {

template <ResponderHost Host>
void UcResponder::on_packet(uint64_t, const wire::PacketView& packet, Host& host) {
  const wire::Bth& bth = packet.headers.bth;
  if (has_failed_ || !wire::is_uc(bth.opcode)) {
    ++counters_.dropped;
    return;
  }
  const int32_t ahead = psn_distance(bth.psn, expected_psn_);
  if (ahead < 0 && ahead >= -kLatePackets) {
    ++counters_.dropped;
    return;
  }
  // Further behind than late ones are, or ahead: something is lost between.
  if (ahead != 0) {
    drop_message();
  }
  expected_psn_ = psn_add(bth.psn, 1);
  if (wire::begins_message(bth.opcode)) {
    drop_message();  // one that is still open never ended
    is_dropping_ = false;
  }
  if (is_dropping_ || !message_.allows(packet, attributes_.mtu_bytes)) {
    drop_message();
    is_dropping_ = true;
    ++counters_.dropped;
    return;
  }
  const bool is_executed = wire::is_send(bth.opcode) ? execute_send(packet, host) : execute_write(packet, host);
  if (is_executed) {
    ++counters_.packets;
  } else {
    drop_message();
    is_dropping_ = true;
    ++counters_.dropped;
  }
}

template <class Host>
bool UcResponder::take_receive(Host& host) {
  has_receive_ = has_receive_ || host.take_receive();
  return has_receive_;
}

template <class Host>
bool UcResponder::execute_send(const wire::PacketView& packet, Host& host) {
  if (wire::begins_message(packet.headers.bth.opcode)) {
    if (!take_receive(host)) {
      return false;
    }
    message_ = {.kind = InboundMessage::send};
  }
  if (!packet.payload.empty()) {
    const Placed placed = host.place_receive(message_.done, packet.payload);
    if (placed != Placed::ok) {
      has_failed_ = true;
      host.fail(placed == Placed::too_long ? ResponderFailure::receive_too_short
                                           : ResponderFailure::receive_protection);
      return false;
    }
    message_.done += static_cast<uint32_t>(packet.payload.size());
  }
  if (wire::ends_message(packet.headers.bth.opcode)) {
    complete(packet, Received::send, host);
  }
  return true;
}

template <class Host>
bool UcResponder::execute_write(const wire::PacketView& packet, Host& host) {
  const wire::Headers& headers = packet.headers;
  const wire::Reth& reth = headers.reth;
  if (wire::begins_message(headers.bth.opcode)) {
    if (reth.length != 0 && !host.may_access(reth.address, reth.length, reth.key, Access::write)) {
      return false;
    }
    message_ = {.kind = InboundMessage::write, .total = reth.length, .key = reth.key, .address = reth.address};
  }
  if (wire::has_immediate(headers.bth.opcode) && !take_receive(host)) {
    return false;
  }
  if (!packet.payload.empty() && !host.write(message_.address + message_.done, message_.key, packet.payload)) {
    return false;
  }
  message_.done += static_cast<uint32_t>(packet.payload.size());
  if (wire::ends_message(headers.bth.opcode)) {
    complete(packet, Received::write_immediate, host);
  }
  return true;
}

template <class Host>
void UcResponder::complete(const wire::PacketView& packet, Received::Kind kind, Host& host) {
  const wire::Headers& headers = packet.headers;
  const bool has_immediate = wire::has_immediate(headers.bth.opcode);
  if (kind == Received::send || has_immediate) {
    has_receive_ = false;
    host.complete_receive({.kind = kind,
                           .has_immediate = has_immediate,
                           .is_solicited = headers.bth.is_solicited,
                           .length = message_.done,
                           .immediate = has_immediate ? headers.immediate : 0});
  }
  message_ = {};
}

}  // namespace ringbolt::transport
