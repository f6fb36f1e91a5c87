#pragma once

#include <cstdint>

#include "fabric/graph.h"
#include "fabric/scaling.h"
#include "fabric/tree.h"

namespace ringbolt::fabric {

// Trees that use every direction of every cable at most as often as it has pieces. The graph must be connected and have
// 2 nodes at least. All are pure and thread-safe.

/// For all_gather (and, reversed, reduce_scatter): `scaling.n_trees` trees from every node outwards, where scaling is
/// exact_scaling() or few_trees_scaling() by shard_rate(). Equal trees are one with a multiplicity. Takes about n^2 *
/// degree maximum flows. Source: Edmonds 1973, for several roots at once Berczi and Frank 2010; as in ForestColl (arXiv
/// 2402.06787).
Packing pack_from_all(const Graph& graph, const Scaling& scaling);

/// For broadcast (and, reversed, reduce): trees from one root, where scaling is exact_scaling(graph, lambda) with
/// lambda the least maximum flow from the root to another node. Source: Edmonds 1973.
Packing pack_from_one(const Graph& graph, uint32_t root, const Scaling& scaling);

/// For all_reduce: trees of which each uses a cable in both directions, towards its centre to reduce and back to
/// broadcast; a piece of a cable is in one tree. `scaling` is by tree_rate(). The work grows with the square of the
/// number of pieces: 64 trees of 64 nodes take seconds. Source: Roskind and Tarjan 1985 (union of matroids).
Packing pack_undirected(const Graph& graph, const Scaling& scaling);

}  // namespace ringbolt::fabric
