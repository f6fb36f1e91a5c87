#pragma once

#include <cstddef>
#include <span>

#include "base/result.h"
#include "wire/headers.h"

namespace ringbolt::wire {

inline constexpr size_t kIcrcBytes = 4;

/// A received packet. The payload (without pad) lies in the buffer that was parsed.
/// Owns nothing: good as long as that buffer is held.
struct PacketView {
  Headers headers;
  std::span<const std::byte> payload;
};

/// Reads a packet from BTH to ICRC inclusive: what a UDP datagram to port 4791 holds. Checks opcode, header version
/// and lengths, not the ICRC (wire/icrc.h). Accepts any bytes. Errors: EBADMSG (lengths do not fit),
/// EPROTONOSUPPORT (unknown opcode or version). Hot path: no allocation.
base::Result<PacketView> parse(std::span<const std::byte> packet);

/// Zero bytes that follow a payload of `length` bytes.
constexpr size_t pad_bytes(size_t length) { return (4 - length % 4) % 4; }

}  // namespace ringbolt::wire
