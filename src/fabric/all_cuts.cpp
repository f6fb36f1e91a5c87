#include "fabric/all_cuts.h"

#include <bit>
#include <utility>
#include <vector>

#include "base/assert.h"

namespace ringbolt::fabric {

void visit_all_cuts(const Graph& graph, const std::function<void(const Fraction& rate, uint32_t n_inside)>& visit) {
  RINGBOLT_ASSERT(graph.n_nodes >= 2 && graph.n_nodes <= kMostNodesForAllCuts);
  // [node]: who is at the other ends.
  std::vector<std::vector<std::pair<uint32_t, Fraction>>> cables(graph.n_nodes);
  for (const Cable& cable : graph.cables) {
    cables[cable.a].emplace_back(cable.b, cable.capacity);
    cables[cable.b].emplace_back(cable.a, cable.capacity);
  }
  Fraction rate;
  uint32_t inside = 0;
  // One node changes sides at a time (Gray's code); the last one stays outside.
  for (uint32_t count = 1; count < 1U << (graph.n_nodes - 1); ++count) {
    const auto node = static_cast<uint32_t>(std::countr_zero(count));
    const bool leaves = (inside >> node & 1U) != 0;
    inside ^= 1U << node;
    for (const auto& [other, capacity] : cables[node]) {
      // After the flip: a neighbour that is where the node was is now on the other side.
      const bool is_apart = ((inside >> other & 1U) != 0) == leaves;
      rate = is_apart ? rate + capacity : rate - capacity;
    }
    visit(rate, static_cast<uint32_t>(std::popcount(inside)));
  }
}

}  // namespace ringbolt::fabric
