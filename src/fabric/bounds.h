#pragma once

#include <cstdint>
#include <optional>

#include "fabric/graph.h"

namespace ringbolt::fabric {

// What no schedule of a collective can beat, as exact rates in the unit of the graph's capacities. M is the number of
// bytes of the whole vector. All take a connected graph of at least 2 nodes, are pure and thread-safe, and throw
// base::Error (EOVERFLOW) if the speeds of cables have denominators that do not fit.

/// The least rate that must be cut to separate any two nodes. A broadcast or a reduction of M bytes takes M over this
/// at least (disjoint arborescences: Edmonds 1973).
Fraction edge_connectivity(const Graph& graph);

/// The least rate that must be cut to separate any node from `root`: what a broadcast from there can reach.
Fraction rate_from(const Graph& graph, uint32_t root);

/// x*: the least, over all sets of nodes but none and all, of the rate that leaves the set over the number of its
/// nodes. all_gather and reduce_scatter of equal shards take (M / N) / x* at least, and that can be reached (Zhao et
/// al. 2024, "ForestColl", arXiv 2402.06787).
Fraction shard_rate(const Graph& graph);

/// tau: the least, over all partitions into two parts and more, of the rate between parts over the number of parts less
/// one. So much can be packed into spanning trees (Nash-Williams 1961, Tutte 1961); an all_reduce, without arithmetic
/// in between that codes several values into one, takes M / tau at least.
Fraction tree_rate(const Graph& graph);

/// all_to_all: at most so much per ordered pair. No more than each cut and the sum of all paths allow.
struct PairRate {
  Fraction bound;
  /// Every cut was looked at, as of kMostNodesForAllCuts nodes and fewer; otherwise those around single nodes, pairs
  /// and the k nodes nearest to a node for all k, and the minimum cuts between a node and each other.
  bool has_all_cuts = false;
};
PairRate pair_rate_bound(const Graph& graph);

/// What all_to_all reaches per ordered pair if every pair splits its bytes equally over its shortest paths (rails count
/// as one cable). `exact` is empty if its terms grow beyond 64 bits.
struct SplitRate {
  double value = 0;
  std::optional<Fraction> exact;
};
SplitRate equal_split_rate(const Graph& graph);

/// How many hops any collective of all nodes takes at least: the diameter, and what it takes until the word has
/// spread, if each node tells all of its neighbours at a time.
uint32_t least_steps(const Graph& graph);

}  // namespace ringbolt::fabric
