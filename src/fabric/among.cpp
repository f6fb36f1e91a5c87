#include "fabric/among.h"

#include <algorithm>

namespace ringbolt::fabric {

Graph graph_among(const Graph& graph, const std::vector<uint32_t>& members) {
  Graph among{static_cast<uint32_t>(members.size()), {}};
  // members.size() for one that is none.
  const auto number = [&](uint32_t node) {
    return static_cast<uint32_t>(std::ranges::find(members, node) - members.begin());
  };
  for (const Cable& cable : graph.cables) {
    const uint32_t a = number(cable.a);
    const uint32_t b = number(cable.b);
    if (a < among.n_nodes && b < among.n_nodes) {
      join(among, a, b, cable.capacity);
    }
  }
  // The thin cables stand for relayed ways, so that plans prefer what needs no relay.
  if (among.n_nodes > 1 && !distances(among).is_connected) {
    const auto all_neighbours = neighbours(graph);
    for (uint32_t a = 0; a < among.n_nodes; ++a) {
      const auto hops = hops_from(all_neighbours, members[a]);
      for (uint32_t b = a + 1; b < among.n_nodes; ++b) {
        if (!is_joined(among, a, b)) {
          join(among, a, b, Fraction(1) / Fraction(std::min(hops[members[b]], graph.n_nodes)));
        }
      }
    }
  }
  sort_cables(among);
  return among;
}

}  // namespace ringbolt::fabric
