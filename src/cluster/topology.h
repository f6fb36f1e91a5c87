#pragma once

#include <string>
#include <string_view>

#include "cluster/model.h"
#include "cluster/parsed.h"

namespace ringbolt::cluster {

/// Builds a cluster from a short description:
///   mesh:N       every two nodes share a cable
///   ring:N       node k to k+1, the last to the first (ring:2 has two parallel cables)
///   line:N       a ring without its last cable
///   star:N       node 0 to every other
///   torus:AxB    a ring along each row and column (one cable where a side is 2)
///   hypercube:D  2^D nodes, cabled where their numbers differ in one bit
///   petersen     10 nodes with 3 ports each, any two at most 2 hops apart (Petersen 1898)
///   loop         one node, one port, a loopback plug
/// Nodes are named n0, n1, ...; ports are numbered in the order of the cables, except that in a ring rdma_en2 leads
/// to the next node and rdma_en3 to the one before. Any bytes are safe to pass. Pure. Thread-safe. The cluster's name
/// is the text without colons; kMaxNodes nodes at most.
Parsed<Cluster> parse_topology(std::string_view text);

/// Whether the text begins like a topology rather than like a file name: a known word, alone or before ':'.
/// Thread-safe. A file of that name has to be written "./mesh".
bool names_topology(std::string_view text);

/// "mesh:N, ring:N, ...": for messages and help.
std::string known_topologies();

}  // namespace ringbolt::cluster
