#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "link/udp_buffer.h"
#include "wire/flow.h"

namespace ringbolt::link {

/// What one system call brought: packets of `segment_bytes` each, the last may be shorter, all of one flow.
struct UdpDatagram {
  wire::Flow flow;
  uint32_t interface_index = 0;
  UdpBufferRef buffer;
  size_t bytes = 0;
  size_t segment_bytes = 0;
  bool is_forwarded = false;  // by another process: not to be passed on again

  std::span<const std::byte> packet_at(size_t offset) const {
    const size_t rest = bytes - offset;
    return {buffer.get()->data() + offset, rest < segment_bytes ? rest : segment_bytes};
  }
};

/// DestQP of a packet of at least 8 bytes.
inline uint32_t dest_qp(std::span<const std::byte> packet) {
  return std::to_integer<uint32_t>(packet[5]) << 16U | std::to_integer<uint32_t>(packet[6]) << 8U |
         std::to_integer<uint32_t>(packet[7]);
}

}  // namespace ringbolt::link
