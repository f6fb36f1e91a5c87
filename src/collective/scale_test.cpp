// Schedules on 64 and 1,024 ranks: that every contribution is there once and in its place, and how long they take
// against what no schedule can beat and against what is predicted.

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collective/builder.h"
#include "collective/check.h"
#include "collective/cost.h"
#include "collective/problems_test_support.h"
#include "collective/simulate.h"
#include "fabric/bounds.h"

namespace ringbolt::collective {
namespace {

using Names = std::vector<std::string>;

constexpr CostModel kModel{10, 5000, 0};

/// A call with about `bytes` in all.
Problem problem_of_bytes(Operation operation, uint32_t n_ranks, uint64_t bytes) {
  const uint64_t n = n_ranks;
  const bool has_one_share =
      operation == Operation::all_reduce || operation == Operation::broadcast || operation == Operation::reduce;
  const uint64_t share = has_one_share ? bytes : operation == Operation::all_to_all ? bytes / n / n : bytes / n;
  return problem_of(operation, n_ranks, share / 4, 4, n_ranks / 3);
}

struct Times {
  double time_us = 0;
  double predicted_us = 0;
};

/// By the simulator and by the formula.
Times timed(const std::string& name, const Problem& problem, const Topology& topology, const Schedule& schedule,
            const Limits& limits) {
  const auto result = simulate(schedule, problem, topology);
  EXPECT_TRUE(result) << name << ", " << text_of(problem) << ": " << (result ? "" : result.error());
  return {result ? result->time_us : 0, predict_us(name, problem, topology, limits)};
}

/// Every contribution once and in its place, and to the end.
Times passes(const std::string& name, const Problem& problem, const Topology& topology, const Limits& limits = {}) {
  const Schedule schedule = build(name, problem, topology, limits);
  const auto checked = check(schedule, problem, topology.graph(), limits);
  EXPECT_TRUE(checked) << name << ", " << text_of(problem) << ": " << (checked ? "" : checked.error());
  return timed(name, problem, topology, schedule, limits);
}

void expect_within_a_factor_of_two(const Times& times, const std::string& name) {
  EXPECT_GE(times.predicted_us, times.time_us * 0.6) << name;
  EXPECT_LE(times.predicted_us, times.time_us * 2) << name;
}

Names schedules_of(Operation operation) {
  switch (operation) {
    case Operation::all_reduce:
      return {"exchange", "direct",      "direct_tree", "chain",        "doubling", "halving",
              "tree",     "double_tree", "ring",        "two_way_ring", "trees",    "split"};
    case Operation::reduce_scatter:
      return {"direct", "chain", "tree", "ring", "two_way_ring", "trees", "split"};
    case Operation::all_gather:
      return {"direct", "tree", "ring", "two_way_ring", "trees", "split"};
    case Operation::broadcast:
      return {"direct", "tree", "trees"};
    case Operation::reduce:
      return {"direct", "chain", "tree", "trees"};
    case Operation::gather:
    case Operation::scatter:
      return {"direct", "path_trees"};
    case Operation::all_to_all:
      return {"direct", "split"};
    case Operation::barrier:
      return {"tree", "dissemination"};
  }
  return {};
}

std::vector<NamedGraph> graphs_of_64() {
  std::vector<NamedGraph> graphs = {{"torus:8x8", fabric::torus({8, 8})},
                                    {"mesh:64", fabric::full_mesh(64)},
                                    {"hypercube:6", fabric::hypercube(6)},
                                    {"ring:64", fabric::ring(64)},
                                    {"circulant:1,14", fabric::circulant(64, {1, 14})}};
#ifndef NDEBUG
  graphs.erase(graphs.begin() + 1, graphs.end());  // sanitizers make them slow
#endif
  return graphs;
}

class On64Ranks : public testing::TestWithParam<Operation> {};

TEST_P(On64Ranks, every_schedule_passes) {
  for (const NamedGraph& graph : graphs_of_64()) {
    const Topology topology(graph.graph, kModel);
    SCOPED_TRACE(graph.name);
    Names expected = schedules_of(GetParam());
    if (topology.diameter() == 1) {  // no relays, and no choice of paths; trees from all would take long to pack
      const bool has_shares = GetParam() == Operation::reduce_scatter || GetParam() == Operation::all_gather;
      std::erase_if(expected, [&](const std::string& name) {
        return name == "direct_tree" || name == "split" || name == "path_trees" || (name == "trees" && has_shares);
      });
    }
    ASSERT_FALSE(expected.empty());
    const Problem short_one = problem_of_bytes(GetParam(), 64, 64 * 64 * 8);
    EXPECT_EQ(candidates(short_one, topology), expected);
    const bool has_one_share =
        GetParam() == Operation::all_reduce || GetParam() == Operation::broadcast || GetParam() == Operation::reduce;
    const Problem several_chunks = problem_of(GetParam(), 64, has_one_share ? 323 : 31, 4, 5, true);
    for (const std::string& name : expected) {
      expect_within_a_factor_of_two(passes(name, short_one, topology), name);
      if (graph.name == "torus:8x8" || graph.name == "ring:64") {
        passes(name, several_chunks, topology, {256});
      }
    }
  }
}

class LongVectorsOn64Ranks : public testing::TestWithParam<Operation> {};

/// "The packed schedules reach the bounds within 5 %."
TEST_P(LongVectorsOn64Ranks, the_best_schedule_reaches_the_bound) {
  constexpr uint64_t kBytes = uint64_t{512} << 20;
  for (const NamedGraph& graph : graphs_of_64()) {
    const Topology topology(graph.graph, kModel);
    SCOPED_TRACE(graph.name);
    const Problem problem = problem_of_bytes(GetParam(), 64, kBytes);
    double rate = 0;
    switch (GetParam()) {
      case Operation::all_reduce:
        rate = fabric::tree_rate(graph.graph).value();
        break;
      case Operation::reduce_scatter:
      case Operation::all_gather:
        rate = fabric::shard_rate(graph.graph).value() * 64;
        break;
      case Operation::broadcast:
      case Operation::reduce:
        rate = fabric::rate_from(graph.graph, problem.root).value();
        break;
      case Operation::gather:
      case Operation::scatter:
        rate = static_cast<double>(topology.neighbours()[problem.root].size()) * 64 / 63;
        break;
      default:
        FAIL() << "no schedule reaches a bound";
    }
    const double bound_us = static_cast<double>(kBytes) / (rate * kModel.bytes_per_us);
    const Choice best = choose(problem, topology, {}).front();
    const Times times = timed(best.name, problem, topology, build(best.name, problem, topology, {}), {});
    EXPECT_GE(times.time_us, bound_us * 0.9999) << best.name;
    EXPECT_LE(times.time_us, bound_us / 0.95) << best.name;
    EXPECT_NEAR(times.predicted_us, times.time_us, times.time_us * 0.15) << best.name;
  }
}

/// By whole or half cables, since all of the rate would take hundreds of trees.
TEST(LongAllReduceOn81To256Ranks, is_near_the_bound) {
#ifndef NDEBUG
  GTEST_SKIP() << "takes minutes without optimisation";
#endif
  constexpr uint64_t kBytes = uint64_t{512} << 20;
  for (const NamedGraph& graph :
       {NamedGraph{"torus:16x16", fabric::torus({16, 16})}, NamedGraph{"torus:9x9", fabric::torus({9, 9})},
        NamedGraph{"hypercube:7", fabric::hypercube(7)}}) {
    SCOPED_TRACE(graph.name);
    const Topology topology(graph.graph, kModel);
    const Problem problem = problem_of_bytes(Operation::all_reduce, graph.graph.n_nodes, kBytes);
    const double bound_us =
        static_cast<double>(kBytes) / (fabric::tree_rate(graph.graph).value() * kModel.bytes_per_us);
    const Choice best = choose(problem, topology, {}).front();
    EXPECT_EQ(best.name, "trees");
    const Times times = passes(best.name, problem, topology);
    EXPECT_GE(times.time_us, bound_us * 0.9999);
    EXPECT_LE(times.time_us, bound_us / 0.93);
    EXPECT_NEAR(times.predicted_us, times.time_us, times.time_us * 0.15);
  }
}

INSTANTIATE_TEST_SUITE_P(Scale, On64Ranks, testing::ValuesIn(kOperations), testing::PrintToStringParamName());

INSTANTIATE_TEST_SUITE_P(Scale, LongVectorsOn64Ranks,
                         testing::Values(Operation::all_reduce, Operation::reduce_scatter, Operation::all_gather,
                                         Operation::broadcast, Operation::reduce, Operation::gather,
                                         Operation::scatter),
                         testing::PrintToStringParamName());

/// What is run on 1,024 ranks, with `bytes` in all.
struct Case {
  Operation operation;
  const char* graph;
  fabric::Graph (*make)();
  Names names;
  uint64_t bytes = 1024 * 64;
};
void PrintTo(const Case& one, std::ostream* out) { *out << operation_text(one.operation) << "_on_" << one.graph; }

fabric::Graph ring_of_1024() { return fabric::ring(1024); }
fabric::Graph torus_of_1024() { return fabric::torus({32, 32}); }
fabric::Graph hypercube_of_1024() { return fabric::hypercube(10); }

class On1024Ranks : public testing::TestWithParam<Case> {};

TEST_P(On1024Ranks, schedules_pass) {
#ifndef NDEBUG
  GTEST_SKIP() << "takes minutes without optimisation";
#endif
  const Topology topology(GetParam().make(), kModel);
  const Problem problem = problem_of_bytes(GetParam().operation, 1024, GetParam().bytes);
  ASSERT_FALSE(GetParam().names.empty());
  const Names known = candidates(problem, topology);
  for (const std::string& name : GetParam().names) {
    ASSERT_THAT(known, testing::Contains(name));
    const Times times = passes(name, problem, topology);
    expect_within_a_factor_of_two(times, name);
    if (name == "ring") {  // a shard is one chunk
      const double n_hops = GetParam().operation == Operation::all_reduce ? 2 * 1023 : 1023;
      const double formula_us = n_hops * (10 + static_cast<double>(GetParam().bytes) / 1024 / 5000);
      EXPECT_NEAR(times.time_us, formula_us, formula_us * 0.01);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Scale, On1024Ranks,
    testing::Values(
        Case{Operation::all_reduce, "ring", ring_of_1024, {"ring", "chain", "tree", "doubling"}},
        Case{Operation::all_reduce, "hypercube", hypercube_of_1024, {"halving", "doubling", "tree", "double_tree"}},
        Case{Operation::all_reduce, "torus", torus_of_1024, {"doubling", "tree", "double_tree", "chain"}},
        Case{Operation::reduce_scatter, "ring", ring_of_1024, {"ring"}},
        Case{Operation::all_gather, "ring", ring_of_1024, {"ring"}},
        Case{Operation::broadcast, "torus", torus_of_1024, {"direct", "tree", "trees"}},
        Case{Operation::reduce, "torus", torus_of_1024, {"direct", "chain", "tree", "trees"}},
        Case{Operation::gather, "torus", torus_of_1024, {"direct", "path_trees"}},
        Case{Operation::scatter, "torus", torus_of_1024, {"direct", "path_trees"}},
        Case{Operation::all_to_all, "hypercube", hypercube_of_1024, {"direct"}, 1024 * 1024 * 8},
        Case{Operation::barrier, "torus", torus_of_1024, {"tree", "dissemination"}},
        Case{Operation::barrier, "ring", ring_of_1024, {"tree", "dissemination"}}),
    testing::PrintToStringParamName());

}  // namespace
}  // namespace ringbolt::collective
