#pragma once

#include <cstdint>
#include <functional>

#include "fabric/graph.h"

namespace ringbolt::fabric {

/// How a graph is cut into unit pieces before trees are packed: every cable counts floor(scale * capacity) pieces each
/// way, and `n_trees` trees fit, each of rate 1 / scale.
struct Scaling {
  Fraction scale = 1;
  int64_t n_trees = 0;

  /// What all trees carry together.
  Fraction rate() const { return Fraction(n_trees) / scale; }
  friend bool operator==(const Scaling&, const Scaling&) = default;
};

/// The least scale by which all capacities and `rate` become whole: nothing is lost. Pure. Thread-safe.
Scaling exact_scaling(const Graph& graph, const Fraction& rate);

/// exact_scaling() of the graph's rate_of() if that needs no more than `most_trees`; else a scale whose trees, of at
/// most that number, carry much together: the best of some hundred that are tried. The loss is rate_of(graph) less the
/// result's rate(). `rate_of` is a bound that so many trees reach, as tree_rate(). No trees at all if even that fails,
/// which takes rates that differ more than `most_trees` times. Pure. Thread-safe.
Scaling few_trees_scaling(const Graph& graph, const std::function<Fraction(const Graph&)>& rate_of, int64_t most_trees);

/// For graphs on which rate_of() takes long: by whole cables or halves of them, whichever carries more. Where cables
/// have whole capacities that loses less than half a tree, or less than one where halves would be more than
/// `most_trees`. No trees if they were more than `most_trees`, or as above.
/// Pure. Thread-safe.
Scaling coarse_scaling(const Graph& graph, const std::function<Fraction(const Graph&)>& rate_of, int64_t most_trees);

/// The graph in pieces: rails merged, capacities floor(scale * capacity); a cable that is less than a piece is left
/// out.
Graph in_pieces(const Graph& graph, const Fraction& scale);

}  // namespace ringbolt::fabric
