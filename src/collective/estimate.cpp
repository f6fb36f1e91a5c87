#include "collective/estimate.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/assert.h"
#include "collective/layout.h"
#include "collective/loads.h"
#include "collective/path_trees.h"
#include "collective/tree_schedules.h"

namespace ringbolt::collective {
namespace {

/// The formulas, by name of the schedule.
class Estimator {
 public:
  Estimator(const Problem& problem, const Topology& topology, const Limits& limits)
      : problem_(problem),
        topology_(topology),
        limits_(limits),
        n_(problem.n_ranks),
        total_(static_cast<double>(total_bytes(problem))) {}

  Estimate of(std::string_view name) const {
    if (n_ == 1) {
      return {};
    }
    Estimate estimate = moving(name);
    estimate.added_bytes = added_bytes(name);
    return estimate;
  }

 private:
  /// Each element of n inputs takes n - 1 additions, wherever they are done; where several ranks do the same ones, more.
  double added_bytes(std::string_view name) const {
    if (!reduces(problem_.operation)) {
      return 0;
    }
    if (name == "exchange") {
      return (n_ - 1) * total_;
    }
    if (name == "doubling") {
      const uint32_t n_exchanging = std::bit_floor(n_);
      return (n_exchanging * (std::bit_width(n_exchanging) - 1.0) + (n_ - n_exchanging)) * total_ / n_;
    }
    return (n_ - 1) * total_ / n_;
  }

  Estimate moving(std::string_view name) const {
    if (name == "exchange") {
      return to_all_at_once(1, total_, topology_.pair_load_us(), 1);
    }
    if (name == "direct") {
      return direct();
    }
    if (name == "direct_tree") {
      return relaying(total_ / n_ * topology_.relays_of_pairs(),
                      pipeline(2 * topology_.diameter(), total_ / n_ * topology_.split_and_flood_load_us(),
                               total_ / n_ / n_ways(), 2 * n_ways() * n_));
    }
    if (name == "chain") {
      return chain();
    }
    if (name == "doubling") {
      return doubling();
    }
    if (name == "halving") {
      return halving();
    }
    if (name == "tree") {
      return tree();
    }
    if (name == "double_tree") {
      return double_tree();
    }
    if (name == "ring") {
      return ring(1);
    }
    if (name == "two_way_ring") {
      return ring(2);
    }
    if (name == "trees") {
      return trees();
    }
    if (name == "split") {
      return to_all_at_once(n_rounds(), bytes_of_a_pair(), topology_.split_load_us(), Topology::kWays);
    }
    if (name == "path_trees") {
      const PathTrees trees = path_trees(problem_, topology_);
      double relayed = 0;
      for (uint32_t rank = 0; rank < n_; ++rank) {
        const uint32_t hops = topology_.hops(rank, problem_.root);
        relayed += hops > 1 ? static_cast<double>(problem_.shares[rank]) * (hops - 1) : 0;
      }
      return relaying(relayed / n_, pipeline(trees.n_levels, trees.busiest_us, total_ / n_ / trees.n_parts,
                                             n_ * trees.n_parts));
    }
    RINGBOLT_ASSERT(name == "dissemination");
    return dissemination();
  }

  double chunk_us(double n_levels, double bytes) const {
    const double chunk =
        chunk_bytes_for(topology_.model(), static_cast<uint32_t>(n_levels), static_cast<uint64_t>(bytes),
                        topology_.least_rate(), problem_.element_bytes, limits_);
    return std::min(chunk, bytes) / topology_.least_rate();
  }

  double chunks_of(double n_levels, double bytes) const {
    const double us = chunk_us(n_levels, bytes);
    return us > 0 ? std::max(1.0, bytes / topology_.least_rate() / us) : 1;
  }

  /// Chunks of `bytes` that pass n_levels hops, while the busiest cable sends for busiest_us.
  Estimate pipeline(double n_levels, double busiest_us, double bytes, double n_transfers) const {
    return {n_levels, busiest_us, (n_levels - 1) * chunk_us(n_levels, bytes), n_transfers * chunks_of(n_levels, bytes)};
  }

  static Estimate relaying(double bytes, Estimate estimate) {
    estimate.relayed_bytes = bytes;
    return estimate;
  }

  /// Every rank sends to every other, `n_times`; a byte of each takes load_us.
  Estimate to_all_at_once(double n_times, double bytes, double load_us, double n_parts) const {
    return relaying(n_times * bytes * topology_.relays_of_pairs(),
                    pipeline(n_times * topology_.diameter(), n_times * bytes * load_us, bytes / n_parts,
                             n_times * n_parts * n_));
  }

  Estimate direct() const {
    return has_root(problem_.operation) ? between_root_and_all()
                                        : to_all_at_once(n_rounds(), bytes_of_a_pair(), topology_.pair_load_us(), 1);
  }

  double n_rounds() const { return problem_.operation == Operation::all_reduce ? 2 : 1; }

