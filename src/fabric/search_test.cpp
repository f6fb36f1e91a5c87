#include "fabric/search.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "fabric/moore_bound.h"

namespace ringbolt::fabric {
namespace {

TEST(Search, meets_the_moore_bound_where_that_is_easy) {
  for (const auto& [n_nodes, n_ports] : {std::pair{6U, 3U}, {8U, 3U}, {10U, 4U}, {12U, 5U}, {24U, 6U}}) {
    const Graph graph = search_graph(n_nodes, n_ports);
    EXPECT_EQ(distances(graph).sum, moore_bound(n_nodes, n_ports).sum) << n_nodes << " " << n_ports;
    EXPECT_EQ(std::ranges::max(port_counts(graph)), n_ports);
  }
}

TEST(Search, is_the_same_for_the_same_seed) {
  const SearchEffort effort{.seed = 5, .n_steps = 2000, .n_attempts = 1};
  EXPECT_EQ(search_graph(24, 3, effort), search_graph(24, 3, effort));
  EXPECT_NE(search_graph(24, 3, effort), search_graph(24, 3, {.seed = 6, .n_steps = 2000, .n_attempts = 1}));
}

TEST(Search, leaves_one_port_free_of_an_odd_sum) {
  const Graph graph = search_graph(21, 3, {.n_steps = 5000, .n_attempts = 1});
  const std::vector<uint32_t> ports = port_counts(graph);
  EXPECT_EQ(ports.back(), 2U);
  EXPECT_EQ(std::ranges::count(ports, 3), 20);
  EXPECT_TRUE(distances(graph).is_connected);
}

TEST(Search, shortens_paths_of_the_largest) {
  const Graph graph = search_graph(64, 4, {.n_steps = 10'000, .n_attempts = 1});
  EXPECT_LE(distances(graph).diameter, 5U);
  EXPECT_LT(distances(graph).sum, distances(random_regular(64, 4)).sum);
}

TEST(RandomRegular, is_connected_and_simple) {
  for (const auto& [n_nodes, n_ports] : {std::pair{4U, 3U}, {5U, 3U}, {7U, 5U}, {100U, 3U}, {250U, 4U}}) {
    const Graph graph = random_regular(n_nodes, n_ports, 3);
    EXPECT_TRUE(distances(graph).is_connected);
    EXPECT_EQ(merge_rails(graph), graph);
    const std::vector<uint32_t> ports = port_counts(graph);
    EXPECT_EQ(std::ranges::count(ports, n_ports), n_nodes - n_nodes * n_ports % 2);
  }
}

TEST(RandomRegular, of_dense_graphs_has_every_port) {
  const auto check = [](uint32_t n_nodes, uint32_t n_ports, uint64_t seed) {
    const Graph graph = random_regular(n_nodes, n_ports, seed);
    const std::vector<uint32_t> ports = port_counts(graph);
    EXPECT_EQ(merge_rails(graph), graph) << n_nodes << " " << n_ports;
    EXPECT_EQ(std::ranges::max(ports), n_ports) << n_nodes << " " << n_ports;
    EXPECT_EQ(std::ranges::count(ports, n_ports), n_nodes - n_nodes * n_ports % 2) << n_nodes << " " << n_ports;
    EXPECT_EQ(ports.back(), n_ports - n_nodes * n_ports % 2) << n_nodes << " " << n_ports;
  };
  for (uint32_t n_nodes = 5; n_nodes <= kMostSearchedNodes; ++n_nodes) {
    for (uint32_t n_ports = std::max(3U, n_nodes / 2 - 1); n_ports < n_nodes; ++n_ports) {
      check(n_nodes, n_ports, n_ports);
    }
  }
  // Ports for half of the nodes, where most cables must be opened for another; and nearly full meshes.
  for (const auto& [n_nodes, n_ports] :
       {std::pair{65U, 60U}, {66U, 63U}, {100U, 49U}, {100U, 98U}, {250U, 122U}, {250U, 124U}, {249U, 247U}}) {
    check(n_nodes, n_ports, 1);
  }
}

TEST(Search, of_a_mesh_less_a_cable_of_each_node_needs_none) {
  for (uint32_t n_nodes = 5; n_nodes <= kMostSearchedNodes; ++n_nodes) {
    const Graph graph = search_graph(n_nodes, n_nodes - 2);
    EXPECT_EQ(distances(graph).sum, moore_bound(n_nodes, n_nodes - 2).sum) << n_nodes;
    EXPECT_EQ(graph.cables.size(), n_nodes * (n_nodes - 2) / 2) << n_nodes;
  }
}

}  // namespace
}  // namespace ringbolt::fabric
