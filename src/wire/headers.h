#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "wire/opcode.h"

/// The headers of a RoCEv2 packet as values. Layout: docs/formats/rocev2.md. All numbers in host order.
namespace ringbolt::wire {

inline constexpr uint32_t kPsnMask = 0xffffff;
inline constexpr uint32_t kQpnMask = 0xffffff;
inline constexpr uint16_t kDefaultPkey = 0xffff;
inline constexpr size_t kBthBytes = 12;
inline constexpr size_t kMaxHeaderBytes = 40;  ///< of any opcode: BTH and AtomicETH
inline constexpr size_t kSealBytes = 8;
inline constexpr size_t kCarriedAckBytes = 8;

/// Base transport header.
struct Bth {
  uint8_t opcode = 0;
  bool is_solicited = false;
  bool is_migrated = true;
  uint8_t pad_count = 0;  ///< 0..3 zero bytes after the payload
  uint16_t pkey = kDefaultPkey;
  bool fecn = false;
  bool becn = false;
  uint32_t dest_qp = 0;  ///< 24 bits
  bool wants_ack = false;
  bool is_sealed = false;    ///< kSealBytes follow the pad. Only own peers that agreed upon it (wire/greeting.h) set it
  bool carries_ack = false;  ///< of a sealed packet: kCarriedAckBytes stand before the seal
  uint32_t psn = 0;          ///< 24 bits
  friend bool operator==(const Bth&, const Bth&) = default;
};

/// RDMA extended transport header: where a WRITE goes to or a READ comes from.
struct Reth {
  uint64_t address = 0;
  uint32_t key = 0;
  uint32_t length = 0;  ///< of the whole message
  friend bool operator==(const Reth&, const Reth&) = default;
};

struct AtomicEth {
  uint64_t address = 0;
  uint32_t key = 0;
  uint64_t swap_or_add = 0;
  uint64_t compare = 0;
  friend bool operator==(const AtomicEth&, const AtomicEth&) = default;
};

/// Acknowledgement. Syndromes: wire/syndrome.h.
struct Aeth {
  uint8_t syndrome = 0;
  uint32_t msn = 0;  ///< 24 bits
  friend bool operator==(const Aeth&, const Aeth&) = default;
};

/// Datagram.
struct Deth {
  uint32_t qkey = 0;
  uint32_t source_qp = 0;  ///< 24 bits
  friend bool operator==(const Deth&, const Deth&) = default;
};

/// What an acknowledgement of its own would say, in a packet that goes to the same queue pair.
struct CarriedAck {
  uint32_t psn = 0;  ///< 24 bits
  Aeth aeth;
  friend bool operator==(const CarriedAck&, const CarriedAck&) = default;
};

/// BTH and the extension headers that its opcode asks for; the others stay at their defaults.
/// A value without meaning of its own: which parts count is the opcode's to say (wire/opcode.h).
struct Headers {
  Bth bth;
  Reth reth;
  AtomicEth atomic;
  Aeth aeth;
  uint64_t atomic_ack = 0;  ///< the value before the atomic
  Deth deth;
  uint32_t immediate = 0;       ///< the four bytes as they lie on the wire, as verbs' imm_data
  uint32_t invalidate_key = 0;  ///< host order
  CarriedAck carried_ack;       ///< where the BTH says so
  uint64_t seal = 0;            ///< of a sealed packet: the token that its receiver has given out
  friend bool operator==(const Headers&, const Headers&) = default;
};

/// Those of the acknowledgement that a packet with these headers carries, as if it came by itself.
inline Headers carried_acknowledgement(const Headers& headers) {
  Headers carried;
  carried.bth.opcode = kRcAcknowledge;
  carried.bth.dest_qp = headers.bth.dest_qp;
  carried.bth.psn = headers.carried_ack.psn;
  carried.aeth = headers.carried_ack.aeth;
  return carried;
}

/// Writes the headers of `headers.bth.opcode`; the caller appends payload, pad, seal and ICRC. Returns the length.
/// The opcode is a known one and `out` has room for header_bytes(opcode). Bits beyond 24 of QPN, PSN and MSN are cut.
// Asserts: what we write is our own doing. What comes from a peer is parse()'s, and never asserted.
size_t emit(const Headers& headers, std::span<std::byte> out);

/// What stands between pad and ICRC of a packet with these headers: the seal, and before it what it vouches for.
constexpr size_t seal_bytes(const Bth& bth) {
  return bth.is_sealed ? kSealBytes + (bth.carries_ack ? kCarriedAckBytes : 0) : 0;
}
/// Writes that: seal_bytes(headers.bth), of a sealed packet.
void emit_seal(const Headers& headers, std::span<std::byte> out);

}  // namespace ringbolt::wire
