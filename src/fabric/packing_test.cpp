#include "fabric/packing.h"

#include <algorithm>
#include <map>

#include <gtest/gtest.h>

#include "fabric/bounds.h"
#include "fabric/flow.h"
#include "fabric/golden_graphs_test_support.h"

namespace ringbolt::fabric {
namespace {

/// Each tree spans the graph from its root on, and each arc is used no more often than it has pieces. With
/// `is_both_ways`, an arc counts for its cable.
void expect_fits(const Graph& graph, const Packing& packing, bool is_both_ways, const std::string& name) {
  const Graph pieces = in_pieces(graph, packing.scale);
  std::map<Arc, int64_t> used;
  for (const Tree& tree : packing.trees) {
    EXPECT_GT(tree.multiplicity, 0) << name;
    ASSERT_EQ(tree.arcs.size(), graph.n_nodes - 1) << name;
    std::vector<bool> reached(graph.n_nodes);
    reached[tree.root] = true;
    for (const Arc& arc : tree.arcs) {
      EXPECT_TRUE(reached[arc.from]) << name;
      EXPECT_FALSE(reached[arc.to]) << name;
      reached[arc.to] = true;
      used[is_both_ways ? Arc{std::min(arc.from, arc.to), std::max(arc.from, arc.to)} : arc] += tree.multiplicity;
    }
  }
  for (const Cable& cable : pieces.cables) {
    EXPECT_LE((used[{cable.a, cable.b}]), cable.capacity.numerator()) << name;
    EXPECT_LE((used[{cable.b, cable.a}]), cable.capacity.numerator()) << name;
  }
  for (const auto& [arc, count] : used) {
    EXPECT_TRUE(count == 0 || is_joined(pieces, arc.from, arc.to)) << name;
  }
}

int64_t trees_of(const Packing& packing, uint32_t root) {
  int64_t count = 0;
  for (const Tree& tree : packing.trees) {
    count += tree.root == root ? tree.multiplicity : 0;
  }
  return count;
}

void expect_all_packings(const Graph& graph, const std::string& name) {
  const Scaling shards = exact_scaling(graph, shard_rate(graph));
  const Packing from_all = pack_from_all(graph, shards);
  expect_fits(graph, from_all, false, name);
  for (uint32_t root = 0; root < graph.n_nodes; ++root) {
    EXPECT_EQ(trees_of(from_all, root), shards.n_trees) << name;
  }

  const Scaling lambda = exact_scaling(graph, edge_connectivity(graph));
  const Packing from_one = pack_from_one(graph, graph.n_nodes - 1, lambda);
  expect_fits(graph, from_one, false, name);
  EXPECT_EQ(trees_of(from_one, graph.n_nodes - 1), lambda.n_trees) << name;

  const Scaling trees = exact_scaling(graph, tree_rate(graph));
  const Packing undirected = pack_undirected(graph, trees);
  expect_fits(graph, undirected, true, name);
  EXPECT_EQ(undirected.n_trees(), trees.n_trees) << name;
  EXPECT_EQ(Fraction(undirected.n_trees()) / undirected.scale, tree_rate(graph)) << name;
}

TEST(Scaling, is_the_least_that_makes_all_whole) {
  const auto shards = [](const Graph& graph) { return exact_scaling(graph, shard_rate(graph)); };
  const auto trees = [](const Graph& graph) { return exact_scaling(graph, tree_rate(graph)); };
  EXPECT_EQ(shards(ring(4)), (Scaling{3, 2}));
  EXPECT_EQ(shards(petersen()), (Scaling{3, 1}));
  EXPECT_EQ(shards(hypercube(3)), (Scaling{7, 3}));
  EXPECT_EQ(shards(torus({4, 4})), (Scaling{15, 4}));
  EXPECT_EQ(trees(petersen()), (Scaling{3, 5}));
  EXPECT_EQ(trees(torus({3, 3})), (Scaling{4, 9}));
  EXPECT_EQ(trees(ring(7)), (Scaling{6, 7}));
}

TEST(Scaling, coarsely_is_by_whole_or_half_cables) {
  const auto coarse = [](const Graph& graph, int64_t most) { return coarse_scaling(graph, tree_rate, most); };
  EXPECT_EQ(coarse(torus({16, 16}), 64), (Scaling{1, 2}));
  EXPECT_EQ(coarse(hypercube(7), 64), (Scaling{2, 7}));
  EXPECT_EQ(coarse(full_mesh(100), 64), (Scaling{1, 50}));
  EXPECT_EQ(coarse(full_mesh(100), 49).n_trees, 0);
  EXPECT_EQ(coarse(graph_of(3, {{0, 1, {1, 2}}, {1, 2, 1}}), 64), (Scaling{2, 1}));  // a whole piece is no tree's
  EXPECT_EQ(coarse(graph_of(3, {{0, 1, {1, 3}}, {1, 2, 1}}), 64).n_trees, 0);
  for (const Graph& graph : {torus({16, 16}), hypercube(7), without_cable(torus({9, 9}), 4)}) {
    const Scaling scaling = coarse(graph, 64);
    const Packing packing = pack_undirected(graph, scaling);
    expect_fits(graph, packing, true, "coarse");
    EXPECT_EQ(packing.n_trees(), scaling.n_trees);
  }
}

TEST(Scaling, gives_up_little_for_few_trees) {
  const Graph graph = circulant(19, {1, 7});  // exactly: 38 trees at scale 18
  EXPECT_EQ(few_trees_scaling(graph, tree_rate, 38), (Scaling{9, 19}));
  const Scaling few = few_trees_scaling(graph, tree_rate, 4);
  EXPECT_EQ(few, (Scaling{1, 2}));
  EXPECT_GT(few.rate() / tree_rate(graph), Fraction(9, 10));
  Graph uneven = ring(4);
  uneven.cables[1].capacity = {1009, 1000};
  const Scaling some = few_trees_scaling(uneven, tree_rate, 64);
  EXPECT_LE(some.n_trees, 64);
  EXPECT_GT(some.rate() / tree_rate(uneven), Fraction(99, 100));
}

TEST(Scaling, of_rails_counts_no_more_trees_than_it_needs) {
  const Graph pair = graph_of(2, {{0, 1, 1}, {0, 1, 4}});
  EXPECT_EQ(exact_scaling(pair, 5), (Scaling{Fraction(1, 5), 1}));
}

TEST(Packing, of_wild_rates_loses_little_with_few_trees) {
  Graph graph = circulant(12, {1, 5});
  for (size_t index = 0; index < graph.cables.size(); ++index) {
    graph.cables[index].capacity = Fraction(static_cast<int64_t>(1000 + index * 617 % 9001), 997);
  }
  for (const auto& rate_of : {tree_rate, shard_rate}) {
    const Scaling few = few_trees_scaling(graph, rate_of, 64);
    EXPECT_LE(few.n_trees, 64);
    EXPECT_GT(few.rate() / rate_of(graph), Fraction(8, 10));
  }
  const Scaling trees = few_trees_scaling(graph, tree_rate, 64);
  expect_fits(graph, pack_undirected(graph, trees), true, "wild");
  const Scaling shards = few_trees_scaling(graph, shard_rate, 64);
  expect_fits(graph, pack_from_all(graph, shards), false, "wild");
}

TEST(Packing, of_no_trees_is_empty) {
  for (const Packing& packing :
       {pack_undirected(ring(4), {1, 0}), pack_from_all(ring(4), {1, 0}), pack_from_one(ring(4), 2, {1, 0})}) {
    EXPECT_TRUE(packing.trees.empty());
    EXPECT_EQ(packing.n_trees(), 0);
    EXPECT_EQ(packing.depth(), 0U);
  }
}

TEST(Packing, fills_every_golden_graph) {
  for (const GoldenGraph& one : golden_graphs()) {
    expect_all_packings(one.graph, one.name);
  }
}

TEST(Packing, fills_meshes_rings_lines_and_stars) {
  for (uint32_t n = 2; n <= 8; ++n) {
    for (const Graph& graph : {full_mesh(n), ring(n), line(n), star(n)}) {
      expect_all_packings(graph, std::to_string(n) + " nodes, " + std::to_string(graph.cables.size()) + " cables");
    }
  }
}

TEST(Packing, fills_random_graphs) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    expect_all_packings(random_connected_graph(seed, 10), "seed " + std::to_string(seed));
  }
}

TEST(Packing, of_fewer_trees_fits_as_well) {
  const Graph graph = circulant(19, {1, 7});
  const Scaling few = few_trees_scaling(graph, tree_rate, 4);
  const Packing packing = pack_undirected(graph, few);
  expect_fits(graph, packing, true, "few");
  EXPECT_EQ(packing.n_trees(), few.n_trees);
}

TEST(Tree, is_rooted_where_it_is_shallow) {
  const Tree tree = rooted_at_centre(5, {{0, 1}, {2, 1}, {2, 3}, {4, 3}});
  EXPECT_EQ(tree.root, 2U);
  EXPECT_EQ(depth(tree), 2U);
  EXPECT_EQ(depth(shortest_path_tree(ring(8), 3)), 4U);
  EXPECT_EQ(depth(shortest_path_tree(petersen(), 9)), 2U);
}

}  // namespace
}  // namespace ringbolt::fabric
