#include "fabric/bounds.h"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

#include "fabric/builders.h"
#include "fabric/golden_graphs_test_support.h"

namespace ringbolt::fabric {
namespace {

TEST(Bounds, are_those_of_the_golden_table) {
  for (const GoldenGraph& one : golden_graphs()) {
    EXPECT_EQ(edge_connectivity(one.graph), one.lambda) << one.name;
    EXPECT_EQ(shard_rate(one.graph), one.shard_rate) << one.name;
    EXPECT_EQ(tree_rate(one.graph), one.tree_rate) << one.name;
    EXPECT_EQ(shard_rate(one.graph) * Fraction(one.graph.n_nodes) / Fraction(2), one.rate_by_shards) << one.name;
    EXPECT_EQ(pair_rate_bound(one.graph).bound, one.pair_bound) << one.name;
    EXPECT_TRUE(pair_rate_bound(one.graph).has_all_cuts) << one.name;
    EXPECT_EQ(equal_split_rate(one.graph).exact, one.pair_rate) << one.name;
  }
}

TEST(Bounds, of_rings_lines_stars_and_meshes_follow_their_formulas) {
  for (uint32_t n = 2; n <= 8; ++n) {
    const auto count = static_cast<int64_t>(n);
    const Graph mesh = full_mesh(n);
    EXPECT_EQ(edge_connectivity(mesh), count - 1);
    EXPECT_EQ(shard_rate(mesh), 1);
    EXPECT_EQ(tree_rate(mesh), Fraction(count, 2));
    EXPECT_EQ(equal_split_rate(mesh).exact, Fraction(1));
    for (const Graph& tree : {line(n), star(n)}) {
      EXPECT_EQ(edge_connectivity(tree), 1);
      EXPECT_EQ(shard_rate(tree), Fraction(1, count - 1));
      EXPECT_EQ(tree_rate(tree), 1);
    }
    EXPECT_EQ(pair_rate_bound(line(n)).bound, Fraction(1, count * count / 4));
    EXPECT_EQ(equal_split_rate(line(n)).exact, Fraction(1, count * count / 4));
    EXPECT_EQ(equal_split_rate(star(n)).exact, Fraction(1, count - 1));
    if (n >= 3) {
      EXPECT_EQ(edge_connectivity(ring(n)), 2);
      EXPECT_EQ(shard_rate(ring(n)), Fraction(2, count - 1));
      EXPECT_EQ(tree_rate(ring(n)), Fraction(count, count - 1));
      const Fraction pair(8, n % 2 == 0 ? count * count : count * count - 1);
      EXPECT_EQ(equal_split_rate(ring(n)).exact, pair);
      EXPECT_EQ(pair_rate_bound(ring(n)).bound, pair);
    }
  }
}

// All subsets and all partitions of small graphs, to check what the algorithms find.

Fraction rate_between(const Graph& graph, const std::vector<uint32_t>& part) {
  Fraction rate;
  for (const Cable& cable : graph.cables) {
    if (part[cable.a] != part[cable.b]) {
      rate += cable.capacity;
    }
  }
  return rate;
}

struct Exhausted {
  Fraction lambda = 1'000'000;
  Fraction shard_rate = 1'000'000;
  Fraction tree_rate = 1'000'000;
  Fraction cut_per_pair = 1'000'000;
};

void try_partitions(const Graph& graph, std::vector<uint32_t>& part, uint32_t node, uint32_t n_parts, Exhausted& best) {
  if (node == graph.n_nodes) {
    if (n_parts > 1) {
      best.tree_rate = std::min(best.tree_rate, rate_between(graph, part) / Fraction(n_parts - 1));
    }
    return;
  }
  for (part[node] = 0; part[node] <= n_parts; ++part[node]) {
    try_partitions(graph, part, node + 1, std::max(n_parts, part[node] + 1), best);
  }
}

Exhausted exhaust(const Graph& graph) {
  Exhausted best;
  std::vector<uint32_t> part(graph.n_nodes);
  for (uint32_t set = 1; set + 1 < 1U << graph.n_nodes; ++set) {
    uint32_t size = 0;
    for (uint32_t node = 0; node < graph.n_nodes; ++node) {
      part[node] = set >> node & 1U;
      size += part[node];
    }
    const Fraction rate = rate_between(graph, part);
    best.lambda = std::min(best.lambda, rate);
    best.shard_rate = std::min(best.shard_rate, rate / Fraction(size));
    best.cut_per_pair = std::min(best.cut_per_pair, rate / (Fraction(size) * Fraction(graph.n_nodes - size)));
  }
  try_partitions(graph, part, 0, 0, best);
  return best;
}

TEST(Bounds, are_those_of_all_subsets_and_partitions_of_random_graphs) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    const Graph graph = random_connected_graph(seed, 8);
    const Exhausted known = exhaust(graph);
    EXPECT_EQ(edge_connectivity(graph), known.lambda) << "seed " << seed;
    EXPECT_EQ(shard_rate(graph), known.shard_rate) << "seed " << seed;
    EXPECT_EQ(tree_rate(graph), known.tree_rate) << "seed " << seed;
    EXPECT_LE(pair_rate_bound(graph).bound, known.cut_per_pair) << "seed " << seed;
  }
  for (uint64_t seed = 100; seed <= 102; ++seed) {
    const Graph graph = random_connected_graph(seed, 9);
    EXPECT_EQ(tree_rate(graph), exhaust(graph).tree_rate) << "seed " << seed;
  }
}

