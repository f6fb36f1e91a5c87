#pragma once

#include "fabric/graph.h"

namespace ringbolt::fabric {

/// What joins two halves of a cabling: the least over all ways to halve it.
struct Bisection {
  Fraction rate;          ///< one way, in the unit of the graph's capacities
  bool is_exact = false;  ///< every cut was looked at; otherwise no more than `rate`
};

/// Of halves of equally many nodes, or of one more than the other. `graph` has at least 2 nodes. Exact up to
/// kMostNodesForAllCuts nodes, above as bisection_by_swaps(). Throws base::Error (EOVERFLOW) if the speeds of cables
/// have denominators that do not fit. Some milliseconds for 64 nodes. Pure. Thread-safe.
Bisection bisection(const Graph& graph);

/// The least that swaps of two nodes lead to from the halves nearest to each node (Kernighan and Lin 1970): an upper
/// bound. Otherwise as bisection().
Fraction bisection_by_swaps(const Graph& graph);

}  // namespace ringbolt::fabric
