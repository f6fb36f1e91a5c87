#include "fabric/builders.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace ringbolt::fabric {
namespace {

TEST(Builders, have_the_known_number_of_cables_ports_and_hops) {
  const struct {
    const char* name;
    Graph graph;
    uint32_t nodes;
    size_t cables;
    uint32_t most_ports;
    uint32_t diameter;
  } known[] = {
      {"mesh of 1", full_mesh(1), 1, 0, 0, 0},
      {"mesh of 6", full_mesh(6), 6, 15, 5, 1},
      {"ring of 2", ring(2), 2, 2, 2, 1},
      {"ring of 9", ring(9), 9, 9, 2, 4},
      {"line of 6", line(6), 6, 5, 2, 5},
      {"star of 6", star(6), 6, 5, 5, 2},
      {"torus 3x4", torus({3, 4}), 12, 24, 4, 3},
      {"torus 2x3", torus({2, 3}), 6, 9, 3, 2},
      {"torus 1x5", torus({1, 5}), 5, 5, 2, 2},
      {"torus 8x8", torus({8, 8}), 64, 128, 4, 8},
      {"torus 4x4x4", torus({4, 4, 4}), 64, 192, 6, 6},
      {"Q0", hypercube(0), 1, 0, 0, 0},
      {"Q6", hypercube(6), 64, 192, 6, 6},
      {"Wagner", circulant(8, {1, 4}), 8, 12, 3, 2},
      {"Heawood", periodic_chords(14, 2, {{0, 5}}), 14, 21, 3, 3},
      {"Moebius-Kantor", periodic_chords(16, 2, {{0, 5}}), 16, 24, 3, 4},
      {"Petersen", petersen(), 10, 15, 3, 2},
      {"K3,3", complete_bipartite(3, 3), 6, 9, 3, 2},
  };
  for (const auto& one : known) {
    const Distances found = distances(one.graph);
    EXPECT_EQ(one.graph.n_nodes, one.nodes) << one.name;
    EXPECT_EQ(one.graph.cables.size(), one.cables) << one.name;
    EXPECT_EQ(std::ranges::max(port_counts(one.graph)), one.most_ports) << one.name;
    EXPECT_TRUE(found.is_connected) << one.name;
    EXPECT_EQ(found.diameter, one.diameter) << one.name;
    Graph again = one.graph;
    sort_cables(again);
    EXPECT_EQ(again, one.graph) << one.name << " is not sorted";
  }
}

TEST(Builders, have_the_known_average_path) {
  EXPECT_EQ(distances(torus({8, 8})).sum, 64U * 256U);                                // 4.063
  EXPECT_EQ(distances(torus({4, 4, 4})).aspl(64), Fraction(192, 63));                 // 3.048
  EXPECT_EQ(distances(hypercube(6)).aspl(64), Fraction(192, 63));                     // 3.048
  EXPECT_EQ(distances(periodic_chords(16, 2, {{0, 5}})).aspl(16), Fraction(34, 15));  // 2.267
}

TEST(Builders, double_no_cable_of_a_side_of_two) {
  const Graph cube = torus({2, 2, 2});
  EXPECT_EQ(cube.cables.size(), 12U);
  EXPECT_EQ(distances(cube), distances(hypercube(3)));
}

}  // namespace
}  // namespace ringbolt::fabric
