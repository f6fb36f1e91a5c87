#pragma once

#include <cstdint>
#include <vector>

#include "fabric/graph.h"

namespace ringbolt::fabric {

/// What the nodes `members` of a graph have of it, numbered by their place in the list, when all others only relay: the
/// cables between members; where those don't join all of them, also a thin one between any two that share none, of
/// capacity 1 / hops (1 / n_nodes where no way leads). Sorted. Pure. Thread-safe.
Graph graph_among(const Graph& graph, const std::vector<uint32_t>& members);

}  // namespace ringbolt::fabric
