// As direct, but what goes to a rank is cut into parts that take different ways where several are equally short: all
// cables carry about the same. And direct_tree: the sums of an all_reduce go by trees.

#include <algorithm>

#include "collective/assignment.h"

namespace ringbolt::collective {
namespace {

/// How the sums of an all_reduce reach all.
enum class SumsGo : uint8_t { nowhere, straight, by_trees };

/// One program each; `assignment` must stay.
class SplitBuilder {
 public:
  explicit SplitBuilder(const Assignment& assignment)
      : assignment_(assignment),
        rank_(assignment.rank),
        n_(assignment.n_ranks()),
        n_parts_(assignment.topology.has_choice_of_paths() ? Topology::kWays : 1) {}

  /// Rank s adds up the s-th shard, part by part, in the order of ranks, and sends the sums to all.
  Program reduction(const std::vector<Piece>& shards, SumsGo sums_go) {
    choose_chunks(shards, sums_go == SumsGo::nowhere ? 1 : 2);
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
        sum.sources.push_back(source == rank_ ? from_local(Buffer::input, own[part].offset)
                                              : from_transfer(source, part));
      }
      const uint64_t skipped = sums_go == SumsGo::nowhere ? shards[rank_].offset : 0;
      sum.targets.push_back(to_local(Buffer::output, own[part].offset - skipped));
      sum.finishes = true;
      if (sums_go == SumsGo::straight) {
        send_to_all(sum, part, shards);
      } else if (sums_go == SumsGo::by_trees) {
        send_to_children(sum, rank_, part, shards);
      }
      add_step(program_, std::move(sum));
    }
    if (sums_go == SumsGo::straight) {
      receive_from_all(shards, static_cast<uint32_t>(own.size()));
    } else if (sums_go == SumsGo::by_trees) {
      pass_on(shards);
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
    std::vector<Piece> parts = cut_evenly(shard, assignment_.problem.element_bytes, n_parts_);
    while (parts.size() > 1 && parts.back().bytes == 0) {
      parts.pop_back();
    }
    return parts;
  }

  void choose_chunks(const std::vector<Piece>& shards, uint32_t n_rounds) {
    const uint64_t longest = std::ranges::max(shards, {}, &Piece::bytes).bytes;
    chunk_bytes_ = assignment_.chunk_bytes(n_rounds * assignment_.topology.diameter(), longest / n_parts_);
  }

  Target target(uint32_t peer, uint32_t transfer, uint32_t part) const {
    return to_transfer(peer, transfer, assignment_.topology.way(rank_, peer, part));
  }

  void send(const Piece& piece, uint64_t input_offset, uint32_t peer, uint32_t transfer, uint32_t part) {
    Step step = Assignment::step(piece, chunk_bytes_);
    step.sources.push_back(from_local(Buffer::input, input_offset));
    step.targets.push_back(target(peer, transfer, part));
    add_step(program_, std::move(step));
  }

  /// Behind the transfers that carry the peer's shard to it, if there are any.
  void send_to_all(Step& step, uint32_t part, const std::vector<Piece>& shards) const {
    for (const uint32_t peer : others()) {
      const auto n_before = shards.empty() ? 0 : static_cast<uint32_t>(parts_of(shards[peer]).size());
      step.targets.push_back(target(peer, n_before + part, part));
    }
  }

  /// The transfer from a parent to its child in the tree of `shard`: behind those that carry the child's shard to it,
  /// and those of the trees before in which they are parent and child.
  uint32_t tree_transfer(uint32_t parent, uint32_t child, uint32_t shard, const std::vector<Piece>& shards) const {
    size_t transfer = parts_of(shards[child]).size();
    for (uint32_t before = 0; before < shard; ++before) {
      transfer += assignment_.topology.parents_towards(before)[child] == parent ? parts_of(shards[before]).size() : 0;
    }
    return static_cast<uint32_t>(transfer);
  }

  void send_to_children(Step& step, uint32_t shard, uint32_t part, const std::vector<Piece>& shards) const {
    for (uint32_t child = 0; child < n_; ++child) {
      if (child != shard && assignment_.topology.parents_towards(shard)[child] == rank_) {
        step.targets.push_back(to_transfer(child, tree_transfer(rank_, child, shard, shards) + part, {}));
      }
    }
  }

  void pass_on(const std::vector<Piece>& shards) {
    for (const uint32_t owner : others()) {
      const uint32_t parent = assignment_.topology.parents_towards(owner)[rank_];
      const std::vector<Piece> parts = parts_of(shards[owner]);
      for (uint32_t part = 0; part < parts.size(); ++part) {
        Step step = Assignment::step(parts[part], chunk_bytes_);
        step.sources.push_back(from_transfer(parent, tree_transfer(parent, rank_, owner, shards) + part));
        step.targets.push_back(to_local(Buffer::output, parts[part].offset));
        send_to_children(step, owner, part, shards);
        add_step(program_, std::move(step));
      }
    }
  }

  void receive_from_all(const std::vector<Piece>& pieces, uint32_t first_transfer) {
    for (const uint32_t peer : others()) {
      uint32_t transfer = first_transfer;
      for (const Piece& part : parts_of(pieces[peer])) {
        Step step = Assignment::step(part, chunk_bytes_);
        step.sources.push_back(from_transfer(peer, transfer++));
        step.targets.push_back(to_local(Buffer::output, part.offset));
        add_step(program_, std::move(step));
      }
    }
  }

  const Assignment& assignment_;
  const uint32_t rank_;
  const uint32_t n_;
  const uint32_t n_parts_;
  uint32_t chunk_bytes_ = 0;
  Program program_;
};

}  // namespace

Program build_split(const Assignment& assignment) {
  const Problem& problem = assignment.problem;
  SplitBuilder builder(assignment);
  switch (problem.operation) {
    case Operation::all_reduce:
      return builder.reduction(cut_evenly({0, total_bytes(problem)}, problem.element_bytes, problem.n_ranks),
                               SumsGo::straight);
    case Operation::reduce_scatter:
      return builder.reduction(pieces_of(problem), SumsGo::nowhere);
    case Operation::all_gather:
      return builder.all_gather(pieces_of(problem));
    default:
      return builder.all_to_all();
  }
}

Program build_direct_tree(const Assignment& assignment) {
  const Problem& problem = assignment.problem;
  return SplitBuilder(assignment)
      .reduction(cut_evenly({0, total_bytes(problem)}, problem.element_bytes, problem.n_ranks), SumsGo::by_trees);
}

}  // namespace ringbolt::collective
