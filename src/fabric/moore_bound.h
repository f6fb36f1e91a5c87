#pragma once

#include <cstdint>

namespace ringbolt::fabric {

/// What no graph of so many nodes and ports can beat.
struct MooreBound {
  uint32_t diameter = 0;
  uint64_t sum = 0;  ///< of the hops over all ordered pairs
};

/// From a node at most d others are one hop away, d (d - 1) two, d (d - 1)^2 three, and so on (Moore, in Hoffman and
/// Singleton 1960): filling these levels gives the least distances. If n_nodes * n_ports is odd, one node must leave a
/// port free. `n_ports` at least 2, or 1 for 2 nodes. Pure. Thread-safe.
MooreBound moore_bound(uint32_t n_nodes, uint32_t n_ports);

}  // namespace ringbolt::fabric
