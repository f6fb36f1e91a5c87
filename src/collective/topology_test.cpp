#include "collective/topology.h"

#include <algorithm>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "collective/problems_test_support.h"
#include "collective/ring_search.h"

namespace ringbolt::collective {
namespace {

TEST(Topology, adds_up_rails) {
  const Topology topology(fabric::graph_of(3, {{0, 1, 1}, {0, 1, 4}, {1, 2, 2}}), {.bytes_per_us = 100});
  EXPECT_EQ(topology.graph().cables.size(), 2u);
  EXPECT_EQ(topology.rate(0, 1), 500);
  EXPECT_EQ(topology.rate(2, 1), 200);
  EXPECT_EQ(topology.rate(0, 2), 0);
  EXPECT_EQ(topology.least_rate(), 200);
  EXPECT_EQ(topology.diameter(), 2u);
}

TEST(Topology, knows_a_single_rank) {
  const Topology topology(fabric::Graph{1});
  EXPECT_EQ(topology.diameter(), 0u);
  EXPECT_EQ(topology.ring(), std::nullopt);
  EXPECT_TRUE(topology.undirected_trees().trees.empty());
}

TEST(Topology, leads_along_cables_by_shortest_paths) {
  for (const NamedGraph& graph : usual_graphs()) {
    const Topology topology(graph.graph);
    for (uint32_t from = 0; from < topology.n_ranks(); ++from) {
      for (uint32_t to = 0; to < topology.n_ranks(); ++to) {
        if (from == to) {
          continue;
        }
        std::set<std::vector<uint32_t>> paths;
        const uint32_t n_paths = topology.n_shortest_paths(from, to);
        for (uint32_t turn = 0; turn < n_paths; ++turn) {
          std::vector<uint32_t> path = topology.path(from, to, turn);
          ASSERT_EQ(path.size() + 1, topology.hops(from, to)) << graph.name;
          paths.insert(path);
          path.push_back(to);
          uint32_t node = from;
          for (const uint32_t next : path) {
            ASSERT_GT(topology.rate(node, next), 0) << graph.name;
            node = next;
          }
        }
        EXPECT_EQ(paths.size(), n_paths) << graph.name;
        EXPECT_EQ(topology.path(from, to, n_paths), topology.path(from, to)) << graph.name;
      }
    }
  }
}

TEST(Topology, spreads_equal_paths_evenly) {
  const CostModel unit{.bytes_per_us = 1};
  const auto most_load = [&](const fabric::Graph& graph, bool is_path_0) {
    const Topology topology(graph, unit);
    return is_path_0 ? topology.pair_load_us() : topology.split_load_us();
  };
  // The sum of all distances over all directions is the least that can be.
  EXPECT_LE(most_load(fabric::ring(4), true), 3);
  EXPECT_EQ(most_load(fabric::ring(4), false), 2);
  EXPECT_LE(most_load(fabric::torus({3, 3}), true), 4);
  EXPECT_LE(most_load(fabric::torus({3, 3}), false), 3.25);
  EXPECT_EQ(most_load(fabric::petersen(), true), 5);  // there is no choice
  EXPECT_LE(most_load(fabric::torus({4, 4}), true), 10);
  EXPECT_LE(most_load(fabric::torus({4, 4}), false), 8.5);
  EXPECT_LE(most_load(fabric::hypercube(4), false), 8.5);
  EXPECT_LE(most_load(fabric::hypercube(6), false), 34);
}

TEST(Topology, counts_paths_up_to_a_limit) {
  const Topology topology(fabric::torus({32, 32}));
  EXPECT_EQ(topology.n_shortest_paths(0, 16 * 32 + 16), Topology::kManyPaths);
  EXPECT_EQ(topology.path(0, 16 * 32 + 16, 5).size(), 31u);
}

TEST(Topology, knows_all_trees_from_one_node_of_a_mesh) {
  constexpr uint32_t kNodes = 40;
  fabric::Graph graph = fabric::full_mesh(kNodes);
  for (fabric::Cable& cable : graph.cables) {
    cable.capacity = fabric::Fraction(5, 2);
  }
  const Topology topology(graph);
  const fabric::Packing& packing = topology.trees_from_one(7);
  EXPECT_EQ(packing.n_trees(), kNodes - 1);
  EXPECT_EQ(packing.depth(), 2u);
  EXPECT_EQ(packing.scale, fabric::Fraction(2, 5));
  std::set<fabric::Arc> used;
  for (const fabric::Tree& tree : packing.trees) {
    EXPECT_EQ(tree.root, 7u);
    std::set<uint32_t> reached = {tree.root};
    for (const fabric::Arc& arc : tree.arcs) {
      EXPECT_TRUE(reached.contains(arc.from));
      EXPECT_TRUE(reached.insert(arc.to).second);
      EXPECT_TRUE(used.insert(arc).second) << arc.from << " to " << arc.to << " twice";
    }
    EXPECT_EQ(reached.size(), kNodes);
  }
}

TEST(RingSearch, finds_rings_where_there_are_some) {
  for (const NamedGraph& graph : usual_graphs()) {
    const auto lists = fabric::neighbours(graph.graph);
    const auto ring = find_ring(lists);
    if (ring) {
      std::set<uint32_t> met(ring->begin(), ring->end());
      ASSERT_EQ(met.size(), lists.size()) << graph.name;
      for (size_t place = 0; place < ring->size(); ++place) {
        EXPECT_TRUE(fabric::is_joined(graph.graph, (*ring)[place], (*ring)[(place + 1) % ring->size()])) << graph.name;
      }
    }
  }
  EXPECT_TRUE(find_ring(fabric::neighbours(fabric::torus({3, 3}))));
  EXPECT_TRUE(find_ring(fabric::neighbours(fabric::torus({8, 8}))));
  EXPECT_TRUE(find_ring(fabric::neighbours(fabric::hypercube(6))));
  EXPECT_FALSE(find_ring(fabric::neighbours(fabric::petersen())));  // the famous exception
  EXPECT_FALSE(find_ring(fabric::neighbours(fabric::line(5))));
  EXPECT_FALSE(find_ring(fabric::neighbours(fabric::full_mesh(2))));
  EXPECT_EQ(find_ring(fabric::neighbours(fabric::full_mesh(4))), (std::vector<uint32_t>{0, 1, 2, 3}));
}

TEST(CostModel, clamps_chunks_to_whole_elements) {
  const CostModel model;  // sqrt(bytes * 10 us * 5000 bytes/us / (levels - 1))
  EXPECT_EQ(chunk_bytes_for(model, 3, 10'000'000, 5000, 4, {1 << 20}), 500'000u / 256 * 256);
  EXPECT_EQ(chunk_bytes_for(model, 3, 0, 5000, 4, {1 << 20}), kLeastChunkBytes);
  EXPECT_EQ(chunk_bytes_for(model, 3, 10'000'000, 5000, 4, {65536}), 65536u);
  EXPECT_EQ(chunk_bytes_for(model, 1, 5000, 5000, 4, {65536}), 65536u);
  EXPECT_EQ(chunk_bytes_for(model, 3, 10'000'000, 5000, 8, {100}), 96u);
  EXPECT_EQ(chunk_bytes_for(model, 3, 10'000'000, 5000, 100, {100}), 100u);
}

}  // namespace
}  // namespace ringbolt::collective
