#pragma once

#include <cstdint>

#include "fabric/graph.h"

namespace ringbolt::fabric {

inline constexpr uint32_t kMostSearchedNodes = 64;  ///< as many as fit into the sets that the search works on

/// How long to look, and from where. The same effort finds the same graph.
struct SearchEffort {
  uint64_t seed = 1;
  uint32_t n_steps = 200'000;  ///< of one attempt
  uint32_t n_attempts = 2;
};

/// A cabling of small diameter and average path: `n_ports` ports of every node are used, but for one port of the last
/// node if n_nodes * n_ports is odd. Simulated annealing over exchanges of two cables' ends, from a random regular
/// graph; ends early when it meets the Moore bound. n_nodes from n_ports + 2 to kMostSearchedNodes, n_ports at least 3.
/// About 1 s for 200,000 steps of 64 nodes. Pure. Thread-safe.
Graph search_graph(uint32_t n_nodes, uint32_t n_ports, const SearchEffort& effort = {});

/// A connected random graph of the same shape, made by pairing ports and mending (as in Jellyfish: Singla, Hong, Popa
/// and Godfrey, NSDI 2012). n_nodes at least n_ports + 1, n_ports at least 3. Pure. Thread-safe.
Graph random_regular(uint32_t n_nodes, uint32_t n_ports, uint64_t seed = 1);

}  // namespace ringbolt::fabric