  double n_ways() const { return topology_.has_choice_of_paths() ? Topology::kWays : 1; }

  double bytes_of_a_pair() const {
    return problem_.operation == Operation::all_to_all ? total_ / n_ / n_ : total_ / n_;
  }

  Estimate between_root_and_all() const {
    const bool is_from_root = problem_.operation == Operation::broadcast || problem_.operation == Operation::scatter;
    const bool is_whole = problem_.operation == Operation::broadcast || problem_.operation == Operation::reduce;
    Loads loads(topology_);
    double n_levels = 0;
    for (uint32_t rank = 0; rank < n_; ++rank) {
      if (rank != problem_.root) {
        const auto bytes = is_whole ? total_ : static_cast<double>(problem_.shares[rank]);
        loads.add(is_from_root ? problem_.root : rank, is_from_root ? rank : problem_.root, bytes);
        n_levels = std::max<double>(n_levels, topology_.hops(rank, problem_.root));
      }
    }
    return relaying(loads.relayed_bytes() / n_,
                    pipeline(n_levels, loads.most_us(), is_whole ? total_ : total_ / n_, n_));
  }

  Estimate chain() const {
    Loads loads(topology_);
    double n_levels = 0;
    const bool is_all_reduce = problem_.operation == Operation::all_reduce;
    for (uint32_t rank = 0; rank + 1 < n_; ++rank) {
      loads.add(rank, rank + 1, total_);
      n_levels += topology_.hops(rank, rank + 1) * (is_all_reduce ? 2 : 1);
      if (is_all_reduce) {
        loads.add(rank + 1, rank, total_);
      } else if (problem_.operation == Operation::reduce_scatter) {
        loads.add(n_ - 1, rank, static_cast<double>(problem_.shares[rank]));
      }
    }
    if (problem_.operation == Operation::reduce && problem_.root + 1 != n_) {
      loads.add(n_ - 1, problem_.root, total_);
    }
    n_levels += is_all_reduce ? 0 : topology_.diameter();
    return relaying(loads.relayed_bytes() / n_, pipeline(n_levels, loads.most_us(), total_, 2));
  }

  /// Exchanges with the rank at every bit; of `bytes`, or ever fewer.
  template <class BytesOf>
  double add_rounds(Loads& loads, const BytesOf& bytes_of) const {
    const uint32_t n_exchanging = std::bit_floor(n_);
    double n_levels = 0;
    for (uint32_t bit = 1; bit < n_exchanging; bit *= 2) {
      uint32_t most = 0;
      for (uint32_t rank = 0; rank < n_exchanging; ++rank) {
        loads.add(rank, rank ^ bit, bytes_of(bit));
        most = std::max(most, topology_.hops(rank, rank ^ bit));
      }
      n_levels += most;
    }
    uint32_t most = 0;
    for (uint32_t rank = n_exchanging; rank < n_; ++rank) {
      loads.add(rank, rank - n_exchanging, total_);
      loads.add(rank - n_exchanging, rank, total_);
      most = std::max(most, topology_.hops(rank, rank - n_exchanging));
    }
    return n_levels + 2 * most;
  }

  Estimate doubling() const {
    Loads loads(topology_);
    const double n_levels = add_rounds(loads, [&](uint32_t) { return total_; });
    return {n_levels, loads.most_us(), (n_levels - 1) * chunk_us(topology_.diameter(), total_),
            std::bit_width(n_) * chunks_of(topology_.diameter(), total_), loads.relayed_bytes() / n_};
  }

  Estimate halving() const {
    // The halves of a round follow those of the round before, so rounds add up, each with its busiest cable.
    const uint32_t n_exchanging = std::bit_floor(n_);
    double us = 0;
    for (uint32_t bit = 1; bit < n_exchanging; bit *= 2) {
      Loads loads(topology_);
      for (uint32_t rank = 0; rank < n_exchanging; ++rank) {
        loads.add(rank, rank ^ bit, total_ * bit / n_exchanging);
      }
      us += 2 * loads.most_us();
    }
    Loads all(topology_);
    const double n_levels = 2 * add_rounds(all, [&](uint32_t bit) { return 2 * total_ * bit / n_exchanging; });
    return {n_levels, std::max(us, all.most_us()), 0, 2 * chunks_of(2, total_) + n_exchanging,
            all.relayed_bytes() / n_};
  }

  Estimate tree() const {
    const bool has_shares =
        problem_.operation == Operation::all_gather || problem_.operation == Operation::reduce_scatter;
    if (has_shares) {
      const double most = static_cast<double>(std::ranges::max(problem_.shares));
      return pipeline(topology_.diameter(), topology_.flood_load_us() * total_ / n_, most, n_);
    }
    const uint32_t root = has_root(problem_.operation) ? problem_.root : topology_.centre();
    const std::vector<uint32_t>& parents = topology_.parents_towards(root);
    double slowest = topology_.model().bytes_per_us * 1e9;
    double n_levels = 0;
    for (uint32_t rank = 0; rank < n_; ++rank) {
      if (rank != root) {
        slowest = std::min(slowest, topology_.rate(rank, parents[rank]));
        n_levels = std::max<double>(n_levels, topology_.hops(rank, root));
      }
    }
    n_levels *= use_of_trees(problem_.operation) == TreeUse::up_and_down ? 2 : 1;
    return pipeline(n_levels, total_ / slowest, total_, 2);
  }

