#include "fabric/tree.h"

#include <algorithm>

#include "base/assert.h"

namespace ringbolt::fabric {

uint32_t depth(const Tree& tree) {
  std::vector<uint32_t> level(tree.arcs.size() + 1);
  uint32_t deepest = 0;
  // Each after the one that reaches its `from`, so that level is known.
  for (const Arc& arc : tree.arcs) {
    level[arc.to] = level[arc.from] + 1;
    deepest = std::max(deepest, level[arc.to]);
  }
  return deepest;
}

int64_t Packing::n_trees() const {
  int64_t count = 0;
  for (const Tree& tree : trees) {
    count += tree.multiplicity;
  }
  return count;
}

uint32_t Packing::depth() const {
  uint32_t deepest = 0;
  for (const Tree& tree : trees) {
    deepest = std::max(deepest, fabric::depth(tree));
  }
  return deepest;
}

Tree shortest_path_tree(const Graph& graph, uint32_t root) {
  const auto lists = neighbours(graph);
  const std::vector<uint32_t> hops = hops_from(lists, root);
  Tree tree{root};
  std::vector<uint32_t> order;
  for (uint32_t node = 0; node < graph.n_nodes; ++node) {
    RINGBOLT_ASSERT(hops[node] != kUnreachable);
    order.push_back(node);
  }
  std::ranges::stable_sort(order, {}, [&](uint32_t node) { return hops[node]; });
  for (const uint32_t node : order) {
    if (node != root) {
      const auto parent = std::ranges::find_if(lists[node], [&](uint32_t one) { return hops[one] + 1 == hops[node]; });
      tree.arcs.push_back({*parent, node});
    }
  }
  return tree;
}

Tree rooted_at_centre(uint32_t n_nodes, const std::vector<Arc>& arcs) {
  RINGBOLT_ASSERT(arcs.size() + 1 == n_nodes);
  Graph graph{n_nodes};
  for (const Arc& arc : arcs) {
    join(graph, arc.from, arc.to);
  }
  return shortest_path_tree(graph, distances(graph).centre);
}

}  // namespace ringbolt::fabric
