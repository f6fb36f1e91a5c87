#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "bringup/gid.h"
#include "membership/announcement.h"

namespace ringbolt::circuit {

using membership::MemberId;
using membership::NodeId;
/// Random, made by the sender's end.
using CircuitId = uint64_t;

/// Members on a path, the two ends included.
inline constexpr size_t kMostHops = 16;

/// A port of a member, by its place among the cards that the member announces, and which of its GIDs to use. Not
/// checked by parse_control(): whoever uses them looks whether there is such a port.
struct PortUse {
  uint16_t port = 0;
  uint8_t gid_index = 0;
  friend bool operator==(const PortUse&, const PortUse&) = default;
};
struct Hop {
  MemberId member = 0;
  PortUse entry;  ///< unused at the sender
  PortUse exit;   ///< unused at the receiver
  friend bool operator==(const Hop&, const Hop&) = default;
};
/// From the sender to the receiver.
using Path = std::vector<Hop>;

/// What the other end of a queue pair must know. Of the verbs' attributes of the same names; `lid` is 0 on RoCE.
struct QueuePairAddress {
  bringup::Gid gid = {};
  uint16_t lid = 0;
  uint32_t qp_number = 0;  ///< 24 bits
  uint32_t psn = 0;        ///< 24 bits
  uint32_t mtu_bytes = 0;
  bool reads_in_place = false;  ///< what it receives it reads where the sender wrote it (base/in_place.h)
  bool is_uc = false;           ///< of UC, not of RC
  bool counts_frames = false;   ///< messages to it fill as many frames of 4 KiB as its receives
  friend bool operator==(const QueuePairAddress&, const QueuePairAddress&) = default;
};

// On the wire by these numbers.
enum class CloseReason : uint8_t { orderly, protocol, usage, no_way };

// What ends and relays of circuits tell each other, by way of the membership. docs/formats/circuit.md.
struct Open {  ///< sender to receiver
  CircuitId circuit = 0;
  uint64_t listener = 0;
  bool has_checksums = false;
  bool may_write = false;  ///< it understands clearances: long messages may be written into the receiver's memory
  friend bool operator==(const Open&, const Open&) = default;
};
struct Opened {  ///< receiver to sender
  CircuitId circuit = 0;
  /// Messages shorter than this come by frames; 0: all do, and there are no clearances.
  uint64_t least_written_bytes = 0;
  friend bool operator==(const Opened&, const Opened&) = default;
};
struct Refused {  ///< receiver to sender
  CircuitId circuit = 0;
  std::string why;
  friend bool operator==(const Refused&, const Refused&) = default;
};
struct RailOpen {  ///< each hop to the next
  CircuitId circuit = 0;
  uint16_t rail = 0;
  uint8_t position = 0;  ///< in the path, of who gets this
  Path path;
  QueuePairAddress from;
  friend bool operator==(const RailOpen&, const RailOpen&) = default;
};
struct RailReady {  ///< each hop to the one before it
  CircuitId circuit = 0;
  uint16_t rail = 0;
  QueuePairAddress to;
  friend bool operator==(const RailReady&, const RailReady&) = default;
};
struct RailDown {  ///< any hop to all others: it can't be had, or is of no use any more
  CircuitId circuit = 0;
  uint16_t rail = 0;
  std::string why;
  friend bool operator==(const RailDown&, const RailDown&) = default;
};
struct Close {  ///< either end to the other
  CircuitId circuit = 0;
  CloseReason reason = CloseReason::orderly;
  std::string why;
  friend bool operator==(const Close&, const Close&) = default;
};
// Their order is part of the format: see kind_of().
using Control = std::variant<Open, Opened, Refused, RailOpen, RailReady, RailDown, Close>;

/// The kind of a message (Membership::send()): its place among the alternatives.
inline uint16_t kind_of(const Control& control) { return static_cast<uint16_t>(control.index()); }
/// Words are cut to 400 bytes.
std::vector<std::byte> emit(const Control& control);
/// Nothing if it is none. Any bytes are safe. Pure.
std::optional<Control> parse_control(uint16_t kind, std::span<const std::byte> bytes);

}  // namespace ringbolt::circuit
