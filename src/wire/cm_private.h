#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"
#include "wire/flow.h"

/// How rdma_cm lays IP addresses and ports over the CM: service ids, and the header at the start of the private data of
/// REQ and SIDR_REQ. Layout: docs/formats/ib-cm.md.
namespace ringbolt::wire {

/// enum rdma_port_space.
inline constexpr uint16_t kPortSpaceIpoib = 0x0002;
inline constexpr uint16_t kPortSpaceTcp = 0x0106;
inline constexpr uint16_t kPortSpaceUdp = 0x0111;
inline constexpr uint16_t kPortSpaceIb = 0x013f;

constexpr uint64_t cm_service_id(uint16_t port_space, uint16_t port) { return uint64_t{port_space} << 16 | port; }
constexpr uint16_t cm_service_port(uint64_t service_id) { return static_cast<uint16_t>(service_id); }
/// 0: no id of rdma_cm with IP addresses.
constexpr uint16_t cm_port_space(uint64_t service_id) {
  return service_id >> 32 == 0 ? static_cast<uint16_t>(service_id >> 16) : uint16_t{0};
}

inline constexpr size_t kCmIpHeaderBytes = 36;
inline constexpr size_t kCmReqUserBytes = 56;       ///< what REQ's private data leave to the program
inline constexpr size_t kCmSidrReqUserBytes = 180;  ///< the same of SIDR_REQ

/// Source port in host order; the destination port is in the service id alone. Both addresses IPv4 (::ffff:a.b.c.d) or
/// both not.
struct CmIpHeader {
  uint16_t source_port = 0;
  Address source{};
  Address destination{};
  friend bool operator==(const CmIpHeader&, const CmIpHeader&) = default;
};

/// Errors: EPROTONOSUPPORT (version other than 0, IP version other than 4 and 6).
base::Result<CmIpHeader> parse_cm_ip_header(std::span<const std::byte, kCmIpHeaderBytes> in);
void emit(const CmIpHeader& header, std::span<std::byte, kCmIpHeaderBytes> out);

}  // namespace ringbolt::wire
