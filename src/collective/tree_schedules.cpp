// Schedules over trees: one, two, or as many as the cables hold.

#include "collective/tree_schedules.h"

#include <algorithm>
#include <optional>

namespace ringbolt::collective {
namespace {

bool goes_up_and_down(const Problem& problem) { return use_of_trees(problem.operation) == TreeUse::up_and_down; }

bool has_share_per_rank(const Problem& problem) {
  return problem.operation == Operation::all_gather || problem.operation == Operation::reduce_scatter;
}

uint32_t chunk_for(const Problem& problem, const Topology& topology, const Limits& limits, const TreePart& tree,
                   double bytes_per_us) {
  const uint32_t n_levels = levels_of(topology, tree) * (goes_up_and_down(problem) ? 2 : 1);
  return chunk_bytes_for(topology.model(), n_levels, tree.piece.bytes, bytes_per_us, problem.element_bytes, limits);
}

/// One tree with all of it, or with a share for each rank a tree.
std::vector<TreePart> shortest_path_trees(const Problem& problem, const Topology& topology, const Limits& limits) {
  std::vector<TreePart> trees;
  if (has_share_per_rank(problem)) {
    const std::vector<Piece> pieces = pieces_of(problem);
    for (uint32_t root = 0; root < problem.n_ranks; ++root) {
      trees.push_back({root, topology.parents_towards(root), pieces[root], 0, 0});
    }
  } else {
    const uint32_t root = has_root(problem.operation) ? problem.root : topology.centre();
    trees.push_back({root, topology.parents_towards(root), {0, total_bytes(problem)}, 0, 0});
  }
  // A chunk size for all: measuring a thousand trees for each rank would take long.
  const auto longest = std::ranges::max_element(trees, {}, [](const TreePart& tree) { return tree.piece.bytes; });
  const uint32_t chunk_bytes = chunk_for(problem, topology, limits, *longest, topology.least_rate());
  for (TreePart& tree : trees) {
    tree.chunk_bytes = chunk_bytes;
  }
  return trees;
}

/// The trees that lead from `root`, or all if it is nothing, each with its part of `whole` by its rate.
void add_trees(const Problem& problem, const fabric::Packing& packing, std::optional<uint32_t> root, const Piece& whole,
               std::vector<TreePart>& trees, std::vector<double>& weights) {
  std::vector<const fabric::Tree*> chosen;
  std::vector<double> chosen_weights;
  for (const fabric::Tree& tree : packing.trees) {
    if (!root || tree.root == *root) {
      chosen.push_back(&tree);
      chosen_weights.push_back(static_cast<double>(tree.multiplicity));
    }
  }
  const std::vector<Piece> pieces = cut(whole, problem.element_bytes, chosen_weights);
  for (size_t index = 0; index < chosen.size(); ++index) {
    const uint64_t root_offset =
        has_share_per_rank(problem) ? pieces[index].offset - whole.offset : pieces[index].offset;
    trees.push_back({chosen[index]->root, parents_of(*chosen[index]), pieces[index], root_offset, 0});
    weights.push_back(chosen_weights[index]);
  }
}

/// Cables send chunks of several trees in turn: for each tree to have its rate there, its chunks must be as long
/// against others' as its rate is against theirs.
void give_chunk_sizes(const Problem& problem, const Topology& topology, const Limits& limits,
                      const fabric::Packing& packing, const std::vector<double>& weights,
                      std::vector<TreePart>& trees) {
  const size_t heaviest = static_cast<size_t>(std::ranges::max_element(weights) - weights.begin());
  const double rate = weights[heaviest] / packing.scale.value() * topology.model().bytes_per_us;
  const uint32_t most = chunk_for(problem, topology, limits, trees[heaviest], rate);
  for (size_t index = 0; index < trees.size(); ++index) {
    const auto n_elements = static_cast<uint32_t>(most / problem.element_bytes * weights[index] / weights[heaviest]);
    // Never 0: a step of some bytes needs a chunk.
    trees[index].chunk_bytes = std::max(n_elements, 1u) * problem.element_bytes;
  }
}

}  // namespace

const fabric::Packing& packing_for(const Problem& problem, const Topology& topology) {
  return has_share_per_rank(problem)   ? topology.trees_from_all()
         : has_root(problem.operation) ? topology.trees_from_one(problem.root)
                                       : topology.undirected_trees();
}

std::vector<TreePart> packed_trees(const Problem& problem, const Topology& topology, const Limits& limits) {
  const fabric::Packing& packing = packing_for(problem, topology);
  std::vector<TreePart> trees;
  std::vector<double> weights;
  if (has_share_per_rank(problem)) {
    const std::vector<Piece> pieces = pieces_of(problem);
    for (uint32_t root = 0; root < problem.n_ranks; ++root) {
      add_trees(problem, packing, root, pieces[root], trees, weights);
    }
  } else {
    add_trees(problem, packing, std::nullopt, {0, total_bytes(problem)}, trees, weights);
  }
  give_chunk_sizes(problem, topology, limits, packing, weights, trees);
  return without_idle_trees(std::move(trees));
}

std::vector<TreePart> single_trees(const Problem& problem, const Topology& topology, const Limits& limits) {
  return shortest_path_trees(problem, topology, limits);
}

std::vector<TreePart> two_trees(const Problem& problem, const Topology& topology, const Limits& limits) {
  const uint32_t n = problem.n_ranks;
  // In the first tree odd ranks are leaves: the parent of a rank is one with its lowest set bit cleared or moved up by
  // one, whichever is a rank; 0 is the root, above the only rank that has nothing else above it.
  std::vector<uint32_t> first(n, Topology::kNoParent);
  for (uint32_t rank = 1; rank < n; ++rank) {
    const uint32_t bit = rank & (~rank + 1);
    const uint32_t up = (rank ^ bit) | (bit << 1);
    first[rank] = up < n ? up : rank ^ bit;
  }
  // The second has even ranks as leaves: the first one mirrored, or for an odd number moved on by one.
  const auto other = [&](uint32_t rank) { return n % 2 == 0 ? n - 1 - rank : (rank + 1) % n; };
  std::vector<uint32_t> second(n, Topology::kNoParent);
  for (uint32_t rank = 1; rank < n; ++rank) {
    second[other(rank)] = other(first[rank]);
  }
  const std::vector<Piece> halves = cut_evenly({0, total_bytes(problem)}, problem.element_bytes, 2);
  std::vector<TreePart> trees = {{0, first, halves[0], halves[0].offset, 0},
                                 {other(0), second, halves[1], halves[1].offset, 0}};
  for (TreePart& tree : trees) {
    tree.chunk_bytes = chunk_for(problem, topology, limits, tree, topology.least_rate() / 2);
  }
  return without_idle_trees(std::move(trees));
}

bool fits_trees(const Problem& problem, const Topology& topology) {
  return !packing_for(problem, topology).trees.empty();
}

Program build_tree(const Assignment& assignment) {
  return build_forest(assignment, single_trees(assignment.problem, assignment.topology, assignment.limits),
                      use_of_trees(assignment.problem.operation));
}

Program build_trees(const Assignment& assignment) {
  return build_forest(assignment, packed_trees(assignment.problem, assignment.topology, assignment.limits),
                      use_of_trees(assignment.problem.operation));
}

Program build_double_tree(const Assignment& assignment) {
  return build_forest(assignment, two_trees(assignment.problem, assignment.topology, assignment.limits),
                      TreeUse::up_and_down);
}

}  // namespace ringbolt::collective
