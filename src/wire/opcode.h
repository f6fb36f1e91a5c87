#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

/// BTH opcodes (IBTA volume 1, section 9.2.1) and what follows from them. The top three bits are the transport.
namespace ringbolt::wire {

inline constexpr uint8_t kRcSendFirst = 0x00;
inline constexpr uint8_t kRcSendMiddle = 0x01;
inline constexpr uint8_t kRcSendLast = 0x02;
inline constexpr uint8_t kRcSendLastImmediate = 0x03;
inline constexpr uint8_t kRcSendOnly = 0x04;
inline constexpr uint8_t kRcSendOnlyImmediate = 0x05;
inline constexpr uint8_t kRcWriteFirst = 0x06;
inline constexpr uint8_t kRcWriteMiddle = 0x07;
inline constexpr uint8_t kRcWriteLast = 0x08;
inline constexpr uint8_t kRcWriteLastImmediate = 0x09;
inline constexpr uint8_t kRcWriteOnly = 0x0a;
inline constexpr uint8_t kRcWriteOnlyImmediate = 0x0b;
inline constexpr uint8_t kRcReadRequest = 0x0c;
inline constexpr uint8_t kRcReadResponseFirst = 0x0d;
inline constexpr uint8_t kRcReadResponseMiddle = 0x0e;
inline constexpr uint8_t kRcReadResponseLast = 0x0f;
inline constexpr uint8_t kRcReadResponseOnly = 0x10;
inline constexpr uint8_t kRcAcknowledge = 0x11;
inline constexpr uint8_t kRcAtomicAcknowledge = 0x12;
inline constexpr uint8_t kRcCompareSwap = 0x13;
inline constexpr uint8_t kRcFetchAdd = 0x14;
inline constexpr uint8_t kRcSendLastInvalidate = 0x16;
inline constexpr uint8_t kRcSendOnlyInvalidate = 0x17;

inline constexpr uint8_t kUcSendFirst = 0x20;
inline constexpr uint8_t kUcSendMiddle = 0x21;
inline constexpr uint8_t kUcSendLast = 0x22;
inline constexpr uint8_t kUcSendLastImmediate = 0x23;
inline constexpr uint8_t kUcSendOnly = 0x24;
inline constexpr uint8_t kUcSendOnlyImmediate = 0x25;
inline constexpr uint8_t kUcWriteFirst = 0x26;
inline constexpr uint8_t kUcWriteMiddle = 0x27;
inline constexpr uint8_t kUcWriteLast = 0x28;
inline constexpr uint8_t kUcWriteLastImmediate = 0x29;
inline constexpr uint8_t kUcWriteOnly = 0x2a;
inline constexpr uint8_t kUcWriteOnlyImmediate = 0x2b;

inline constexpr uint8_t kUdSendOnly = 0x64;
inline constexpr uint8_t kUdSendOnlyImmediate = 0x65;

/// Congestion notification: BTH and 16 reserved bytes.
inline constexpr uint8_t kCnp = 0x81;

// Ours, between own peers: top bits 110 are "manufacturer specific", and NICs and rdma_rxe drop them.
inline constexpr uint8_t kGreeting = 0xc1;      ///< wire/greeting.h; never sealed
inline constexpr uint8_t kSelectiveAck = 0xc2;  ///< wire/selective_ack.h

inline constexpr uint8_t kTransportMask = 0xe0;
inline constexpr uint8_t kTransportRc = 0x00;
inline constexpr uint8_t kTransportUc = 0x20;
inline constexpr uint8_t kTransportUd = 0x60;
inline constexpr uint8_t kTransportVendor = 0xc0;

/// What an opcode says of its packet, one bit each.
// In one table, so that a packet's questions are a load and a test each.
enum OpcodeTrait : uint32_t {
  kTraitKnown = 1U << 0,
  kTraitFirst = 1U << 1,
  kTraitMiddle = 1U << 2,
  kTraitLast = 1U << 3,
  kTraitOnly = 1U << 4,
  kTraitSend = 1U << 5,
  kTraitWrite = 1U << 6,
  kTraitReadResponse = 1U << 7,
  kTraitRequest = 1U << 8,   ///< goes from requester to responder
  kTraitResponse = 1U << 9,  ///< goes back
  kTraitPayload = 1U << 10,  ///< bytes may follow the headers
  kTraitReth = 1U << 11,
  kTraitAtomicEth = 1U << 12,
  kTraitAeth = 1U << 13,
  kTraitAtomicAckEth = 1U << 14,
  kTraitDeth = 1U << 15,
  kTraitImmediate = 1U << 16,
  kTraitInvalidate = 1U << 17,
};

namespace detail {

/// SEND and WRITE lie at the same places for RC and UC.
constexpr void add_sends_and_writes(std::array<uint32_t, 256>& traits, uint8_t transport) {
  constexpr uint32_t send = kTraitKnown | kTraitRequest | kTraitPayload | kTraitSend;
  constexpr uint32_t write = kTraitKnown | kTraitRequest | kTraitPayload | kTraitWrite;
  traits[transport | kRcSendFirst] = send | kTraitFirst;
  traits[transport | kRcSendMiddle] = send | kTraitMiddle;
  traits[transport | kRcSendLast] = send | kTraitLast;
  traits[transport | kRcSendLastImmediate] = send | kTraitLast | kTraitImmediate;
  traits[transport | kRcSendOnly] = send | kTraitOnly;
  traits[transport | kRcSendOnlyImmediate] = send | kTraitOnly | kTraitImmediate;
  traits[transport | kRcWriteFirst] = write | kTraitFirst | kTraitReth;
  traits[transport | kRcWriteMiddle] = write | kTraitMiddle;
  traits[transport | kRcWriteLast] = write | kTraitLast;
  traits[transport | kRcWriteLastImmediate] = write | kTraitLast | kTraitImmediate;
  traits[transport | kRcWriteOnly] = write | kTraitOnly | kTraitReth;
  traits[transport | kRcWriteOnlyImmediate] = write | kTraitOnly | kTraitReth | kTraitImmediate;
}

constexpr std::array<uint32_t, 256> make_opcode_traits() {
  std::array<uint32_t, 256> traits{};
  add_sends_and_writes(traits, kTransportRc);
  add_sends_and_writes(traits, kTransportUc);
  constexpr uint32_t request = kTraitKnown | kTraitRequest;
  constexpr uint32_t response = kTraitKnown | kTraitResponse;
  constexpr uint32_t read_response = response | kTraitPayload | kTraitReadResponse;
  traits[kRcReadRequest] = request | kTraitOnly | kTraitReth;
  traits[kRcReadResponseFirst] = read_response | kTraitFirst | kTraitAeth;
  traits[kRcReadResponseMiddle] = read_response | kTraitMiddle;
  traits[kRcReadResponseLast] = read_response | kTraitLast | kTraitAeth;
  traits[kRcReadResponseOnly] = read_response | kTraitOnly | kTraitAeth;
  traits[kRcAcknowledge] = response | kTraitOnly | kTraitAeth;
  traits[kRcAtomicAcknowledge] = response | kTraitOnly | kTraitAeth | kTraitAtomicAckEth;
  traits[kRcCompareSwap] = request | kTraitOnly | kTraitAtomicEth;
  traits[kRcFetchAdd] = request | kTraitOnly | kTraitAtomicEth;
  traits[kRcSendLastInvalidate] = request | kTraitPayload | kTraitSend | kTraitLast | kTraitInvalidate;
  traits[kRcSendOnlyInvalidate] = request | kTraitPayload | kTraitSend | kTraitOnly | kTraitInvalidate;
  traits[kUdSendOnly] = request | kTraitPayload | kTraitSend | kTraitOnly | kTraitDeth;
  traits[kUdSendOnlyImmediate] = traits[kUdSendOnly] | kTraitImmediate;
  traits[kCnp] = kTraitKnown | kTraitPayload;
  traits[kGreeting] = kTraitKnown | kTraitPayload;
  traits[kSelectiveAck] = response | kTraitPayload | kTraitAeth;
  return traits;
}

constexpr std::array<uint8_t, 256> make_header_bytes(const std::array<uint32_t, 256>& traits) {
  std::array<uint8_t, 256> bytes{};
  for (size_t opcode = 0; opcode < bytes.size(); ++opcode) {
    const auto of = [&](uint32_t trait, int length) { return (traits[opcode] & trait) != 0 ? length : 0; };
    bytes[opcode] = static_cast<uint8_t>(of(kTraitKnown, 12) + of(kTraitReth, 16) + of(kTraitAtomicEth, 28) +
                                         of(kTraitAeth, 4) + of(kTraitAtomicAckEth, 8) + of(kTraitDeth, 8) +
                                         of(kTraitImmediate, 4) + of(kTraitInvalidate, 4));
  }
  return bytes;
}

inline constexpr std::array<uint32_t, 256> kOpcodeTraits = make_opcode_traits();
inline constexpr std::array<uint8_t, 256> kHeaderBytes = make_header_bytes(kOpcodeTraits);

}  // namespace detail

/// Bits of OpcodeTrait; 0 for an opcode that we don't know.
constexpr uint32_t opcode_traits(uint8_t opcode) { return detail::kOpcodeTraits[opcode]; }
constexpr bool has_trait(uint8_t opcode, uint32_t any_of) { return (opcode_traits(opcode) & any_of) != 0; }

/// BTH and the extension headers with immediate data or key; 0 for an opcode that we don't know.
constexpr size_t header_bytes(uint8_t opcode) { return detail::kHeaderBytes[opcode]; }

constexpr bool is_known(uint8_t opcode) { return has_trait(opcode, kTraitKnown); }
constexpr bool is_rc(uint8_t opcode) { return is_known(opcode) && (opcode & kTransportMask) == kTransportRc; }
constexpr bool is_uc(uint8_t opcode) { return is_known(opcode) && (opcode & kTransportMask) == kTransportUc; }
constexpr bool is_ud(uint8_t opcode) { return is_known(opcode) && (opcode & kTransportMask) == kTransportUd; }

/// Each packet of a message is one of these four; requests and responses without a payload are "only".
constexpr bool is_first(uint8_t opcode) { return has_trait(opcode, kTraitFirst); }
constexpr bool is_middle(uint8_t opcode) { return has_trait(opcode, kTraitMiddle); }
constexpr bool is_last(uint8_t opcode) { return has_trait(opcode, kTraitLast); }
constexpr bool is_only(uint8_t opcode) { return has_trait(opcode, kTraitOnly); }
constexpr bool begins_message(uint8_t opcode) { return has_trait(opcode, kTraitFirst | kTraitOnly); }
constexpr bool ends_message(uint8_t opcode) { return has_trait(opcode, kTraitLast | kTraitOnly); }

constexpr bool is_send(uint8_t opcode) { return has_trait(opcode, kTraitSend); }
constexpr bool is_write(uint8_t opcode) { return has_trait(opcode, kTraitWrite); }
/// A request that uses up a receive of the target: a SEND, or a WRITE with an immediate.
constexpr bool takes_receive(uint8_t opcode) {
  return is_send(opcode) || (is_write(opcode) && has_trait(opcode, kTraitImmediate));
}
constexpr bool is_read_response(uint8_t opcode) { return has_trait(opcode, kTraitReadResponse); }
constexpr bool is_atomic_request(uint8_t opcode) { return has_trait(opcode, kTraitAtomicEth); }
constexpr bool is_request(uint8_t opcode) { return has_trait(opcode, kTraitRequest); }
constexpr bool is_response(uint8_t opcode) { return has_trait(opcode, kTraitResponse); }

constexpr bool has_payload(uint8_t opcode) { return has_trait(opcode, kTraitPayload); }
constexpr bool has_reth(uint8_t opcode) { return has_trait(opcode, kTraitReth); }
constexpr bool has_atomic_eth(uint8_t opcode) { return has_trait(opcode, kTraitAtomicEth); }
constexpr bool has_aeth(uint8_t opcode) { return has_trait(opcode, kTraitAeth); }
constexpr bool has_atomic_ack(uint8_t opcode) { return has_trait(opcode, kTraitAtomicAckEth); }
constexpr bool has_deth(uint8_t opcode) { return has_trait(opcode, kTraitDeth); }
constexpr bool has_immediate(uint8_t opcode) { return has_trait(opcode, kTraitImmediate); }
constexpr bool has_invalidate(uint8_t opcode) { return has_trait(opcode, kTraitInvalidate); }

static_assert(header_bytes(kRcSendMiddle) == 12 && header_bytes(kRcWriteOnlyImmediate) == 32);
static_assert(header_bytes(kRcCompareSwap) == 40 && header_bytes(kRcAtomicAcknowledge) == 24);
static_assert(header_bytes(kUdSendOnlyImmediate) == 24 && header_bytes(0x15) == 0);

}  // namespace ringbolt::wire
