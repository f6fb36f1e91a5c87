// The sum goes along the ranks, 0 to 1 to 2 and so on, each of which adds its own: the order of ranks on any cables,
// and each cable carries the vector once. From the last rank it goes back the same way, to all who want it.

#include "collective/forest.h"

namespace ringbolt::collective {
namespace {

/// The path from 0 to the last rank, as a tree.
TreePart path_of_all(const Assignment& assignment) {
  const uint32_t n = assignment.n_ranks();
  TreePart tree{n - 1, std::vector<uint32_t>(n), {0, total_bytes(assignment.problem)}, 0, 0};
  for (uint32_t rank = 0; rank < n; ++rank) {
    tree.parents[rank] = rank + 1 < n ? rank + 1 : Topology::kNoParent;
  }
  const uint32_t n_levels = levels_of(assignment.topology, tree) * 2;
  tree.chunk_bytes = assignment.chunk_bytes(n_levels, tree.piece.bytes);
  return tree;
}

/// A part of the sum: adds the own to what comes from the rank before, and sends it on. The last rank's has no target.
Step add_own(const Assignment& assignment, const Piece& piece, uint32_t chunk_bytes, uint32_t transfer) {
  const uint32_t rank = assignment.rank;
  Step step = Assignment::step(piece, chunk_bytes);
  if (rank > 0) {
    step.sources.push_back(from_transfer(rank - 1, transfer));
  }
  step.sources.push_back(from_local(Buffer::input, piece.offset));
  if (rank + 1 < assignment.n_ranks()) {
    step.targets.push_back(assignment.send_to(rank + 1, transfer));
  } else {
    step.finishes = true;
  }
  return step;
}

/// Sums along the chain that the last rank sends to whom they belong.
Program build_for_owners(const Assignment& assignment, const std::vector<Piece>& pieces,
                         const std::vector<uint32_t>& owners) {
  const uint32_t last = assignment.n_ranks() - 1;
  const uint32_t chunk_bytes = path_of_all(assignment).chunk_bytes;
  Program program;
  for (uint32_t transfer = 0; transfer < pieces.size(); ++transfer) {
    Step step = add_own(assignment, pieces[transfer], chunk_bytes, transfer);
    if (assignment.rank == last) {
      step.targets.push_back(owners[transfer] == last ? to_local(Buffer::output, 0)
                                                      : assignment.send_to(owners[transfer], 0));
    }
    add_step(program, std::move(step));
  }
  for (size_t index = 0; index < pieces.size(); ++index) {
    if (owners[index] == assignment.rank && assignment.rank != last) {
      Step step = Assignment::step(pieces[index], chunk_bytes);
      step.sources.push_back(from_transfer(last, 0));
      step.targets.push_back(to_local(Buffer::output, 0));
      add_step(program, std::move(step));
    }
  }
  return program;
}

}  // namespace

Program build_chain(const Assignment& assignment) {
  const Problem& problem = assignment.problem;
  if (problem.operation == Operation::all_reduce) {
    return build_forest(assignment, {path_of_all(assignment)}, TreeUse::up_and_down, SumOrder::ascending);
  }
  if (problem.operation == Operation::reduce) {
    return build_for_owners(assignment, {{0, total_bytes(problem)}}, {problem.root});
  }
  std::vector<uint32_t> owners(problem.n_ranks);
  for (uint32_t rank = 0; rank < problem.n_ranks; ++rank) {
    owners[rank] = rank;
  }
  return build_for_owners(assignment, pieces_of(problem), owners);
}

}  // namespace ringbolt::collective
