#pragma once

// Hot path: no allocation.

#include <cstdint>

#include "transport/operation.h"
#include "wire/opcode.h"
#include "wire/packet.h"

namespace ringbolt::transport {

/// The message that a responder is in the middle of, and the rules of its next packet: order of opcodes and lengths
/// (IBTA volume 1, sections 9.7.4.1.1 and 9.8.2.2). Not thread-safe.
/// Nothing of a packet has been believed before: lengths and addresses are the peer's word, and memory is the host's to
/// check.
struct InboundMessage {
  enum Kind : uint8_t { none, send, write };
  Kind kind = none;
  uint32_t done = 0;   ///< bytes
  uint32_t total = 0;  ///< bytes of a WRITE
  uint32_t key = 0;
  uint64_t address = 0;

  /// Whether `packet`, a request of RC or UC, may come now. Changes nothing.
  bool allows(const wire::PacketView& packet, uint32_t mtu_bytes) const {
    const uint8_t opcode = packet.headers.bth.opcode;
    if (wire::begins_message(opcode) != (kind == none)) {
      return false;
    }
    if (!wire::begins_message(opcode) && wire::is_send(opcode) != (kind == send)) {
      return false;
    }
    return fits(opcode, packet.headers.reth.length, packet.payload.size(), mtu_bytes);
  }

 private:
  /// All packets but a message's last are full, so that offsets follow from numbers.
  bool fits(uint8_t opcode, uint32_t write_length, size_t payload, uint32_t mtu_bytes) const {
    if (!wire::has_payload(opcode)) {
      return !wire::has_reth(opcode) || write_length <= kMaxMessageBytes;
    }
    const bool ends = wire::ends_message(opcode);
    if (ends ? payload > mtu_bytes : payload != mtu_bytes) {
      return false;
    }
    if (wire::is_last(opcode) && payload == 0) {
      return false;
    }
    if (wire::is_send(opcode)) {
      return done <= kMaxMessageBytes - payload;
    }
    const uint32_t missing = wire::begins_message(opcode) ? write_length : total - done;
    return missing <= kMaxMessageBytes && (ends ? payload == missing : payload < missing);
  }
};

}  // namespace ringbolt::transport
