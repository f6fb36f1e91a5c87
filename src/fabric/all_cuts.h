#pragma once

#include <cstdint>
#include <functional>

#include "fabric/graph.h"

namespace ringbolt::fabric {

/// Graphs of more nodes are not gone through: each further node doubles the number of cuts.
inline constexpr uint32_t kMostNodesForAllCuts = 18;

/// Shows each cut of a graph of 2 to kMostNodesForAllCuts nodes once: the rate that crosses it, and how many nodes are
/// on the side without the last one. Pure. Thread-safe.
void visit_all_cuts(const Graph& graph, const std::function<void(const Fraction& rate, uint32_t n_inside)>& visit);

}  // namespace ringbolt::fabric
