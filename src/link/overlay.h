#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/little_endian.h"

/// What a port at a stream and the other end of its stream agree on, beyond the stream itself: docs/formats/stream.md.
/// At the other end of ringbolt0's stream is no port but the node's agent, which leads to all nodes.
namespace ringbolt::link {

inline constexpr uint32_t kPortWindowPackets = 4096;  ///< 17 MiB, of which the system gives what is used
inline constexpr uint32_t kPortWindowFrames =
    512;  ///< of each rail: 2 MiB, 20 ms of a rail of 100 MB/s, as peers may be off their core

/// In front of each packet.
/// Four single bytes; the last is 0, and not looked at.
struct PortPrefix {
  static constexpr size_t kBytes = 4;

  uint8_t place = 0;  ///< of the sender's GID among those in its greeting
  uint8_t traffic_class = 0;
  uint8_t node = 0;  ///< to the agent: the destination's number, plus one; from it: the source's. 0 elsewhere

  void emit(std::span<std::byte> to) const {
    to[0] = static_cast<std::byte>(place);
    to[1] = static_cast<std::byte>(traffic_class);
    to[2] = static_cast<std::byte>(node);
    to[3] = std::byte{0};
  }
  /// Of at least kBytes bytes.
  static PortPrefix parse(std::span<const std::byte> from) {
    return {std::to_integer<uint8_t>(from[0]), std::to_integer<uint8_t>(from[1]), std::to_integer<uint8_t>(from[2])};
  }
};

/// What a process says in its greeting to the agent after its GIDs: which queue pairs are its own. DestQP >> kShift is
/// its slot.
struct OverlayClaim {
  static constexpr size_t kBytes = 8;
  static constexpr size_t kGidBytes = 2 * 16;

  uint32_t slot = 0;
  uint32_t slot_shift = 0;

  void append_to(std::vector<std::byte>& greeting) const {
    const size_t at = greeting.size();
    greeting.resize(at + kBytes);
    base::put_le(std::span(greeting), at, slot);
    base::put_le(std::span(greeting), at + 4, slot_shift);
  }
  static std::optional<OverlayClaim> parse(std::span<const std::byte> greeting) {
    if (greeting.size() != kGidBytes + kBytes) {
      return std::nullopt;
    }
    const OverlayClaim claim{base::get_le<uint32_t>(greeting, kGidBytes),
                             base::get_le<uint32_t>(greeting, kGidBytes + 4)};
    return claim.slot_shift < 24 ? std::optional(claim) : std::nullopt;
  }
};

}  // namespace ringbolt::link
