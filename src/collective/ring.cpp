// Shards that go round a ring of all ranks: N - 1 hops to be added up, N - 1 more to reach all. Source: Patarasuk and
// Yuan 2009, "Bandwidth optimal all-reduce algorithms for clusters of workstations". In both directions at a time every
// cable is used both ways.

#include <algorithm>

#include "base/assert.h"
#include "collective/assignment.h"

namespace ringbolt::collective {
namespace {

/// One way round.
struct Round {
  std::vector<uint32_t> ranks;  ///< by position
  std::vector<Piece> shards;    ///< of the whole vector, by the position that has the sum (or what all shall have)
  std::vector<Piece> own;       ///< the same shards within the share of their rank
};

class RingBuilder {
 public:
  RingBuilder(const Assignment& assignment, Round round, uint32_t chunk_bytes)
      : round_(std::move(round)),
        n_(assignment.n_ranks()),
        place_(static_cast<uint32_t>(std::ranges::find(round_.ranks, assignment.rank) - round_.ranks.begin())),
        chunk_bytes_(chunk_bytes),
        adds_up_(assignment.problem.operation != Operation::all_gather),
        gathers_(assignment.problem.operation != Operation::reduce_scatter) {}

  /// The steps in the order in which their chunks come.
  std::vector<Step> build() {
    if (adds_up_) {
      for (uint32_t n_hops = 0; n_hops < n_; ++n_hops) {
        add_up(n_hops);
      }
    }
    if (gathers_) {
      for (uint32_t n_hops = adds_up_ ? 1 : 0; n_hops < n_; ++n_hops) {
        pass_on(n_hops);
      }
    }
    return std::move(steps_);
  }

 private:
  uint32_t next() const { return round_.ranks[(place_ + 1) % n_]; }
  uint32_t last() const { return round_.ranks[(place_ + n_ - 1) % n_]; }

  /// The sum that has come n_hops: it began one place after the one where it ends.
  void add_up(uint32_t n_hops) {
    const uint32_t shard = (place_ + 2 * n_ - 1 - n_hops) % n_;
    const Piece& piece = round_.shards[shard];
    Step step = Assignment::step(piece, chunk_bytes_);
    if (n_hops > 0) {
      step.sources.push_back(from_transfer(last(), n_hops - 1));
    }
    step.sources.push_back(from_local(Buffer::input, piece.offset));
    if (n_hops + 1 < n_) {
      step.targets.push_back(to_transfer(next(), n_hops, {}));
    } else {
      step.finishes = true;
      step.targets.push_back(to_local(Buffer::output, gathers_ ? piece.offset : round_.own[shard].offset));
      if (gathers_) {
        step.targets.push_back(to_transfer(next(), first_transfer(), {}));
      }
    }
    steps_.push_back(std::move(step));
  }

  /// The shard that has come n_hops from the place that had it first.
  void pass_on(uint32_t n_hops) {
    const uint32_t shard = (place_ + n_ - n_hops) % n_;
    const Piece& piece = round_.shards[shard];
    Step step = Assignment::step(piece, chunk_bytes_);
    step.sources.push_back(n_hops > 0 ? from_transfer(last(), first_transfer() + n_hops - 1)
                                      : from_local(Buffer::input, round_.own[shard].offset));
    step.targets.push_back(to_local(Buffer::output, piece.offset));
    if (n_hops + 1 < n_) {
      step.targets.push_back(to_transfer(next(), first_transfer() + n_hops, {}));
    }
    steps_.push_back(std::move(step));
  }

  uint32_t first_transfer() const { return adds_up_ ? n_ - 1 : 0; }

  const Round round_;
  const uint32_t n_;
  const uint32_t place_;  // in the ring
  const uint32_t chunk_bytes_;
  const bool adds_up_;
  const bool gathers_;
  std::vector<Step> steps_;
};

/// Every shard cut into as many parts as there are ways round.
std::vector<Round> rounds_of(const Assignment& assignment, uint32_t n_ways) {
  const Problem& problem = assignment.problem;
  const std::vector<uint32_t>& ring = *assignment.topology.ring();
  const std::vector<Piece> shares = problem.operation == Operation::all_reduce
                                        ? cut_evenly({0, total_bytes(problem)}, problem.element_bytes, problem.n_ranks)
                                        : pieces_of(problem);
  std::vector<Round> rounds;
  for (uint32_t way = 0; way < n_ways; ++way) {
    Round round{ring, {}, {}};
    if (way == 1) {
      std::ranges::reverse(round.ranks);
    }
    for (const uint32_t rank : round.ranks) {
      round.shards.push_back(cut_evenly(shares[rank], problem.element_bytes, n_ways)[way]);
      round.own.push_back({round.shards.back().offset - shares[rank].offset, round.shards.back().bytes});
    }
    rounds.push_back(std::move(round));
  }
  return rounds;
}

Program build_rounds(const Assignment& assignment, uint32_t n_ways) {
  RINGBOLT_ASSERT(assignment.topology.ring());
  const uint32_t n = assignment.n_ranks();
  const std::vector<Round> rounds = rounds_of(assignment, n_ways);
  uint64_t longest = 0;
  for (const Round& round : rounds) {
    longest = std::max(longest, std::ranges::max(round.shards, {}, &Piece::bytes).bytes);
  }
  const uint32_t n_levels = (assignment.problem.operation == Operation::all_reduce ? 2 : 1) * (n - 1);
  const uint32_t chunk_bytes = assignment.chunk_bytes(n_levels, longest * (n - 1));
  std::vector<std::vector<Step>> ways;
  for (const Round& round : rounds) {
    ways.push_back(RingBuilder(assignment, round, chunk_bytes).build());
  }
  Program program;
  for (size_t index = 0; index < ways.front().size(); ++index) {
    for (std::vector<Step>& way : ways) {
      add_step(program, std::move(way[index]));
    }
  }
  return program;
}

}  // namespace

Program build_ring(const Assignment& assignment) { return build_rounds(assignment, 1); }

Program build_two_way_ring(const Assignment& assignment) { return build_rounds(assignment, 2); }

}  // namespace ringbolt::collective
