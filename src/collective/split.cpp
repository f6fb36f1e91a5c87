// As direct, but what goes to a rank is cut into parts that take different ways where several are equally short: all
// cables carry about the same.

#include <algorithm>

#include "collective/assignment.h"

namespace ringbolt::collective {
namespace {

constexpr uint32_t kWays = Topology::kWays;

class SplitBuilder {
 public:
  explicit SplitBuilder(const Assignment& assignment)
      : assignment_(assignment), rank_(assignment.rank), n_(assignment.n_ranks()) {}

  /// Rank s adds up the s-th shard, part by part, in the order of ranks; in an all_reduce it sends the sums to all.
  Program reduction(const std::vector<Piece>& shards, bool sends_sums) {
    choose_chunks(shards, sends_sums ? 2 : 1);
    for (const uint32_t peer : others()) {
      const std::vector<Piece> parts = parts_of(shards[peer]);
      for (uint32_t part = 0; part < parts.size(); ++part) {
        send(parts[part], parts[part].offset, peer, part, part);
      }
    }
    const std::vector<Piece> own = parts_of(shards[rank_]);
    for (uint32_t part = 0; part < own.size(); ++part) {
      Step sum = Assignment::step(own[part], chunk_bytes_);
      for (uint32_t source = 0; source < n_; ++source) {
        sum.sources.push_back(source == rank_ ? from_local(Buffer::input, own[part].offset) : from_lane(source, part));
      }
      const uint64_t offset = sends_sums ? own[part].offset : own[part].offset - shards[rank_].offset;
      sum.targets.push_back(to_local(Buffer::output, offset));
      sum.finishes = true;
      if (sends_sums) {
        send_to_all(sum, part, shards);
      }
      add_step(program_, std::move(sum));
    }
    if (sends_sums) {
      receive_from_all(shards, static_cast<uint32_t>(own.size()));
    }
    return std::move(program_);
  }

  Program all_gather(const std::vector<Piece>& shards) {
    choose_chunks(shards, 1);
    const std::vector<Piece> own = parts_of(shards[rank_]);
    for (uint32_t part = 0; part < own.size(); ++part) {
      Step step = Assignment::step(own[part], chunk_bytes_);
      step.sources.push_back(from_local(Buffer::input, own[part].offset - shards[rank_].offset));
      step.targets.push_back(to_local(Buffer::output, own[part].offset));
      send_to_all(step, part, {});
      add_step(program_, std::move(step));
    }
    receive_from_all(shards, 0);
    return std::move(program_);
  }

  Program all_to_all() {
    const std::vector<Piece> row = row_of(assignment_.problem, rank_);
    const std::vector<Piece> column = column_of(assignment_.problem, rank_);
    choose_chunks({{0, std::ranges::max(assignment_.problem.shares)}}, 1);
    for (const uint32_t peer : others()) {
      const std::vector<Piece> parts = parts_of(row[peer]);
      for (uint32_t part = 0; part < parts.size(); ++part) {
        send(parts[part], parts[part].offset, peer, part, part);
      }
    }
    Step copy = Assignment::step(row[rank_], chunk_bytes_);
    copy.sources.push_back(from_local(Buffer::input, row[rank_].offset));
    copy.targets.push_back(to_local(Buffer::output, column[rank_].offset));
    add_step(program_, std::move(copy));
    receive_from_all(column, 0);
    return std::move(program_);
  }

 private:
  /// The ranks from one's own on, round: so not all send to the same first.
  std::vector<uint32_t> others() const {
    std::vector<uint32_t> ranks;
    for (uint32_t ahead = 1; ahead < n_; ++ahead) {
      ranks.push_back((rank_ + ahead) % n_);
    }
    return ranks;
  }

  /// One for each way; without empty ones, but for the first.
  std::vector<Piece> parts_of(const Piece& shard) const {
    std::vector<Piece> parts = cut_evenly(shard, assignment_.problem.element_bytes, kWays);
    while (parts.size() > 1 && parts.back().bytes == 0) {
      parts.pop_back();
    }
    return parts;
  }

  void choose_chunks(const std::vector<Piece>& shards, uint32_t n_rounds) {
    const uint64_t longest = std::ranges::max(shards, {}, &Piece::bytes).bytes;
    chunk_bytes_ = assignment_.chunk_bytes(n_rounds * assignment_.topology.diameter(), longest / kWays);
  }

  Target target(uint32_t peer, uint32_t lane, uint32_t part) const {
    return to_lane(peer, lane, assignment_.topology.way(rank_, peer, part));
  }

  void send(const Piece& piece, uint64_t input_offset, uint32_t peer, uint32_t lane, uint32_t part) {
    Step step = Assignment::step(piece, chunk_bytes_);
    step.sources.push_back(from_local(Buffer::input, input_offset));
    step.targets.push_back(target(peer, lane, part));
    add_step(program_, std::move(step));
  }

  /// Behind the lanes that carry the peer's shard to it, if there are any.
  void send_to_all(Step& step, uint32_t part, const std::vector<Piece>& shards) const {
    for (const uint32_t peer : others()) {
      const auto n_before = shards.empty() ? 0 : static_cast<uint32_t>(parts_of(shards[peer]).size());
      step.targets.push_back(target(peer, n_before + part, part));
    }
  }

  void receive_from_all(const std::vector<Piece>& pieces, uint32_t first_lane) {
    for (const uint32_t peer : others()) {
      uint32_t lane = first_lane;
      for (const Piece& part : parts_of(pieces[peer])) {
        Step step = Assignment::step(part, chunk_bytes_);
        step.sources.push_back(from_lane(peer, lane++));
        step.targets.push_back(to_local(Buffer::output, part.offset));
        add_step(program_, std::move(step));
      }
    }
  }

  const Assignment& assignment_;
  const uint32_t rank_;
  const uint32_t n_;
  uint32_t chunk_bytes_ = 0;
  Program program_;
};

}  // namespace

Program build_split(const Assignment& assignment) {
  const Problem& problem = assignment.problem;
  SplitBuilder builder(assignment);
  switch (problem.operation) {
    case Operation::all_reduce:
      return builder.reduction(cut_evenly({0, total_bytes(problem)}, problem.element_bytes, problem.n_ranks), true);
    case Operation::reduce_scatter:
      return builder.reduction(pieces_of(problem), false);
    case Operation::all_gather:
      return builder.all_gather(pieces_of(problem));
    default:
      return builder.all_to_all();
  }
}

}  // namespace ringbolt::collective
