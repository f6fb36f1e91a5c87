#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ringbolt::tools {

/// One IP datagram of a capture.
struct CapturedDatagram {
  uint64_t time_ns = 0;              ///< since the epoch of the clock that captured
  std::span<const std::byte> bytes;  ///< from the IP header on; into the file's bytes
  bool is_cut = false;               ///< the capture holds only its beginning
};

/// Whether the bytes begin as a capture file of tcpdump or Wireshark does, in the classic format or as pcapng.
bool is_capture(std::span<const std::byte> file);

/// The IP datagrams of a capture file, in its order; other frames are left out. Links: Ethernet (also with VLAN tags),
/// raw IP, Linux "any" (both versions), BSD loopback. Throws UsageError naming `path` when the file breaks off in its
/// headers or has another link type; a last packet that breaks off is left out.
std::vector<CapturedDatagram> read_capture(const std::string& path, std::span<const std::byte> file);

}  // namespace ringbolt::tools
