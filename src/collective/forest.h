#pragma once

#include <cstdint>
#include <vector>

#include "collective/assignment.h"
#include "fabric/tree.h"

namespace ringbolt::collective {

/// A tree over all ranks that carries a part of the vector. Who is not a neighbour of its parent is reached by relays.
struct TreePart {
  uint32_t root = 0;
  std::vector<uint32_t> parents;  ///< [n_ranks]; Topology::kNoParent for the root
  Piece piece;                    ///< of the whole vector
  /// Where the piece lies in the root's share: in all_gather in its input, in reduce_scatter in its output.
  uint64_t root_offset = 0;
  uint32_t chunk_bytes = 0;
};

enum class TreeUse : uint8_t {
  up,           ///< adds up towards the root: reduce, reduce_scatter
  down,         ///< from the root to all: broadcast, all_gather
  up_and_down,  ///< all_reduce; and barrier, of no bytes
};

/// In which order a rank adds up: the order must not depend on what comes first.
enum class SumOrder : uint8_t {
  own_first,  ///< its own, then its children, ascending
  ascending,  ///< by rank, its own among them
};

/// The rank's part in all trees. Transfers of two ranks are numbered in the order of the trees.
Program build_forest(const Assignment& assignment, const std::vector<TreePart>& trees, TreeUse use,
                     SumOrder order = SumOrder::own_first);

/// The use that an operation makes of trees: of the five that do.
TreeUse use_of_trees(Operation operation);

/// Hops from the farthest rank to the root, relays included. Pure.
/// Asserts that it is a tree.
uint32_t levels_of(const Topology& topology, const TreePart& tree);

/// From arcs that lead away from the root.
std::vector<uint32_t> parents_of(const fabric::Tree& tree);

/// The trees without those that carry nothing, but for the first of each root: so a call of no bytes still goes to all.
std::vector<TreePart> without_idle_trees(std::vector<TreePart> trees);

}  // namespace ringbolt::collective
