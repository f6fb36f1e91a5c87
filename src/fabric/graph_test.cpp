#include "fabric/graph.h"

#include <gtest/gtest.h>

#include "fabric/builders.h"

namespace ringbolt::fabric {
namespace {

TEST(Graph, keeps_ends_in_order_and_sorts_cables) {
  Graph graph{4};
  join(graph, 3, 1);
  join(graph, 2, 0, Fraction(1, 2));
  join(graph, 0, 2, 3);
  sort_cables(graph);
  const std::vector<Cable> expected{{0, 2, {1, 2}}, {0, 2, 3}, {1, 3, 1}};
  EXPECT_EQ(graph.cables, expected);
  EXPECT_TRUE(is_joined(graph, 3, 1));
  EXPECT_FALSE(is_joined(graph, 0, 1));
}

TEST(Graph, counts_rails_as_ports_and_adds_their_rates) {
  Graph graph{3};
  join(graph, 0, 1);
  join(graph, 1, 0, 4);
  join(graph, 1, 2);
  EXPECT_EQ(port_counts(graph), (std::vector<uint32_t>{2, 3, 1}));
  EXPECT_EQ(rates_of_nodes(graph), (std::vector<Fraction>{5, 6, 1}));
  EXPECT_EQ(neighbours(graph)[1], (std::vector<uint32_t>{0, 2}));
  const Graph merged = merge_rails(graph);
  ASSERT_EQ(merged.cables.size(), 2U);
  EXPECT_EQ(merged.cables[0], (Cable{0, 1, 5}));
}

TEST(Graph, measures_its_shortest_paths) {
  const Distances found = distances(line(5));
  EXPECT_TRUE(found.is_connected);
  EXPECT_EQ(found.diameter, 4U);
  EXPECT_EQ(found.radius, 2U);
  EXPECT_EQ(found.centre, 2U);
  EXPECT_EQ(found.sum, 40U);
  EXPECT_EQ(found.aspl(5), 2);
}

TEST(Graph, tells_what_cannot_be_reached) {
  const Graph cut = without_cable(line(4), 1);
  EXPECT_FALSE(distances(cut).is_connected);
  EXPECT_EQ(hops_from(neighbours(cut), 0), (std::vector<uint32_t>{0, 1, kUnreachable, kUnreachable}));
}

TEST(Graph, of_one_node_is_connected) {
  const Distances alone = distances(Graph{1});
  EXPECT_TRUE(alone.is_connected);
  EXPECT_EQ(alone.diameter, 0U);
  EXPECT_EQ(alone.aspl(1), 0);
}

}  // namespace
}  // namespace ringbolt::fabric
