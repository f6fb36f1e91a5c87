#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstdint>

/// By which way to answer a datagram (ibv_create_ah_from_wc(3)). All pure and thread-safe.
namespace ringbolt::abi {

/// What the route header in front of a datagram says. A receive begins with 40 bytes for it; RoCE v2 over IPv4 puts the
/// 20 bytes of the IPv4 header into the last 20 of them (InfiniBand Architecture Specification, annex 17).
struct Route {
  ibv_gid source;       ///< of IPv4: mapped into IPv6 (RFC 4291, 2.5.5.2)
  ibv_gid destination;  ///< likewise
  uint32_t flow_label;  ///< 20 bits; 0 for IPv4
  uint8_t traffic_class;
};
Route read_route(const ibv_grh& grh);

/// The way back to who sent `wc`, without a global route.
/// `wc`: of a successful receive of a datagram.
ibv_ah_attr answer_to(const ibv_wc& wc, uint8_t port_num);
/// Adds the global route; `gid_index`: where Route::destination stands in the port's table.
void add_route(ibv_ah_attr& answer, const Route& route, uint8_t gid_index);

using EthernetAddress = std::array<uint8_t, ETHERNET_LL_SIZE>;
/// The Ethernet address behind a GID. Our links have no Ethernet header: a GID made from a MAC gives that MAC back (RFC
/// 4291, appendix A), any other one a locally administered address made from its last bytes, the same on every call and
/// node.
EthernetAddress ethernet_address_of(const ibv_gid& gid);

}  // namespace ringbolt::abi
