#include "fabric/deadlock.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "fabric/golden_graphs_test_support.h"

namespace ringbolt::fabric {
namespace {

/// Each channel is followed by the next on some route, and the last by the first.
void expect_cycle(const std::vector<Channel>& cycle, const Routes& routes) {
  ASSERT_FALSE(cycle.empty());
  for (size_t index = 0; index < cycle.size(); ++index) {
    const Channel& one = cycle[index];
    const Channel& next = cycle[(index + 1) % cycle.size()];
    EXPECT_EQ(one.to, next.from);
    EXPECT_TRUE(std::ranges::any_of(routes, [&](const Route& route) {
      const auto found =
          std::ranges::adjacent_find(route, [&](const Channel& a, const Channel& b) { return a == one && b == next; });
      return found != route.end();
    }));
  }
}

TEST(Deadlock, of_shortest_paths_in_known_graphs) {
  const struct {
    const char* name;
    Graph graph;
    size_t n_arcs;
    bool is_free;
  } known[] = {
      {"ring 4", ring(4), 4, true},
      {"ring 5", ring(5), 10, false},
      {"ring 6", ring(6), 12, false},
      {"ring 8", ring(8), 16, false},
      {"K3,3", complete_bipartite(3, 3), 12, true},
      {"Wagner", circulant(8, {1, 4}), 32, false},
      {"Q3", hypercube(3), 24, true},
      {"Petersen", petersen(), 60, false},
      {"torus 3x3", torus({3, 3}), 36, true},
      {"torus 4x4", torus({4, 4}), 96, true},
      {"Q4", hypercube(4), 96, true},
      {"Heawood", periodic_chords(14, 2, {{0, 5}}), 84, false},
      {"Moebius-Kantor", periodic_chords(16, 2, {{0, 5}}), 96, false},
  };
  for (const auto& one : known) {
    const Routes routes = shortest_routes(one.graph);
    EXPECT_EQ(routes.size(), one.graph.n_nodes * (one.graph.n_nodes - 1)) << one.name;
    const DeadlockReport report = check_deadlock(routes);
    EXPECT_EQ(report.n_arcs, one.n_arcs) << one.name;
    EXPECT_EQ(report.is_free(), one.is_free) << one.name;
    if (one.is_free) {
      EXPECT_TRUE(proves_freedom(report.order, routes)) << one.name;
    } else {
      expect_cycle(report.cycle, routes);
      EXPECT_TRUE(report.order.empty());
    }
  }
}

TEST(Deadlock, does_not_come_with_hop_classes_or_up_and_down) {
  std::vector<Graph> graphs{ring(9), petersen(), torus({3, 5}), line(6), star(5)};
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    graphs.push_back(random_connected_graph(seed, 12));
  }
  for (const Graph& graph : graphs) {
    for (const Routes& routes :
         {with_hop_classes(shortest_routes(graph)), up_down_routes(graph, 0), best_up_down_routes(graph)}) {
      EXPECT_EQ(routes.size(), graph.n_nodes * (graph.n_nodes - 1));
      const DeadlockReport report = check_deadlock(routes);
      EXPECT_TRUE(report.is_free());
      EXPECT_TRUE(proves_freedom(report.order, routes));
    }
  }
}

TEST(Deadlock, does_not_come_over_a_dateline) {
  for (uint32_t n = 3; n <= 12; ++n) {
    const Routes routes = with_dateline(shortest_routes(ring(n)), n);
    EXPECT_TRUE(check_deadlock(routes).is_free()) << n;
    EXPECT_EQ(use_of(routes).n_classes, 2U);
  }
}

TEST(Deadlock, is_found_in_routes_that_all_turn_the_same_way) {
  Routes routes;
  for (uint32_t node = 0; node < 3; ++node) {
    routes.push_back({{node, (node + 1) % 3, 0}, {(node + 1) % 3, (node + 2) % 3, 0}});
  }
  const DeadlockReport report = check_deadlock(routes);
  EXPECT_EQ(report.cycle.size(), 3U);
  expect_cycle(report.cycle, routes);
  EXPECT_TRUE(check_deadlock(with_hop_classes(routes)).is_free());
}

TEST(Deadlock, is_found_behind_channels_that_are_in_order) {
  Routes routes = shortest_routes(ring(5));
  for (Route& route : routes) {
    for (Channel& channel : route) {
      channel.from += 2;
      channel.to += 2;
    }
    route.insert(route.begin(), {0, 1, 0});
    route.push_back({20, 21, 0});
  }
  const DeadlockReport report = check_deadlock(routes);
  ASSERT_FALSE(report.is_free());
  for (const Channel& channel : report.cycle) {
    EXPECT_GE(channel.from, 2U);
    EXPECT_LT(channel.from, 20U);
  }
}

TEST(Deadlock, has_no_proof_that_is_wrong) {
  const Routes routes = shortest_routes(line(3));
  std::vector<Channel> order = check_deadlock(routes).order;
  ASSERT_TRUE(proves_freedom(order, routes));
  std::ranges::reverse(order);
  EXPECT_FALSE(proves_freedom(order, routes));
  order.pop_back();
  EXPECT_FALSE(proves_freedom(order, routes));
  EXPECT_FALSE(proves_freedom({{0, 1, 0}, {0, 1, 0}}, {}));
  EXPECT_TRUE(check_deadlock({}).is_free());
}

}  // namespace
}  // namespace ringbolt::fabric
