// gather and scatter over trees of paths: each share in parts, which go to the root or from it by shortest paths that
// are chosen for this root alone, so that the cables near it carry about the same. Only those are busy: with direct,
// whose paths are even for all pairs, one of the root's cables may carry twice what another does.

#include "collective/path_trees.h"

#include <algorithm>

#include "collective/assignment.h"
#include "collective/layout.h"

namespace ringbolt::collective {
namespace {

/// Of more paths that are equally short, no more are tried.
// So it takes milliseconds on 64 ranks.
constexpr uint32_t kMostTried = 16;

bool is_to_root(const Problem& problem) { return problem.operation == Operation::gather; }

std::vector<uint32_t> path_of(const Problem& problem, const Topology& topology, uint32_t rank, uint32_t turn) {
  return is_to_root(problem) ? topology.path(rank, problem.root, turn) : topology.path(problem.root, rank, turn);
}

/// What the directions of cables carry so far, in microseconds.
class Carried {
 public:
  Carried(const Problem& problem, const Topology& topology)
      : problem_(problem), topology_(topology), us_(topology.n_links()) {}

  /// The busiest direction of the path, if it carried `bytes` more.
  double most_with(uint32_t rank, const std::vector<uint32_t>& via, double bytes) const {
    double most = 0;
    each_link(rank, via,
              [&](uint32_t link) { most = std::max(most, us_[link] + bytes / topology_.rate_of_link(link)); });
    return most;
  }
  void add(uint32_t rank, const std::vector<uint32_t>& via, double bytes) {
    each_link(rank, via, [&](uint32_t link) {
      us_[link] += bytes / topology_.rate_of_link(link);
      most_us_ = std::max(most_us_, us_[link]);
    });
  }
  double most_us() const { return most_us_; }

 private:
  template <class OnLink>
  void each_link(uint32_t rank, const std::vector<uint32_t>& via, const OnLink& on_link) const {
    uint32_t node = is_to_root(problem_) ? rank : problem_.root;
    for (const uint32_t next : via) {
      on_link(topology_.link(node, next));
      node = next;
    }
    on_link(topology_.link(node, is_to_root(problem_) ? problem_.root : rank));
  }

  const Problem& problem_;
  const Topology& topology_;
  std::vector<double> us_;  // by link
  double most_us_ = 0;
};

uint32_t chunk_for(const Assignment& assignment, const PathTrees& trees) {
  return assignment.chunk_bytes(trees.n_levels, std::ranges::max(assignment.problem.shares) / trees.n_parts);
}

/// One for each way; without empty ones, but for the first.
std::vector<Piece> parts_of(const Problem& problem, const PathTrees& trees, const Piece& share) {
  std::vector<Piece> parts = cut_evenly(share, problem.element_bytes, trees.n_parts);
  while (parts.size() > 1 && parts.back().bytes == 0) {
    parts.pop_back();
  }
  return parts;
}

void add_sends(const Assignment& assignment, const PathTrees& trees, const Piece& share, uint32_t peer,
               Program& program) {
  const uint32_t rank = assignment.is_root() ? peer : assignment.rank;
  const std::vector<Piece> parts = parts_of(assignment.problem, trees, share);
  for (uint32_t part = 0; part < parts.size(); ++part) {
    Step step = Assignment::step(parts[part], chunk_for(assignment, trees));
    step.sources.push_back(from_local(Buffer::input, parts[part].offset));
    step.targets.push_back(to_transfer(
        peer, part, path_of(assignment.problem, assignment.topology, rank, trees.turns[rank * trees.n_parts + part])));
    add_step(program, std::move(step));
  }
}

void add_receives(const Assignment& assignment, const PathTrees& trees, const Piece& share, uint32_t peer,
                  Program& program) {
  uint32_t transfer = 0;
  for (const Piece& part : parts_of(assignment.problem, trees, share)) {
    Step step = Assignment::step(part, chunk_for(assignment, trees));
    step.sources.push_back(from_transfer(peer, transfer++));
    step.targets.push_back(to_local(Buffer::output, part.offset));
    add_step(program, std::move(step));
  }
}

}  // namespace

PathTrees path_trees(const Problem& problem, const Topology& topology) {
  const uint32_t n = problem.n_ranks;
  PathTrees trees;
  trees.n_parts = topology.has_choice_of_paths() ? Topology::kWays : 1;
  trees.turns.resize(size_t{n} * trees.n_parts);
  // Those with a choice last: they fill up what the others leave.
  std::vector<uint32_t> ranks;
  for (uint32_t ahead = 1; ahead < n; ++ahead) {
    ranks.push_back((problem.root + ahead) % n);
    trees.n_levels = std::max(trees.n_levels, topology.hops(ranks.back(), problem.root));
  }
  const auto n_paths = [&](uint32_t rank) {
    return std::min(topology.n_shortest_paths(rank, problem.root), kMostTried);
  };
  std::ranges::stable_sort(ranks, {}, n_paths);
  Carried carried(problem, topology);
  for (uint32_t part = 0; part < trees.n_parts; ++part) {
    for (const uint32_t rank : ranks) {
      const double bytes = static_cast<double>(problem.shares[rank]) / trees.n_parts;
      uint32_t best = 0;
      double least = 0;
      for (uint32_t turn = 0; turn < n_paths(rank); ++turn) {
        const double most = carried.most_with(rank, path_of(problem, topology, rank, turn), bytes);
        if (turn == 0 || most < least) {
          best = turn;
          least = most;
        }
      }
      trees.turns[size_t{rank} * trees.n_parts + part] = best;
      carried.add(rank, path_of(problem, topology, rank, best), bytes);
    }
  }
  trees.busiest_us = carried.most_us();
  return trees;
}

Program build_path_trees(const Assignment& assignment) {
  const Problem& problem = assignment.problem;
  std::optional<PathTrees>& common = assignment.common.path_trees;
  if (!common) {
    common = path_trees(problem, assignment.topology);
  }
  const PathTrees& trees = *common;
  const std::vector<Piece> pieces = pieces_of(problem);
  const Piece& own = pieces[assignment.rank];
  const bool gathers = is_to_root(problem);
  Program program;
  if (!assignment.is_root()) {
    const Piece share{0, own.bytes};
    gathers ? add_sends(assignment, trees, share, problem.root, program)
            : add_receives(assignment, trees, share, problem.root, program);
    return program;
  }
  Step copy = Assignment::step(own, chunk_for(assignment, trees));
  copy.sources.push_back(from_local(Buffer::input, gathers ? 0 : own.offset));
  copy.targets.push_back(to_local(Buffer::output, gathers ? own.offset : 0));
  add_step(program, std::move(copy));
  for (uint32_t ahead = 1; ahead < problem.n_ranks; ++ahead) {
    const uint32_t peer = (problem.root + ahead) % problem.n_ranks;
    gathers ? add_receives(assignment, trees, pieces[peer], peer, program)
            : add_sends(assignment, trees, pieces[peer], peer, program);
  }
  return program;
}

}  // namespace ringbolt::collective
