#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "bringup/port_card.h"
#include "circuit/control.h"

namespace ringbolt::circuit {

/// A port here went to RTR with the GID of a port there: as far as can be told from here, a cable leads there.
struct FoundCable {
  uint16_t port = 0;
  NodeId node = 0;
  uint16_t port_there = 0;
  friend auto operator<=>(const FoundCable&, const FoundCable&) = default;
};

/// What a member says of its node's ports: Announcement::details. Members of one node number them alike, and find out
/// about each at a moment of their own. `cards` and `is_active` have the same length where parse_node_ports() has
/// made them, kMostCards at most.
struct NodePorts {
  NodeId node = 0;                       ///< not part of the bytes
  std::vector<bringup::PortCard> cards;  ///< [port]; without RC: it can't carry circuits, or could not so far
  std::vector<bool> is_active = {};      ///< [port]
  std::vector<FoundCable> found = {};
  friend bool operator==(const NodePorts&, const NodePorts&) = default;
};

/// Of found cables the first 1024.
std::vector<std::byte> emit(const NodePorts& ports);
/// Nothing if it is none. Any bytes are safe. Pure.
std::optional<NodePorts> parse_node_ports(NodeId node, std::span<const std::byte> bytes);

/// A way of one hop between two nodes: a cable, or a switch that both are at.
struct Link {
  NodeId a = 0;  ///< the lesser
  NodeId b = 0;
  PortUse at_a;
  PortUse at_b;
  uint32_t rate_mbps = 0;  ///< of the slower end; 0: unknown
  bool is_active = true;   ///< at both ends
  friend bool operator==(const Link&, const Link&) = default;
};

/// All links between these nodes, by what the ports are, never by where they stand in a list: (1) ports that have a
/// subnet to themselves (bringup/subnets.h), (2) ports that share a subnet with more, as at a switch, (3) ports that
/// have found each other. Of two nodes each port has one link at most. Only ports that have a type of queue pair in
/// common. Pure, and the same on every member that knows the same. Found cables count only where both ends have found
/// each other: a switch lets a port reach many.
std::vector<Link> links_between(const std::vector<NodePorts>& nodes);

/// Which ports of others a node should try its own with, since their addresses don't tell: [own port], each with the
/// other's place in `nodes` and its port. Pure. `node`: an index into `nodes`.
struct Candidate {
  uint16_t port = 0;
  size_t node = 0;
  uint16_t port_there = 0;
};
std::vector<Candidate> candidates_for(const std::vector<NodePorts>& nodes, NodeId self);

}  // namespace ringbolt::circuit