TEST(Bounds, keep_their_order) {
  for (uint64_t seed = 200; seed <= 260; ++seed) {
    const Graph graph = random_connected_graph(seed, 14);
    const Fraction others = Fraction(graph.n_nodes - 1);
    const Fraction x = shard_rate(graph);
    EXPECT_LE(edge_connectivity(graph) / others, x);
    EXPECT_LE(x, std::ranges::min(rates_of_nodes(graph)) / others);
    EXPECT_GE(tree_rate(graph), x * Fraction(graph.n_nodes) / Fraction(2));
    EXPECT_LE(equal_split_rate(graph).value, pair_rate_bound(graph).bound.value() * (1 + 1e-12));
  }
}

TEST(Bounds, of_one_cut_cable) {
  const struct {
    const char* name;
    Graph graph;
    uint32_t diameter;  // in the worst case over cables
    Fraction tree_rate;
    Fraction rate_by_shards;
  } known[] = {
      {"K4", full_mesh(4), 2, {5, 3}, {4, 3}},
      {"K8", full_mesh(8), 2, {27, 7}, {24, 7}},
      {"ring 4", ring(4), 3, 1, {2, 3}},
      {"ring 8", ring(8), 7, 1, {4, 7}},
      {"K3,3", complete_bipartite(3, 3), 3, {8, 5}, {6, 5}},
      {"Q3", hypercube(3), 3, {11, 7}, {8, 7}},
      {"Wagner", circulant(8, {1, 4}), 3, {11, 7}, {8, 7}},
      {"Petersen", petersen(), 4, {14, 9}, {10, 9}},
      {"torus 3x3", torus({3, 3}), 2, {17, 8}, {27, 16}},
      {"Heawood", periodic_chords(14, 2, {{0, 5}}), 5, {20, 13}, {14, 13}},
      {"torus 4x4", torus({4, 4}), 4, {31, 15}, {8, 5}},
      {"Q4", hypercube(4), 4, {31, 15}, {8, 5}},
  };
  for (const auto& one : known) {
    uint32_t diameter = 0;
    Fraction trees = 100;
    Fraction shards = 100;
    for (size_t cable = 0; cable < one.graph.cables.size(); ++cable) {
      const Graph cut = without_cable(one.graph, cable);
      diameter = std::max(diameter, distances(cut).diameter);
      trees = std::min(trees, tree_rate(cut));
      shards = std::min(shards, shard_rate(cut) * Fraction(cut.n_nodes) / Fraction(2));
    }
    EXPECT_EQ(diameter, one.diameter) << one.name;
    EXPECT_EQ(trees, one.tree_rate) << one.name;
    EXPECT_EQ(shards, one.rate_by_shards) << one.name;
  }
}

TEST(Bounds, of_all_to_all_find_the_waist_of_larger_graphs) {
  for (const int64_t n : {19, 20, 64}) {
    const PairRate rate = pair_rate_bound(line(static_cast<uint32_t>(n)));
    EXPECT_EQ(rate.bound, Fraction(1, (n / 2) * (n - n / 2))) << n;
    EXPECT_FALSE(rate.has_all_cuts);
  }
  // Two meshes of 10 nodes and a bridge; the nodes of one are even, so that no order of numbers shows it.
  Graph bridge{20};
  for (uint32_t a = 0; a < 20; ++a) {
    for (uint32_t b = a + 2; b < 20; b += 2) {
      join(bridge, a, b);
    }
  }
  join(bridge, 6, 13);
  EXPECT_EQ(pair_rate_bound(bridge).bound, Fraction(1, 100));
  for (uint64_t seed = 300; seed <= 340; ++seed) {
    const Graph graph = random_connected_graph(seed, 40);
    EXPECT_LE(equal_split_rate(graph).value, pair_rate_bound(graph).bound.value() * (1 + 1e-12)) << "seed " << seed;
  }
}

TEST(Bounds, of_steps_count_hops_and_how_fast_word_spreads) {
  EXPECT_EQ(least_steps(full_mesh(8)), 1U);
  EXPECT_EQ(least_steps(petersen()), 2U);
  EXPECT_EQ(least_steps(ring(8)), 4U);
}

}  // namespace
}  // namespace ringbolt::fabric
