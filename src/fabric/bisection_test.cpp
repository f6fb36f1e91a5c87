#include "fabric/bisection.h"

#include <gtest/gtest.h>

#include "fabric/all_cuts.h"
#include "fabric/golden_graphs_test_support.h"

namespace ringbolt::fabric {
namespace {

TEST(Bisection, of_known_graphs) {
  const struct {
    const char* name;
    Graph graph;
    Fraction rate;
  } known[] = {
      {"line of 2", line(2), 1},
      {"line of 3", line(3), 1},
      {"line of 10", line(10), 1},
      {"ring of 2", ring(2), 2},
      {"ring of 9", ring(9), 2},
      {"K4", full_mesh(4), 4},
      {"K5", full_mesh(5), 6},
      {"K8", full_mesh(8), 16},
      {"star of 5", star(5), 2},
      {"Petersen", petersen(), 5},
      {"Q3", hypercube(3), 4},
      {"Q4", hypercube(4), 8},
      {"torus 4x4", torus({4, 4}), 8},
      {"two triangles and a bridge",
       graph_of(6, {{0, 1, 1}, {1, 2, 1}, {0, 2, 1}, {2, 3, 1}, {3, 4, 1}, {4, 5, 1}, {3, 5, 1}}), 1},
      {"rails of 1/2 and 4", graph_of(2, {{0, 1, {1, 2}}, {0, 1, 4}}), {9, 2}},
  };
  for (const auto& one : known) {
    const Bisection found = bisection(one.graph);
    EXPECT_EQ(found.rate, one.rate) << one.name;
    EXPECT_TRUE(found.is_exact) << one.name;
    EXPECT_EQ(bisection_by_swaps(one.graph), one.rate) << one.name;
  }
}

TEST(Bisection, by_swaps_of_random_graphs_is_that_of_all_cuts) {
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    const Graph graph = random_connected_graph(seed, 16);
    EXPECT_EQ(bisection_by_swaps(graph), bisection(graph).rate) << seed;
  }
}

TEST(Bisection, of_graphs_too_large_for_all_cuts) {
  const struct {
    const char* name;
    Graph graph;
    int64_t rate;
  } known[] = {
      {"line of 19", line(19), 1},      {"ring of 64", ring(64), 2}, {"Q6", hypercube(6), 32},
      {"torus 8x8", torus({8, 8}), 16}, {"K20", full_mesh(20), 100}, {"torus 4x4x4", torus({4, 4, 4}), 32},
  };
  for (const auto& one : known) {
    const Bisection found = bisection(one.graph);
    EXPECT_EQ(found.rate, Fraction(one.rate)) << one.name;
    EXPECT_FALSE(found.is_exact) << one.name;
  }
  // Two meshes of 10 nodes and a bridge; the nodes of one are even, so that no order of numbers shows it.
  Graph bridge{20};
  for (uint32_t a = 0; a < 20; ++a) {
    for (uint32_t b = a + 2; b < 20; b += 2) {
      join(bridge, a, b);
    }
  }
  join(bridge, 6, 13);
  EXPECT_EQ(bisection(bridge).rate, Fraction(1));
}

}  // namespace
}  // namespace ringbolt::fabric
