// Every rank sends straight to whom it concerns, over a shortest path where there is no cable.

#include <algorithm>

#include "collective/assignment.h"

namespace ringbolt::collective {
namespace {

/// The ranks from one's own on, round: so not all send to the same first.
std::vector<uint32_t> others(const Assignment& assignment) {
  std::vector<uint32_t> ranks;
  for (uint32_t ahead = 1; ahead < assignment.n_ranks(); ++ahead) {
    ranks.push_back((assignment.rank + ahead) % assignment.n_ranks());
  }
  return ranks;
}

void add_send(const Assignment& assignment, Program& program, const Piece& piece, uint32_t chunk_bytes, uint32_t peer,
              uint32_t transfer) {
  Step step = Assignment::step(piece, chunk_bytes);
  step.sources.push_back(from_local(Buffer::input, piece.offset));
  step.targets.push_back(assignment.send_to(peer, transfer));
  add_step(program, std::move(step));
}

void add_receive(Program& program, const Piece& piece, uint32_t chunk_bytes, uint32_t peer, uint32_t transfer) {
  Step step = Assignment::step(piece, chunk_bytes);
  step.sources.push_back(from_transfer(peer, transfer));
  step.targets.push_back(to_local(Buffer::output, piece.offset));
  add_step(program, std::move(step));
}

/// Input [piece] of all ranks, in their order, to output [offset]; the others' come through transfer 0.
Step sum_of_all(const Assignment& assignment, const Piece& piece, uint32_t chunk_bytes, uint64_t offset) {
  Step step = Assignment::step(piece, chunk_bytes);
  for (uint32_t source = 0; source < assignment.n_ranks(); ++source) {
    step.sources.push_back(source == assignment.rank ? from_local(Buffer::input, piece.offset)
                                                     : from_transfer(source, 0));
  }
  step.targets.push_back(to_local(Buffer::output, offset));
  step.finishes = true;
  return step;
}

Step copy(const Piece& piece, uint32_t chunk_bytes, uint64_t output_offset) {
  Step step = Assignment::step(piece, chunk_bytes);
  step.sources.push_back(from_local(Buffer::input, piece.offset));
  step.targets.push_back(to_local(Buffer::output, output_offset));
  return step;
}

uint64_t longest(const std::vector<Piece>& pieces) {
  uint64_t most = 0;
  for (const Piece& piece : pieces) {
    most = std::max(most, piece.bytes);
  }
  return most;
}

/// Rank s adds up the s-th shard and, in an all_reduce, sends the sum to all (Thakur, Rabenseifner and Gropp 2005).
Program build_reduction(const Assignment& assignment, const std::vector<Piece>& shards, bool sends_sums) {
  const uint32_t n_levels = assignment.topology.diameter() * (sends_sums ? 2 : 1);
  const uint32_t chunk_bytes = assignment.chunk_bytes(n_levels, longest(shards));
  const Piece& own = shards[assignment.rank];
  Program program;
  for (const uint32_t peer : others(assignment)) {
    add_send(assignment, program, shards[peer], chunk_bytes, peer, 0);
  }
  Step sum = sum_of_all(assignment, own, chunk_bytes, sends_sums ? own.offset : 0);
  if (sends_sums) {
    for (const uint32_t peer : others(assignment)) {
      sum.targets.push_back(assignment.send_to(peer, 1));
    }
  }
  add_step(program, std::move(sum));
  if (sends_sums) {
    for (const uint32_t peer : others(assignment)) {
      add_receive(program, shards[peer], chunk_bytes, peer, 1);
    }
  }
  return program;
}

Program build_all_gather(const Assignment& assignment) {
  const std::vector<Piece> pieces = pieces_of(assignment.problem);
  const uint32_t chunk_bytes = assignment.chunk_bytes(assignment.topology.diameter(), longest(pieces));
  Program program;
  const Piece& own = pieces[assignment.rank];
  Step step = copy({0, own.bytes}, chunk_bytes, own.offset);
  for (const uint32_t peer : others(assignment)) {
    step.targets.push_back(assignment.send_to(peer, 0));
  }
  add_step(program, std::move(step));
  for (const uint32_t peer : others(assignment)) {
    add_receive(program, pieces[peer], chunk_bytes, peer, 0);
  }
  return program;
}

Program build_all_to_all(const Assignment& assignment) {
  const uint64_t most = std::ranges::max(assignment.problem.shares);
  const uint32_t chunk_bytes = assignment.chunk_bytes(assignment.topology.diameter(), most);
  const std::vector<Piece> row = row_of(assignment.problem, assignment.rank);
  const std::vector<Piece> column = column_of(assignment.problem, assignment.rank);
  Program program;
  for (const uint32_t peer : others(assignment)) {
    add_send(assignment, program, row[peer], chunk_bytes, peer, 0);
  }
  add_step(program, copy(row[assignment.rank], chunk_bytes, column[assignment.rank].offset));
  for (const uint32_t peer : others(assignment)) {
    add_receive(program, column[peer], chunk_bytes, peer, 0);
  }
  return program;
}

Program build_broadcast(const Assignment& assignment) {
  const Piece whole{0, total_bytes(assignment.problem)};
  const uint32_t chunk_bytes = assignment.chunk_bytes(assignment.topology.diameter(), whole.bytes);
  Program program;
  if (!assignment.is_root()) {
    add_receive(program, whole, chunk_bytes, assignment.problem.root, 0);
    return program;
  }
  Step step = copy(whole, chunk_bytes, 0);
  for (const uint32_t peer : others(assignment)) {
    step.targets.push_back(assignment.send_to(peer, 0));
  }
  add_step(program, std::move(step));
  return program;
}

Program build_reduce(const Assignment& assignment) {
  const Piece whole{0, total_bytes(assignment.problem)};
  const uint32_t chunk_bytes = assignment.chunk_bytes(assignment.topology.diameter(), whole.bytes);
  Program program;
  if (assignment.is_root()) {
    add_step(program, sum_of_all(assignment, whole, chunk_bytes, 0));
  } else {
    add_send(assignment, program, whole, chunk_bytes, assignment.problem.root, 0);
  }
  return program;
}

Program build_gather(const Assignment& assignment) {
  const std::vector<Piece> pieces = pieces_of(assignment.problem);
  const uint32_t chunk_bytes = assignment.chunk_bytes(assignment.topology.diameter(), longest(pieces));
  const Piece& own = pieces[assignment.rank];
  Program program;
  if (!assignment.is_root()) {
    add_send(assignment, program, {0, own.bytes}, chunk_bytes, assignment.problem.root, 0);
    return program;
  }
  add_step(program, copy({0, own.bytes}, chunk_bytes, own.offset));
  for (const uint32_t peer : others(assignment)) {
    add_receive(program, pieces[peer], chunk_bytes, peer, 0);
  }
  return program;
}

Program build_scatter(const Assignment& assignment) {
  const std::vector<Piece> pieces = pieces_of(assignment.problem);
  const uint32_t chunk_bytes = assignment.chunk_bytes(assignment.topology.diameter(), longest(pieces));
  const Piece& own = pieces[assignment.rank];
  Program program;
  if (!assignment.is_root()) {
    add_receive(program, {0, own.bytes}, chunk_bytes, assignment.problem.root, 0);
    return program;
  }
  for (const uint32_t peer : others(assignment)) {
    add_send(assignment, program, pieces[peer], chunk_bytes, peer, 0);
  }
  add_step(program, copy(own, chunk_bytes, 0));
  return program;
}

}  // namespace

Program build_direct(const Assignment& assignment) {
  const Problem& problem = assignment.problem;
  switch (problem.operation) {
    case Operation::all_reduce:
      return build_reduction(assignment, cut_evenly({0, total_bytes(problem)}, problem.element_bytes, problem.n_ranks),
                             true);
    case Operation::reduce_scatter:
      return build_reduction(assignment, pieces_of(problem), false);
    case Operation::all_gather:
      return build_all_gather(assignment);
    case Operation::broadcast:
      return build_broadcast(assignment);
    case Operation::reduce:
      return build_reduce(assignment);
    case Operation::gather:
      return build_gather(assignment);
    case Operation::scatter:
      return build_scatter(assignment);
    case Operation::all_to_all:
      return build_all_to_all(assignment);
    case Operation::barrier:
      break;
  }
  return {};
}

}  // namespace ringbolt::collective
