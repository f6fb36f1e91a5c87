#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "wire/flow.h"

namespace ringbolt::link {

/// BTH to ICRC: 4096 bytes of payload and the longest headers (BTH, RETH, immediate, pad, ICRC), rounded up.
inline constexpr size_t kMaxUdpPacketBytes = 4096 + 128;
/// A BTH and an ICRC.
inline constexpr size_t kMinUdpPacketBytes = 12 + 4;

/// Where packets leave and where they go.
struct UdpPath {
  wire::Address source{};        ///< the GID they leave with; must be an address of this machine
  wire::Address destination{};   ///< both are IPv4 or both IPv6
  uint32_t interface_index = 0;  ///< 0: as routes say. Needed for IPv6 link-local addresses
  uint8_t traffic_class = 0;     ///< TOS
  friend bool operator==(const UdpPath&, const UdpPath&) = default;
};

/// One call's worth of packets to one place.
struct UdpMessage {
  UdpPath path;
  size_t offset = 0;  // in the batch's arena
  size_t bytes = 0;
  size_t segment_bytes = 0;  // of every packet but the last, ICRC included
  uint16_t packet_count = 0;
  uint32_t slot_bits = 0;     // of the DestQP: one process at the other end, so that its kernel need not divide
  bool is_closed = false;     // its last packet was shorter
  bool is_segmented = false;  // packet k carries IPv4 ID k
};

/// What the kernel is told about a message besides its bytes. Nothing is in it before set(): an array of them costs
/// nothing to make.
/// cmsg(3), ip(7) and ipv6(7) have the control messages, udp(7) UDP_SEGMENT. Not thread-safe.
class UdpMessageHeader {
 public:
  /// Fills in destination, source address, interface, traffic class, and, with segment_bytes > 0, the GSO size.
  void set(const UdpPath& path, uint16_t port, uint16_t segment_bytes);
  /// Points `header` to all that and to `bytes`; both and this object must stay until the call.
  void attach(msghdr& header, iovec& bytes);

 private:
  template <class Value>
  void append(int level, int type, const Value& value);

  union {
    sockaddr_in v4;
    sockaddr_in6 v6;
  } address_;  // what is not set is not read: no clearing per packet
  socklen_t address_length_;
  size_t control_length_;
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(in6_pktinfo)) + CMSG_SPACE(sizeof(int)) +
                                             CMSG_SPACE(sizeof(uint16_t))> control_;
};

}  // namespace ringbolt::link
