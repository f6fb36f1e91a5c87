#include "fabric/relaying.h"

#include <algorithm>

#include "fabric/builders.h"
#include "fabric/deadlock.h"

namespace ringbolt::fabric {
namespace {

bool is_ring_in_order(const Graph& graph) {
  const Graph merged = merge_rails(graph);
  if (graph.n_nodes < 3) {
    return false;
  }
  const Graph in_order = ring(graph.n_nodes);
  // Rails and speeds do not matter.
  return std::ranges::equal(merged.cables, in_order.cables,
                            [](const Cable& one, const Cable& other) { return one.a == other.a && one.b == other.b; });
}

}  // namespace

const char* discipline_text(Discipline discipline) {
  switch (discipline) {
    case Discipline::one_class:
      return "shortest paths, one class";
    case Discipline::hop_classes:
      return "shortest paths, a class for each hop";
    case Discipline::dateline:
      return "shortest paths, a dateline";
    case Discipline::up_down:
      break;
  }
  return "up and down";
}

Relaying choose_relaying(const Graph& graph, uint32_t worst_diameter) {
  // Room for detours while routes change after a cut.
  constexpr uint32_t kLeastHops = 6;
  const uint32_t most_hops = std::max(worst_diameter + 2, kLeastHops);
  if (most_hops <= kMostHopClasses) {
    // The source's memory is the first class and the destination's the last.
    return {Discipline::hop_classes, most_hops, most_hops - 1};
  }
  if (check_deadlock(shortest_routes(graph)).is_free()) {
    return {Discipline::one_class, most_hops, 1};
  }
  if (is_ring_in_order(graph)) {
    return {Discipline::dateline, most_hops, 2};
  }
  return {Discipline::up_down, std::max(most_hops, use_of(best_up_down_routes(graph)).most_hops + 2), 1};
}

Routes routes_of(const Graph& graph, Discipline discipline) {
  switch (discipline) {
    case Discipline::hop_classes:
      return with_hop_classes(shortest_routes(graph));
    case Discipline::dateline:
      return with_dateline(shortest_routes(graph), graph.n_nodes);
    case Discipline::up_down:
      return best_up_down_routes(graph);
    case Discipline::one_class:
      break;
  }
  return shortest_routes(graph);
}

}  // namespace ringbolt::fabric
