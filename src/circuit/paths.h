#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "circuit/control.h"
#include "circuit/node_ports.h"

namespace ringbolt::circuit {

/// Rails of one circuit at most.
// Also a bound of the format of clearances.
inline constexpr size_t kMostRails = 8;

/// Which members there are on each node, ascending: those that may relay.
using MembersOfNode = std::map<NodeId, std::vector<MemberId>>;

/// A path, and how fast its slowest link is.
struct PlannedPath {
  Path path;
  uint32_t rate_mbps = 0;  ///< 0: unknown
  friend bool operator==(const PlannedPath&, const PlannedPath&) = default;
};

/// The paths that a circuit from one member to another takes, over active links alone: all links between their nodes;
/// where there are none, shortest ways over other nodes' members that have no node in common but their ends, as many as
/// there are; on one node, its first port that is active, which reaches itself. Empty: there is no way just now.
/// Pure. Of kMostRails at most, in the links' order. Detours are all of the same, least length, and of kMostHops
/// members at most.
std::vector<PlannedPath> plan_paths(const std::vector<Link>& links, const std::vector<NodePorts>& nodes,
                                    const MembersOfNode& members, std::pair<NodeId, MemberId> from,
                                    std::pair<NodeId, MemberId> to);

}  // namespace ringbolt::circuit
