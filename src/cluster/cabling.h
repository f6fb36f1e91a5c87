#pragma once

#include <string>
#include <vector>

#include "cluster/model.h"
#include "cluster/parsed.h"

namespace ringbolt::cluster {

/// A network interface of a machine, as found there.
struct Interface {
  std::string name;
  bool is_up = false;              ///< brought up, and something answers at the other end
  bool has_default_route = false;  ///< leads to the rest of the world: no cable between machines
  std::vector<IpAddress> addresses = {};
  friend bool operator==(const Interface&, const Interface&) = default;
};

/// A machine: how ssh reaches it, and its interfaces.
struct HostInterfaces {
  std::string host;
  std::vector<Interface> interfaces;
  friend bool operator==(const HostInterfaces&, const HostInterfaces&) = default;
};

/// A node without ports for each of these hosts, named after it. Pure. Thread-safe.
std::vector<Node> nodes_of(const std::vector<std::string>& hosts);

/// Finds the cables between machines: two interfaces of two of them that are alone in a subnet of theirs. Interfaces
/// with a default route are passed over. Nodes are named after their hosts, ports after their interfaces. Refuses,
/// naming what there is, if a machine would have no cable. Pure. Thread-safe. The `error()` has no line (0).
Parsed<Cluster> find_cables(const std::vector<HostInterfaces>& hosts);

/// Fills in the addresses of every cabled port of `cluster` from what its host has; `hosts` are those of its nodes, in
/// order. Refuses ports whose netdev is not named or not there, and cables whose ends have no subnet in common. Pure.
/// Thread-safe. Keeps kMaxAddressesPerPort addresses of a port at most. Must be called with as many hosts as there
/// are nodes.
Parsed<Cluster> with_found_addresses(Cluster cluster, const std::vector<HostInterfaces>& hosts);

/// Where node `from` reaches the other end of cable `cable`, as programs write it: the first address there that shares
/// a subnet with one here, IPv4 before IPv6; "fe80::1%en2" if there are only link-local ones; "" if there is none.
/// Pure. Thread-safe. `cable` and `from` must exist, and `from` must be an end of it.
std::string address_across(const Cluster& cluster, uint32_t cable, const CableEnd& from);

/// What ssh takes as a destination, and nothing that it, or a shell, could take for more than a word. Thread-safe. A
/// first '-' is refused because ssh would take it for an option, and every character that a shell gives a meaning.
bool is_host(std::string_view text);

}  // namespace ringbolt::cluster
