#include "fabric/damage.h"

#include <algorithm>

#include "fabric/bounds.h"

namespace ringbolt::fabric {

std::vector<CutCost> costs_of_cuts(const Graph& graph) {
  std::vector<CutCost> costs;
  for (size_t index = 0; index < graph.cables.size(); ++index) {
    // Equal in ends and capacity: cutting either leaves the same graph.
    const auto before = std::ranges::find(graph.cables, graph.cables[index]);
    if (const auto first = static_cast<size_t>(before - graph.cables.begin()); first < index) {
      costs.push_back(costs[first]);
      continue;
    }
    const Graph cut = without_cable(graph, index);
    const Distances left = distances(cut);
    CutCost& cost = costs.emplace_back();
    cost.is_connected = left.is_connected;
    if (left.is_connected) {
      cost.diameter = left.diameter;
    }
    if (left.is_connected && has_cut_rates(graph)) {
      cost.shard_rate = shard_rate(cut);
      cost.tree_rate = tree_rate(cut);
      cost.lambda = edge_connectivity(cut);
    }
  }
  return costs;
}

CutCost worst_of(const std::vector<CutCost>& costs) {
  if (costs.empty()) {
    return {};
  }
  CutCost worst = costs.front();
  for (const CutCost& one : costs) {
    worst.is_connected = worst.is_connected && one.is_connected;
    worst.diameter = std::max(worst.diameter, one.diameter);
    worst.shard_rate = std::min(worst.shard_rate, one.shard_rate);
    worst.tree_rate = std::min(worst.tree_rate, one.tree_rate);
    worst.lambda = std::min(worst.lambda, one.lambda);
  }
  return worst;
}

}  // namespace ringbolt::fabric
