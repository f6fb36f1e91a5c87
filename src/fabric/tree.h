#pragma once

#include <cstdint>
#include <vector>

#include "fabric/graph.h"

namespace ringbolt::fabric {

/// One direction between two neighbours.
struct Arc {
  uint32_t from = 0;
  uint32_t to = 0;
  friend auto operator<=>(const Arc&, const Arc&) = default;
};

/// A spanning tree, rooted: arcs lead away from the root, each after the one that reaches its `from`.
struct Tree {
  uint32_t root = 0;
  int64_t multiplicity = 1;  ///< so many equal ones
  std::vector<Arc> arcs = {};
  friend bool operator==(const Tree&, const Tree&) = default;
};

/// Hops from the root to the farthest node. Thread-safe.
uint32_t depth(const Tree& tree);

/// Trees that fit into a graph of pieces together.
struct Packing {
  Fraction scale = 1;  ///< a tree has the rate 1 / scale
  std::vector<Tree> trees = {};

  int64_t n_trees() const;  ///< with multiplicities
  uint32_t depth() const;   ///< of the deepest
};

/// The tree of `arcs`, in either direction and any order, rooted at its centre. They must be a spanning tree.
Tree rooted_at_centre(uint32_t n_nodes, const std::vector<Arc>& arcs);

/// A tree of shortest paths from `root`; each node below its lowest possible parent. The graph must be connected.
Tree shortest_path_tree(const Graph& graph, uint32_t root);

}  // namespace ringbolt::fabric
