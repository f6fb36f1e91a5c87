#include "fabric/routes.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "base/assert.h"

namespace ringbolt::fabric {
namespace {

using Lists = std::vector<std::vector<uint32_t>>;

/// Which way is up. Up is towards the root, and among nodes of one distance towards the lower number: a total order,
/// without which cycles of buffers could wait for each other.
class Order {
 public:
  Order(const Lists& lists, uint32_t root) : hops_(hops_from(lists, root)) {}
  bool is_up(uint32_t from, uint32_t to) const { return std::tie(hops_[to], to) < std::tie(hops_[from], from); }

 private:
  std::vector<uint32_t> hops_;
};

/// Least hops to `sink`: from a node where up is still allowed, and where only down is.
struct Legal {
  std::vector<uint32_t> by_up;
  std::vector<uint32_t> by_down;
};

Legal legal_hops(const Lists& lists, const Order& order, uint32_t sink) {
  Legal legal{std::vector<uint32_t>(lists.size(), kUnreachable), std::vector<uint32_t>(lists.size(), kUnreachable)};
  legal.by_up[sink] = legal.by_down[sink] = 0;
  // Backwards from the sink: a node that goes up next may come from up; one that goes down next from anywhere. Each
  // pair of node and state enters once at most.
  std::vector<std::pair<uint32_t, bool>> queue{{sink, false}, {sink, true}};
  for (size_t next = 0; next < queue.size(); ++next) {
    const auto [node, may_go_up] = queue[next];
    const uint32_t hops = (may_go_up ? legal.by_up : legal.by_down)[node] + 1;
    for (const uint32_t before : lists[node]) {
      const bool is_up = order.is_up(before, node);
      const auto reach = [&, before = before](std::vector<uint32_t>& found, bool state) {
        // Breadth first: the first time is by the fewest hops.
        if (found[before] == kUnreachable) {
          found[before] = hops;
          queue.emplace_back(before, state);
        }
      };
      if (is_up && may_go_up) {
        reach(legal.by_up, true);
      } else if (!is_up && !may_go_up) {
        // Who goes down next may have come down already or still be allowed up: both states are reached.
        reach(legal.by_down, false);
        reach(legal.by_up, true);
      }
    }
  }
  return legal;
}

}  // namespace

Routes shortest_routes(const Graph& graph) {
  const Lists lists = neighbours(graph);
  Routes routes;
  // By sinks, then sources. Of unconnected pairs there is none.
  for (uint32_t sink = 0; sink < graph.n_nodes; ++sink) {
    const std::vector<uint32_t> hops = hops_from(lists, sink);
    for (uint32_t source = 0; source < graph.n_nodes; ++source) {
      if (source == sink || hops[source] == kUnreachable) {
        continue;
      }
      Route& route = routes.emplace_back();
      for (uint32_t node = source; node != sink;) {
        // There is one: hops were counted along neighbours. Lists ascend, so it is the lowest.
        const auto next = std::ranges::find_if(lists[node], [&](uint32_t one) { return hops[one] + 1 == hops[node]; });
        route.push_back({node, *next, 0});
        node = *next;
      }
    }
  }
  return routes;
}

Routes up_down_routes(const Graph& graph, uint32_t root) {
  const Lists lists = neighbours(graph);
  const Order order(lists, root);
  Routes routes;
  for (uint32_t sink = 0; sink < graph.n_nodes; ++sink) {
    const Legal legal = legal_hops(lists, order, sink);
    for (uint32_t source = 0; source < graph.n_nodes; ++source) {
      if (source == sink || legal.by_up[source] == kUnreachable) {
        continue;
      }
      Route& route = routes.emplace_back();
      bool may_go_up = true;
      for (uint32_t node = source; node != sink;) {
        const uint32_t left = (may_go_up ? legal.by_up : legal.by_down)[node];
        const auto next = std::ranges::find_if(lists[node], [&](uint32_t one) {
          const bool is_up = order.is_up(node, one);
          return (!is_up || may_go_up) && (is_up ? legal.by_up : legal.by_down)[one] == left - 1;
        });
        // legal_hops() has counted along such a neighbour.
        RINGBOLT_ASSERT(next != lists[node].end());
        // Once down, never up again.
        may_go_up = order.is_up(node, *next);
        route.push_back({node, *next, 0});
        node = *next;
      }
    }
  }
  return routes;
}

Routes best_up_down_routes(const Graph& graph) {
  std::optional<Routes> best;
  RouteUse least;
  // All roots, n^4 at worst; of equal ones the lowest, on all ranks alike.
  for (uint32_t root = 0; root < graph.n_nodes; ++root) {
    Routes routes = up_down_routes(graph, root);
    const RouteUse use = use_of(routes);
    if (!best || std::tie(use.sum, use.most_load) < std::tie(least.sum, least.most_load)) {
      best = std::move(routes);
      least = use;
    }
  }
  return best.value_or(Routes{});
}

// A buffer class per hop: a message only ever waits for the next higher class, so that no cycle can form.
Routes with_hop_classes(Routes routes) {
  for (Route& route : routes) {
    for (size_t hop = 0; hop < route.size(); ++hop) {
      route[hop].buffer_class = static_cast<uint32_t>(hop);
    }
  }
  return routes;
}

// For rings alone: the cable between the last node and node 0 breaks the one cycle of buffers that a ring has in each
// direction.
Routes with_dateline(Routes routes, uint32_t n_nodes) {
  for (Route& route : routes) {
    uint32_t buffer_class = 0;
    for (Channel& channel : route) {
      if (std::min(channel.from, channel.to) == 0 && std::max(channel.from, channel.to) == n_nodes - 1) {
        // And stays 1: a shortest path crosses that cable once.
        buffer_class = 1;
      }
      channel.buffer_class = buffer_class;
    }
  }
  return routes;
}

RouteUse use_of(const Routes& routes) {
  RouteUse use;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> loads;
  for (const Route& route : routes) {
    use.sum += route.size();
    use.most_hops = std::max(use.most_hops, static_cast<uint32_t>(route.size()));
    for (const Channel& channel : route) {
      use.n_classes = std::max(use.n_classes, channel.buffer_class + 1);
      use.most_load = std::max(use.most_load, ++loads[{channel.from, channel.to}]);
    }
  }
  return use;
}

}  // namespace ringbolt::fabric
