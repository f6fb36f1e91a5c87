#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "fabric/graph.h"

namespace ringbolt::fabric {

/// What is left when one cable is pulled.
struct CutCost {
  bool is_connected = false;
  uint32_t diameter = 0;  ///< this and the rates are 0 if it is not connected
  Fraction shard_rate;    ///< x*, see bounds.h
  Fraction tree_rate;     ///< tau
  Fraction lambda;        ///< of broadcast and reduce
};

/// More cables times nodes than this take too long for rates: a second or so.
inline constexpr size_t kMostCutWork = 30'000;
inline bool has_cut_rates(const Graph& graph) { return graph.cables.size() * graph.n_nodes <= kMostCutWork; }

/// For each cable of the graph, in order; the rates are 0 unless has_cut_rates(graph). Equal rails are computed once.
/// Pure. Thread-safe.
std::vector<CutCost> costs_of_cuts(const Graph& graph);

/// The worst over all cables: what is connected at all, the largest diameter, the least rates.
CutCost worst_of(const std::vector<CutCost>& costs);

}  // namespace ringbolt::fabric
