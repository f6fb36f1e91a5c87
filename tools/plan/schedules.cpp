#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "collective/cost.h"
#include "collective/layout.h"
#include "plan/report.h"
#include "table.h"

namespace ringbolt::tools::plan {
namespace {

using collective::Operation;
using collective::Problem;
using Kind = Table::Kind;

/// A call, and how fast no schedule of it can be.
struct Row {
  const char* name;
  Operation operation;
  bool needs_rank_order;
  double rate;  ///< of the whole vector, in cables; all_to_all: of each pair
  double least_hops;
};

std::vector<Row> rows_of(const Analysis& analysis) {
  const Rates& rates = *analysis.rates;
  const double n = analysis.graph.n_nodes;
  const double hops = fabric::least_steps(analysis.graph);
  const auto far = fabric::hops_from(fabric::neighbours(analysis.graph), 0);
  const double shards = n * rates.shard_rate.value();
  return {
      {"all_reduce", Operation::all_reduce, false, rates.tree_rate.value(), hops},
      {"all_reduce in order", Operation::all_reduce, true, rates.tree_rate.value(), hops},
      {"reduce_scatter", Operation::reduce_scatter, false, shards, hops},
      {"all_gather", Operation::all_gather, false, shards, hops},
      {"broadcast", Operation::broadcast, false, fabric::rate_from(analysis.graph, 0).value(),
       static_cast<double>(std::ranges::max(far))},
      {"all_to_all", Operation::all_to_all, false, rates.pair_bound.bound.value() * n, hops},
  };
}

/// Of 4-byte elements, `bytes` in all for each rank.
Problem problem_of(const Row& row, uint32_t n_ranks, double bytes) {
  Problem problem;
  problem.operation = row.operation;
  problem.n_ranks = n_ranks;
  problem.element_bytes = 4;
  problem.needs_rank_order = row.needs_rank_order;
  const bool is_whole = row.operation == Operation::all_reduce || row.operation == Operation::broadcast;
  const size_t n_shares = is_whole ? 1 : row.operation == Operation::all_to_all ? size_t{n_ranks} * n_ranks : n_ranks;
  const double share = is_whole ? bytes : bytes / n_ranks;
  problem.shares.assign(n_shares, static_cast<uint64_t>(std::ceil(share / 4)) * 4);
  return problem;
}

}  // namespace

void print_schedules(const Cabling& cabling, const Analysis& analysis, double alpha_us) {
  const double bytes_per_us = cabling.unit_gbps * 125.0;
  const collective::Topology topology(analysis.graph, {alpha_us, bytes_per_us, 0});
  Table table("schedules",
              {{"COLLECTIVE"},
               {"BYTES", Kind::kNumber},
               {"SCHEDULE"},
               {"TIME", Kind::kNumber},
               {"BOUND", Kind::kNumber},
               {"TIMES_BOUND", Kind::kNumber},
               {"NEXT_BEST"}},
              false);
  for (const Row& row : rows_of(analysis)) {
    for (const double bytes : kPredictedBytes) {
      const auto choices = collective::choose(problem_of(row, topology.n_ranks(), bytes), topology, {});
      const double bound_us = std::max(row.least_hops * alpha_us, bytes / (row.rate * bytes_per_us));
      const double time_us = choices.front().predicted_us;
      table.add({row.name, bytes_text(bytes), choices.front().name, time_text(time_us), time_text(bound_us),
                 fmt::format("{:.2f}", time_us / bound_us),
                 choices.size() > 1 ? fmt::format("{} {}", choices[1].name, time_text(choices[1].predicted_us)) : ""});
    }
  }
  fmt::print(
      "How collectives would be done, predicted; in order: each element is added up in the order of ranks, so the "
      "bits are the same on any cabling. The bound is the hops that some rank is away, or the bytes over the rate "
      "above:\n");
  table.print();
}

}  // namespace ringbolt::tools::plan
