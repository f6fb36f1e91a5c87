#pragma once

#include <vector>

#include "collective/forest.h"

namespace ringbolt::collective {

// The trees behind three schedules. All are pure and thread-safe.

/// tree: a tree of shortest paths, from the root or the centre; of all_gather and reduce_scatter, one from each rank.
std::vector<TreePart> single_trees(const Problem& problem, const Topology& topology, const Limits& limits);

/// trees: as many as the cables hold, with parts by their rates (fabric/packing.h): they reach the bounds of
/// fabric/bounds.h for long vectors. The problem must be one that fits_trees().
std::vector<TreePart> packed_trees(const Problem& problem, const Topology& topology, const Limits& limits);
/// The packing behind it.
/// Of the topology, and as long good.
const fabric::Packing& packing_for(const Problem& problem, const Topology& topology);
bool fits_trees(const Problem& problem, const Topology& topology);

/// double_tree: two binary trees, of which each rank is a leaf of one at least. Source: Sanders, Speck and Traeff 2009,
/// "Two-tree algorithms for full bandwidth broadcast, reduction and scan".
std::vector<TreePart> two_trees(const Problem& problem, const Topology& topology, const Limits& limits);

Program build_tree(const Assignment& assignment);
Program build_trees(const Assignment& assignment);
Program build_double_tree(const Assignment& assignment);

}  // namespace ringbolt::collective
