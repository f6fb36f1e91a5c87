#include "plan/relays.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "cluster_state.h"
#include "fabric/among.h"
#include "failure.h"
#include "plan/schedules.h"

namespace ringbolt::tools::plan {
namespace {

using collective::Operation;

void measure_hops(const fabric::Graph& graph, RelayPlan& plan) {
  const auto neighbours = fabric::neighbours(graph);
  uint64_t sum = 0;
  for (const uint32_t from : plan.members) {
    const std::vector<uint32_t> hops = fabric::hops_from(neighbours, from);
    for (const uint32_t to : plan.members) {
      plan.diameter = std::max(plan.diameter, hops[to]);
      sum += hops[to];
    }
  }
  const auto n = static_cast<double>(plan.members.size());
  plan.average_hops = static_cast<double>(sum) / (n * (n - 1));
}

/// Of 4-byte elements, `bytes` in all for each rank.
collective::Problem problem_of(Operation operation, size_t n_ranks, double bytes) {
  collective::Problem problem;
  problem.operation = operation;
  problem.n_ranks = static_cast<uint32_t>(n_ranks);
  problem.element_bytes = 4;
  const bool is_whole = operation == Operation::all_reduce || operation == Operation::broadcast;
  const size_t n_shares = is_whole ? 1 : operation == Operation::all_to_all ? n_ranks * n_ranks : n_ranks;
  const double share = is_whole ? bytes : bytes / static_cast<double>(n_ranks);
  problem.shares.assign(n_shares, static_cast<uint64_t>(std::ceil(share / 4)) * 4);
  return problem;
}

}  // namespace

RelayPlan relay_plan(const Cabling& cabling, const PlanOptions& options) {
  RelayPlan plan;
  for (const std::string& name : options.relays) {
    plan.relays.push_back(find_node(cabling.model, name));
  }
  std::ranges::sort(plan.relays);
  plan.relays.erase(std::unique(plan.relays.begin(), plan.relays.end()), plan.relays.end());
  for (uint32_t node = 0; node < cabling.n_nodes(); ++node) {
    if (!std::ranges::binary_search(plan.relays, node)) {
      plan.members.push_back(node);
    }
  }
  if (plan.members.size() < 2) {
    throw UsageError(
        fmt::format("--relays leaves {} of {} nodes: a group needs two", plan.members.size(), cabling.n_nodes()));
  }
  return plan;
}

void predict_group(RelayPlan& plan, const Cabling& cabling, const fabric::Graph& graph, const PlanOptions& options) {
  measure_hops(graph, plan);
  const collective::Topology topology(fabric::graph_among(graph, plan.members),
                                      {options.alpha_us, cabling.unit_gbps * 125.0, 0});
  constexpr std::array<std::pair<const char*, Operation>, 4> kCalls = {{{"all_reduce", Operation::all_reduce},
                                                                        {"all_gather", Operation::all_gather},
                                                                        {"broadcast", Operation::broadcast},
                                                                        {"all_to_all", Operation::all_to_all}}};
  for (const auto& [name, operation] : kCalls) {
    for (const double bytes : kPredictedBytes) {
      plan.calls.push_back(
          {name, bytes, collective::choose(problem_of(operation, plan.members.size(), bytes), topology, {}).front()});
    }
  }
}

std::string names_text(const Cabling& cabling, const std::vector<uint32_t>& nodes) {
  std::string text;
  for (const uint32_t node : nodes) {
    text += (text.empty() ? "" : ", ") + cabling.node_name(node);
  }
  return text;
}

}  // namespace ringbolt::tools::plan
