#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <string>
#include <vector>

namespace ringbolt::device {

/// A network interface as a port sees it, at the time of reading. A value.
struct Netdev {
  std::string name;
  uint32_t index = 0;         ///< as the kernel numbers it
  uint32_t mtu_bytes = 0;     ///< of the interface
  uint64_t guid = 0;          ///< EUI-64 of its hardware address, host order
  std::vector<ibv_gid> gids;  ///< [0] IPv6 link-local, then IPv4-mapped ones, then the other IPv6 ones; what there is
  bool is_up = false;         ///< it has a carrier and was brought up
};

/// Reads the interface's addresses, at most kGidTableLength of them. Throws base::Error naming it and those that there
/// are. Thread-safe.
Netdev read_netdev(const std::string& name);

/// The addresses that the interface of this number has now, in the order of Netdev::gids; none when it is gone. Throws
/// base::Error. Thread-safe.
std::vector<ibv_gid> read_gids(uint32_t index);

/// The interface of this number was brought up and has a carrier; false when it is gone. Throws base::Error when the
/// kernel can't be asked. Thread-safe.
bool is_interface_up(uint32_t index);

/// Name and MTU alone, as they are now, of the interface of this number; no name when it is gone. Thread-safe.
Netdev read_link(uint32_t index);

/// ::ffff:a.b.c.d
bool is_ipv4(const ibv_gid& gid);

/// The names in a list separated by commas, as in RINGBOLT_NETDEVS. Throws base::Error for an empty or repeated name.
std::vector<std::string> netdev_names(const std::string& list);

/// The largest path MTU whose packets fit into the interface's frames. Thread-safe.
ibv_mtu path_mtu_of(uint32_t mtu_bytes);

/// What an interface must take at least, for all packets of a path MTU. Thread-safe.
uint32_t interface_mtu_for(uint32_t path_mtu_bytes);

}  // namespace ringbolt::device