  Estimate double_tree() const {
    Loads loads(topology_);
    double n_levels = 0;
    for (const TreePart& tree : two_trees(problem_, topology_, limits_)) {
      n_levels = std::max<double>(n_levels, 2 * levels_of(topology_, tree));
      for (uint32_t rank = 0; rank < n_; ++rank) {
        if (rank != tree.root) {
          loads.add(rank, tree.parents[rank], static_cast<double>(tree.piece.bytes));
          loads.add(tree.parents[rank], rank, static_cast<double>(tree.piece.bytes));
        }
      }
    }
    return relaying(loads.relayed_bytes() / n_, pipeline(n_levels, loads.most_us(), total_ / 2, 4));
  }

  Estimate ring(double n_ways) const {
    const std::vector<uint32_t>& ranks = *topology_.ring();
    double slowest = topology_.rate(ranks.back(), ranks.front());
    for (size_t place = 0; place + 1 < ranks.size(); ++place) {
      slowest = std::min(slowest, topology_.rate(ranks[place], ranks[place + 1]));
    }
    const double n_levels = (problem_.operation == Operation::all_reduce ? 2.0 : 1.0) * (n_ - 1);
    const double shard_us = total_ / n_ / n_ways / slowest;
    // A shard's last chunk leaves while its first is on its way: whichever is longer tells.
    const double chunk = std::min(chunk_us(n_levels, total_ / n_ways), shard_us);
    const double hidden_us = std::min(topology_.model().latency_us, shard_us - chunk);
    return {n_levels, n_levels * (shard_us - hidden_us) + hidden_us, 0,
            n_ways * n_levels * std::max(1.0, shard_us / std::max(chunk, 1e-9))};
  }

  Estimate trees() const {
    const fabric::Packing& packing = packing_for(problem_, topology_);
    const bool has_shares =
        problem_.operation == Operation::all_gather || problem_.operation == Operation::reduce_scatter;
    const double n_trees = static_cast<double>(packing.n_trees());
    const double rate = topology_.model().bytes_per_us / packing.scale.value();
    double n_levels = 0;
    int64_t heaviest = 1;
    for (const fabric::Tree& tree : packing.trees) {
      n_levels = std::max<double>(n_levels, fabric::depth(tree));
      heaviest = std::max(heaviest, tree.multiplicity);
    }
    n_levels *= use_of_trees(problem_.operation) == TreeUse::up_and_down ? 2 : 1;
    double busiest_us = total_ / n_trees / rate;
    if (has_shares) {
      busiest_us = static_cast<double>(std::ranges::max(problem_.shares)) / (n_trees / n_) / rate;
    }
    const double bytes = total_ / n_trees * static_cast<double>(heaviest);
    const double heaviest_rate = rate * static_cast<double>(heaviest);
    const double chunk = chunk_bytes_for(topology_.model(), static_cast<uint32_t>(n_levels),
                                         static_cast<uint64_t>(bytes), heaviest_rate, problem_.element_bytes, limits_);
    const double chunk_us = std::min(chunk, bytes) / heaviest_rate;
    return {n_levels, busiest_us, (n_levels - 1) * chunk_us, n_trees * std::max(1.0, bytes / chunk)};
  }

  Estimate dissemination() const {
    double n_levels = 0;
    double n_rounds = 0;
    for (uint32_t distance = 1; distance < n_; distance *= 2) {
      uint32_t most = 0;
      for (uint32_t rank = 0; rank < n_; ++rank) {
        most = std::max(most, topology_.hops(rank, (rank + distance) % n_));
      }
      n_levels += most;
      ++n_rounds;
    }
    return {n_levels, 0, 0, n_rounds};
  }

  const Problem& problem_;
  const Topology& topology_;
  const Limits& limits_;
  const uint32_t n_;
  const double total_;
};

}  // namespace

Estimate estimate(std::string_view name, const Problem& problem, const Topology& topology, const Limits& limits) {
  return Estimator(problem, topology, limits).of(name);
}

double time_us(const CostModel& model, const Estimate& estimate) {
  const double busy_us = std::max(estimate.busiest_us, estimate.n_chunks * model.chunk_us);
  const double relay_us = model.relay_bytes_per_us > 0 ? estimate.relayed_bytes / model.relay_bytes_per_us : 0;
  const double add_us = model.add_bytes_per_us > 0 ? estimate.added_bytes / model.add_bytes_per_us : 0;
  return estimate.n_levels * (model.latency_us + model.chunk_us) + busy_us + relay_us + add_us + estimate.wait_us;
}

}  // namespace ringbolt::collective
