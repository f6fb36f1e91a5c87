#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "fabric/builders.h"

// Of tests alone: graphs whose bounds are known, and random ones.

namespace ringbolt::fabric {

struct GoldenGraph {
  std::string name;
  Graph graph;
  Fraction lambda;
  Fraction shard_rate;      ///< x*
  Fraction rate_by_shards;  ///< of all_reduce as reduce_scatter and all_gather: N x* / 2
  Fraction tree_rate;       ///< tau
  Fraction pair_rate;       ///< of all_to_all, split equally over shortest paths
  Fraction pair_bound;
};

/// Cables {a, b, capacity}.
inline Graph graph_of(uint32_t n_nodes, const std::vector<Cable>& cables) {
  Graph graph{n_nodes};
  for (const Cable& cable : cables) {
    join(graph, cable.a, cable.b, cable.capacity);
  }
  sort_cables(graph);
  return graph;
}

inline std::vector<GoldenGraph> golden_graphs() {
  using F = Fraction;
  Graph slow_mesh = full_mesh(4);
  slow_mesh.cables[0].capacity = F(1, 2);
  const Graph bridge = graph_of(6, {{0, 1, 1}, {1, 2, 1}, {0, 2, 1}, {2, 3, 1}, {3, 4, 1}, {4, 5, 1}, {3, 5, 1}});
  const auto ring_4 = [](const F& a, const F& b, const F& c, const F& d) {
    return graph_of(4, {{0, 1, a}, {1, 2, b}, {2, 3, c}, {0, 3, d}});
  };
  return {
      {"K4", full_mesh(4), 3, 1, 2, 2, 1, 1},
      {"ring 4", ring(4), 2, {2, 3}, {4, 3}, {4, 3}, {1, 2}, {1, 2}},
      {"K3,3", complete_bipartite(3, 3), 3, {3, 5}, {9, 5}, {9, 5}, {3, 7}, {3, 7}},
      {"Petersen", petersen(), 3, {1, 3}, {5, 3}, {5, 3}, {1, 5}, {1, 5}},
      {"torus 3x3", torus({3, 3}), 4, {1, 2}, {9, 4}, {9, 4}, {1, 3}, {1, 3}},
      {"torus 3x4", torus({3, 4}), 4, {4, 11}, {24, 11}, {24, 11}, {1, 6}, {1, 6}},
      {"torus 4x4", torus({4, 4}), 4, {4, 15}, {32, 15}, {32, 15}, {1, 8}, {1, 8}},
      {"Q3", hypercube(3), 3, {3, 7}, {12, 7}, {12, 7}, {1, 4}, {1, 4}},
      {"Q4", hypercube(4), 4, {4, 15}, {32, 15}, {32, 15}, {1, 8}, {1, 8}},
      {"Wagner", circulant(8, {1, 4}), 3, {3, 7}, {12, 7}, {12, 7}, {1, 4}, {1, 4}},
      {"Heawood", periodic_chords(14, 2, {{0, 5}}), 3, {3, 13}, {21, 13}, {21, 13}, {1, 9}, {1, 9}},
      {"K4 less a cable", without_cable(full_mesh(4), 0), 2, {2, 3}, {4, 3}, {5, 3}, {2, 3}, {2, 3}},
      {"K4 with half a cable", slow_mesh, {5, 2}, {5, 6}, {5, 3}, {11, 6}, {1, 2}, {5, 6}},
      {"Petersen less a cable", without_cable(petersen(), 0), 2, {2, 9}, {10, 9}, {14, 9}, {4, 25}, {4, 25}},
      {"triangle 4 1 1", graph_of(3, {{0, 1, 4}, {1, 2, 1}, {0, 2, 1}}), 2, 1, {3, 2}, 2, 1, 1},
      {"triangle 2 1 1", graph_of(3, {{0, 1, 2}, {1, 2, 1}, {0, 2, 1}}), 2, 1, {3, 2}, 2, 1, 1},
      {"ring 4, one twice", ring_4(2, 1, 1, 1), 2, {2, 3}, {4, 3}, {3, 2}, {1, 2}, {1, 2}},
      {"ring 4, one half", ring_4({1, 2}, 1, 1, 1), {3, 2}, {1, 2}, 1, {7, 6}, {1, 4}, {3, 8}},
      {"ring 4, 2 1 2 1", ring_4(2, 1, 2, 1), 2, 1, 2, 2, {1, 2}, {1, 2}},
      {"two triangles and a bridge", bridge, 1, {1, 3}, 1, 1, {1, 9}, {1, 9}},
      {"pair with rails 1 and 4", graph_of(2, {{0, 1, 1}, {0, 1, 4}}), 5, 5, 5, 5, 5, 5},
  };
}

/// From 3 to `most_nodes` nodes, a random tree and random cables beside it, of capacities 1/2 to 4; some are rails.
inline Graph random_connected_graph(uint64_t seed, uint32_t most_nodes) {
  std::mt19937_64 engine(seed);
  const auto below = [&](uint64_t limit) { return static_cast<uint32_t>(engine() % limit); };
  Graph graph{most_nodes == 9 ? 9 : 3 + below(most_nodes - 2)};
  // One draw a statement: compilers compute arguments in the order that suits their processor, and graphs would differ.
  const auto capacity = [&] {
    const uint32_t parts = 1 + below(2);
    return Fraction(1 + below(4), parts);
  };
  for (uint32_t node = 1; node < graph.n_nodes; ++node) {
    const Fraction cable = capacity();
    join(graph, node, below(node), cable);
  }
  for (uint32_t more = below(2 * graph.n_nodes); more > 0; --more) {
    const uint32_t a = below(graph.n_nodes);
    const uint32_t b = below(graph.n_nodes);
    if (a != b) {
      join(graph, a, b, capacity());
    }
  }
  sort_cables(graph);
  return graph;
}

}  // namespace ringbolt::fabric
