#pragma once

#include <cstdint>

#include "link/udp_message.h"

namespace ringbolt::device {

/// Where an RC or UC queue pair's packets go. A value; constant while it is connected.
struct WirePath {
  link::UdpPath udp;
  uint32_t remote_qpn = 0;
  uint32_t mtu_bytes = 0;
  bool is_at_stream = false;  ///< a cable's byte stream: nobody else speaks there, and nothing is lost
};

}  // namespace ringbolt::device
