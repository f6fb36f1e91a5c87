#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"

/// How two drivers of the native Thunderbolt verbs find each other: one control message of 88 bytes, sent as an XDomain
/// request. Layout and source: docs/formats/thunderbolt.md.
namespace ringbolt::wire {

inline constexpr size_t kThunderboltHelloBytes = 88;

enum class HelloOp : uint16_t { hello = 1, hello_ack = 2, ready = 3, ready_ack = 4 };

// Bits of ThunderboltHello::capabilities and ::path_flags. Unknown bits are kept.
inline constexpr uint32_t kCapabilityUc = 1;
inline constexpr uint32_t kCapabilityRc = 2;
inline constexpr uint32_t kCapabilityRails = 4;
inline constexpr uint32_t kPathFrames = 1;
inline constexpr uint32_t kPathEndToEnd = 2;

struct ThunderboltHello {
  uint64_t header_route = 0;     ///< of the XDomain header: where this message goes; bit 63 is not part of it
  uint8_t xdomain_sequence = 0;  ///< 0 to 3
  HelloOp op = HelloOp::hello;
  uint16_t flags = 0;
  uint32_t sequence = 0;
  uint32_t capabilities = 0;
  uint32_t rail = 0;
  uint64_t route = 0;  ///< of the sender's rail
  uint32_t transmit_hop = 0;
  uint32_t receive_hop = 0;
  uint32_t transmit_path = 0;
  uint32_t transmit_ring = 0;  ///< frames
  uint32_t receive_ring = 0;   ///< frames
  uint32_t path_flags = 0;
  friend bool operator==(const ThunderboltHello&, const ThunderboltHello&) = default;
};

/// Errors: EBADMSG (wrong length, UUID, magic or op), EPROTONOSUPPORT (another version). Bytes behind the message are
/// refused.
base::Result<ThunderboltHello> parse_thunderbolt_hello(std::span<const std::byte> message);

/// The low two bits of xdomain_sequence count.
void emit(const ThunderboltHello& hello, std::span<std::byte, kThunderboltHelloBytes> out);

}  // namespace ringbolt::wire
