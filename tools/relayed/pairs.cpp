#include "relayed/pairs.h"

#include "fabric/graph.h"

namespace ringbolt::tools::relayed {
namespace {

std::vector<std::vector<uint32_t>> neighbours_of(const cluster::Cluster& model,
                                                 const std::function<bool(uint32_t cable)>& is_up) {
  fabric::Graph graph{static_cast<uint32_t>(model.nodes.size()), {}};
  for (uint32_t index = 0; index < model.cables.size(); ++index) {
    const cluster::Cable& cable = model.cables[index];
    if (cable.a.node != cable.b.node && is_up(index)) {
      fabric::join(graph, cable.a.node, cable.b.node);
    }
  }
  return fabric::neighbours(graph);
}

}  // namespace

std::vector<std::vector<uint32_t>> parts_of(const cluster::Cluster& model,
                                            const std::function<bool(uint32_t cable)>& is_up) {
  const auto neighbours = neighbours_of(model, is_up);
  std::vector<std::vector<uint32_t>> parts;
  std::vector<bool> is_placed(neighbours.size());
  for (uint32_t first = 0; first < neighbours.size(); ++first) {
    if (is_placed[first]) {
      continue;
    }
    const std::vector<uint32_t> hops = fabric::hops_from(neighbours, first);
    parts.emplace_back();
    for (uint32_t node = 0; node < hops.size(); ++node) {
      if (hops[node] != fabric::kUnreachable) {
        parts.back().push_back(node);
        is_placed[node] = true;
      }
    }
  }
  return parts;
}

std::vector<std::pair<uint32_t, uint32_t>> pairs_without_cable(const cluster::Cluster& model,
                                                               const std::function<bool(uint32_t cable)>& is_up) {
  const auto neighbours = neighbours_of(model, is_up);
  std::vector<std::pair<uint32_t, uint32_t>> pairs;
  for (uint32_t a = 0; a < neighbours.size(); ++a) {
    std::vector<bool> is_neighbour(neighbours.size());
    for (const uint32_t node : neighbours[a]) {
      is_neighbour[node] = true;
    }
    for (uint32_t b = a + 1; b < neighbours.size(); ++b) {
      if (!is_neighbour[b]) {
        pairs.emplace_back(a, b);
      }
    }
  }
  return pairs;
}

}  // namespace ringbolt::tools::relayed
