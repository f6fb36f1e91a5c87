#pragma once

#include <cstdint>
#include <string>

#include "fabric/graph.h"

namespace ringbolt::fabric {

/// How a graph is cut into unit pieces before trees are packed: every cable counts floor(scale * capacity) pieces each
/// way, and `n_trees` trees fit, each of rate 1 / scale.
struct Scaling {
  int64_t scale = 1;
  int64_t n_trees = 0;

  /// What all trees carry together.
  Fraction rate() const { return {n_trees, scale}; }
  friend bool operator==(const Scaling&, const Scaling&) = default;
};

/// The least scale by which all capacities and `rate` become whole: nothing is lost. Pure. Thread-safe.
Scaling exact_scaling(const Graph& graph, const Fraction& rate);

/// Few trees for an all_reduce: exact_scaling() if that needs no more than `most_trees`, else the scale whose trees (of
/// at most that number) carry most together. The loss is tree_rate(graph) less the result's rate(). Pure. Thread-safe.
Scaling tree_scaling(const Graph& graph, int64_t most_trees);

/// The graph in pieces: rails merged, capacities floor(scale * capacity); a cable that is less than a piece is left
/// out.
Graph in_pieces(const Graph& graph, int64_t scale);

}  // namespace ringbolt::fabric
