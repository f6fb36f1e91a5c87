#include "plan/schedules.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/assert.h"
#include "collective/layout.h"
#include "plan/analysis.h"
#include "plan/report.h"
#include "table.h"

namespace ringbolt::tools::plan {
namespace {

using collective::Operation;
using collective::Problem;
using Kind = Table::Kind;

/// A call, and how fast no schedule of it can be.
struct Row {
  Operation operation;
  bool is_in_order;
  double rate;  ///< of the whole vector, in cables
  double least_hops;
};

/// In cables: all that the root gets or gives, but its own share, goes over its cables.
double root_rate(const fabric::Graph& graph) {
  double cables = 0;
  for (const fabric::Cable& cable : graph.cables) {
    cables += cable.a == 0 || cable.b == 0 ? cable.capacity.value() : 0;
  }
  return cables * graph.n_nodes / (graph.n_nodes - 1.0);
}

std::vector<Row> rows_of(const Analysis& analysis) {
  const Rates& rates = *analysis.rates;
  const double n = analysis.graph.n_nodes;
  const double hops = fabric::least_steps(analysis.graph);
  const double hops_of_0 = std::ranges::max(fabric::hops_from(fabric::neighbours(analysis.graph), 0));
  const double shards = n * rates.shard_rate.value();
  const double whole = fabric::rate_from(analysis.graph, 0).value();
  const double parts = root_rate(analysis.graph);
  return {
      {Operation::all_reduce, false, rates.tree_rate.value(), hops},
      {Operation::all_reduce, true, rates.tree_rate.value(), hops},
      {Operation::reduce_scatter, false, shards, hops},
      {Operation::all_gather, false, shards, hops},
      {Operation::broadcast, false, whole, hops_of_0},
      {Operation::reduce, false, whole, hops_of_0},
      {Operation::gather, false, parts, hops_of_0},
      {Operation::scatter, false, parts, hops_of_0},
      {Operation::all_to_all, false, rates.pair_bound.bound.value() * n, hops},
      {Operation::barrier, false, 1, hops},
  };
}

PlannedCall planned_call(const Row& row, const collective::Topology& topology, double bytes) {
  const collective::CostModel& model = topology.model();
  std::vector<collective::Choice> choices =
      collective::choose(problem_of(row.operation, row.is_in_order, topology.n_ranks(), bytes), topology, {});
  PlannedCall call{row.operation, row.is_in_order, bytes, 0, std::move(choices.front()), std::nullopt};
  call.bound_us = std::max(row.least_hops * model.latency_us, bytes / (row.rate * model.bytes_per_us));
  if (choices.size() > 1) {
    call.next_best = std::move(choices[1]);
  }
  return call;
}

}  // namespace

Problem problem_of(Operation operation, bool is_in_order, uint32_t n_ranks, double bytes) {
  Problem problem;
  problem.operation = operation;
  problem.n_ranks = n_ranks;
  problem.element_bytes = 4;
  problem.needs_rank_order = is_in_order;
  if (operation == Operation::barrier) {
    return problem;
  }
  const bool is_whole =
      operation == Operation::all_reduce || operation == Operation::broadcast || operation == Operation::reduce;
  const size_t n_shares = is_whole ? 1 : operation == Operation::all_to_all ? size_t{n_ranks} * n_ranks : n_ranks;
  const double share = is_whole ? bytes : bytes / n_ranks;
  problem.shares.assign(n_shares, static_cast<uint64_t>(std::ceil(share / 4)) * 4);
  return problem;
}

std::string PlannedCall::name() const {
  return std::string(collective::operation_text(operation)) + (is_in_order ? " in order" : "");
}

std::vector<PlannedCall> planned_calls(const Analysis& analysis, const collective::Topology& topology) {
  std::vector<PlannedCall> calls;
  for (const Row& row : rows_of(analysis)) {
    if (row.operation == Operation::barrier) {
      calls.push_back(planned_call(row, topology, 0));
      continue;
    }
    for (const double bytes : kPredictedBytes) {
      calls.push_back(planned_call(row, topology, bytes));
    }
  }
  return calls;
}

const PlannedCall& call_of(const std::vector<PlannedCall>& calls, Operation operation, double bytes) {
  const auto call = std::ranges::find_if(calls, [&](const PlannedCall& one) {
    return one.operation == operation && !one.is_in_order && one.bytes == bytes;
  });
  RINGBOLT_ASSERT(call != calls.end());
  return *call;
}

void print_schedules(const std::vector<PlannedCall>& calls) {
  Table table("schedules",
              {{"COLLECTIVE"},
               {"BYTES", Kind::kNumber},
               {"SCHEDULE"},
               {"TIME", Kind::kNumber},
               {"BOUND", Kind::kNumber},
               {"TIMES_BOUND", Kind::kNumber},
               {"NEXT_BEST"}},
              false);
  for (const PlannedCall& call : calls) {
    table.add(
        {call.name(), bytes_text(call.bytes), call.choice.name, time_text(call.choice.predicted_us),
         time_text(call.bound_us), fmt::format("{:.2f}", call.times_bound()),
         call.next_best ? fmt::format("{} {}", call.next_best->name, time_text(call.next_best->predicted_us)) : ""});
  }
  fmt::print(
      "How collectives would be done, predicted; in order: each element is added up in the order of ranks, so the "
      "bits are the same on any cabling. The bound is the hops that some rank is away, or the bytes over the rate "
      "above (of gather and scatter, over the cables of node 0, their root):\n");
  table.print();
}

}  // namespace ringbolt::tools::plan
