#include "collective/simulate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collective/builder.h"
#include "collective/cost.h"
#include "collective/problems_test_support.h"
#include "collective/steps.h"
#include "fabric/bounds.h"

namespace ringbolt::collective {
namespace {

using testing::HasSubstr;

constexpr CostModel kModel{10, 5000, 0};

Simulated simulated(const std::string& name, const Problem& problem, const Topology& topology,
                    const Limits& limits = {}) {
  const auto result = simulate(build(name, problem, topology, limits), problem, topology);
  EXPECT_TRUE(result) << name << ", " << text_of(problem) << ": " << (result ? "" : result.error());
  return result.value_or(Simulated{});
}

TEST(Simulate, times_chunks_by_hand) {
  const Topology line(fabric::line(3), kModel);
  // 1 us over a cable, and 10 us until it is there; two cables.
  const Problem one = problem_of(Operation::broadcast, 3, 5000, 1);
  EXPECT_DOUBLE_EQ(simulated("tree", one, line).time_us, 22);
  // Two chunks: the second follows as far behind as it takes to send one.
  const Problem two = problem_of(Operation::broadcast, 3, 10240, 1);
  EXPECT_NEAR(simulated("tree", two, line, {5120}).time_us, 2 * (10 + 1.024) + 1.024, 1e-9);
}

TEST(Simulate, shares_a_cable_in_turn) {
  const Topology star(fabric::star(3), kModel);
  const Problem problem = problem_of(Operation::gather, 3, 5000, 1, 1);
  // Rank 2's share is relayed by 0, whose cable to the root carries both: 11 us, then 1 us behind the other's.
  const Simulated result = simulated("direct", problem, star);
  EXPECT_DOUBLE_EQ(result.time_us, 22);
  EXPECT_EQ(result.most_bytes, 10000u);
  EXPECT_DOUBLE_EQ(result.busiest_us, 2);
  EXPECT_EQ(result.n_messages, 3u);
}

TEST(Simulate, counts_the_work_of_a_rank) {
  const Topology pair(fabric::line(2), {10, 5000, 3});
  const Problem problem = problem_of(Operation::broadcast, 2, 5000, 1);
  // Chunks of 3 us at the sender, 1 us and 10 us on the cable, 3 us at the receiver.
  EXPECT_DOUBLE_EQ(simulated("tree", problem, pair).time_us, 17);
}

TEST(Simulate, gives_the_same_twice) {
  const Topology topology(fabric::petersen(), kModel);
  const Problem problem = problem_of(Operation::all_to_all, 10, 10'000, 4);
  EXPECT_EQ(simulated("direct", problem, topology), simulated("direct", problem, topology));
}

TEST(Simulate, refuses_what_waits_for_ever) {
  const Topology pair(fabric::line(2), kModel);
  const Problem problem = problem_of(Operation::barrier, 2, 0, 1);
  Schedule schedule = build("dissemination", problem, pair, {});
  for (Program& program : schedule.programs) {  // each listens before it speaks
    program.steps[0].sources.push_back(program.steps[1].sources[1]);
    program.steps.pop_back();
  }
  const auto result = simulate(schedule, problem, pair);
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error(), HasSubstr("waits for ever"));
}

TEST(Simulate, refuses_a_contribution_twice_or_missing) {
  const Topology ring(fabric::ring(4), kModel);
  const Problem problem = problem_of(Operation::all_reduce, 4, 100, 4);
  Schedule schedule = build("exchange", problem, ring, {});
  Step& sum = schedule.programs[2].steps[1];
  sum.sources.push_back(from_local(Buffer::input, 0, 0));
  const auto twice = simulate(schedule, problem, ring);
  ASSERT_FALSE(twice);
  EXPECT_THAT(twice.error(), HasSubstr("rank 2: a step adds up a rank twice"));
  sum.sources.pop_back();
  std::erase_if(sum.sources, [](const Source& source) { return source.kind == Source::Kind::local; });
  const auto missing = simulate(schedule, problem, ring);
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error(), HasSubstr("rank 2: 0 bytes have come from all, not 400"));
}

/// "The packed schedules reach the bounds within 5 %."
TEST(Simulate, packed_trees_reach_the_bounds) {
  constexpr uint64_t kBytes = uint64_t{128} << 20;
  for (const fabric::GoldenGraph& golden : fabric::golden_graphs()) {
    const Topology topology(golden.graph, kModel);
    const uint32_t n = golden.graph.n_nodes;
    const auto expect_near = [&](Operation operation, const fabric::Fraction& rate, uint64_t share) {
      const Problem problem = problem_of(operation, n, share / 4, 4, n - 1);
      const double bound_us = static_cast<double>(kBytes) / (rate.value() * kModel.bytes_per_us);
      const double time_us = simulated("trees", problem, topology).time_us;
      EXPECT_LE(time_us, bound_us / 0.95) << golden.name << ", " << operation_text(operation);
      EXPECT_GE(time_us, bound_us * 0.9999) << golden.name << ", " << operation_text(operation);
    };
    expect_near(Operation::all_reduce, golden.tree_rate, kBytes);
    expect_near(Operation::all_gather, golden.shard_rate * fabric::Fraction(n), kBytes / n);
    expect_near(Operation::reduce_scatter, golden.shard_rate * fabric::Fraction(n), kBytes / n);
    expect_near(Operation::broadcast, fabric::rate_from(golden.graph, n - 1), kBytes);
    expect_near(Operation::reduce, fabric::rate_from(golden.graph, n - 1), kBytes);
  }
}

/// All trees from one root of a mesh are known, whatever its size; without them the root would send all to each.
TEST(Simulate, broadcast_and_reduce_reach_the_bound_on_large_meshes) {
  constexpr uint64_t kBytes = uint64_t{256} << 20;
  for (const uint32_t n : {35u, 36u, 64u}) {
    const Topology topology(fabric::full_mesh(n), kModel);
    const double bound_us = static_cast<double>(kBytes) / (n - 1) / kModel.bytes_per_us;
    for (const Operation operation : {Operation::broadcast, Operation::reduce}) {
      const Problem problem = problem_of(operation, n, kBytes / 4, 4, n / 2);
      const Choice best = choose(problem, topology, {}).front();
      EXPECT_EQ(best.name, "trees") << text_of(problem);
      EXPECT_LE(best.predicted_us, bound_us * 1.2) << text_of(problem);
      EXPECT_GE(best.predicted_us, bound_us) << text_of(problem);
      EXPECT_LE(simulated(best.name, problem, topology).time_us, bound_us * 1.2) << text_of(problem);
    }
  }
}

/// Where packing all trees would take long, some are better than none.
TEST(Simulate, broadcast_takes_several_trees_on_a_large_mesh_that_has_lost_a_cable) {
  fabric::Graph graph = fabric::full_mesh(48);
  graph.cables.pop_back();
  const Topology topology(graph, kModel);
  const Problem problem = problem_of(Operation::broadcast, 48, 16 << 20, 4);
  const double tree_us = static_cast<double>(total_bytes(problem)) / kModel.bytes_per_us;
  EXPECT_LE(simulated("trees", problem, topology).time_us, tree_us / 8);
}

/// Equal splitting over shortest paths has the golden table's rates; ways that are chosen by load are as good.
TEST(Simulate, all_to_all_reaches_what_shortest_paths_allow) {
  constexpr uint64_t kShare = uint64_t{4} << 20;
  for (const fabric::GoldenGraph& golden : fabric::golden_graphs()) {
    const Topology topology(golden.graph, kModel);
    const Problem problem = problem_of(Operation::all_to_all, golden.graph.n_nodes, kShare / 4, 4);
    const std::vector<std::string> names = candidates(problem, topology);
    const double equal_us = static_cast<double>(kShare) / (golden.pair_rate.value() * kModel.bytes_per_us);
    EXPECT_LE(simulated(names.back(), problem, topology).time_us, equal_us / 0.85) << golden.name;
  }
}

/// Each of the root's cables carries its part, which no gather and no scatter can do without.
TEST(Simulate, path_trees_load_the_roots_cables_evenly) {
  constexpr uint64_t kShare = uint64_t{4} << 20;
  for (const fabric::Graph& graph : {fabric::ring(4), fabric::ring(6), fabric::torus({4, 4}), fabric::hypercube(4)}) {
    const Topology topology(graph, kModel);
    const uint32_t n = graph.n_nodes;
    const auto n_cables = static_cast<double>(topology.neighbours()[1].size());
    const double bound_us = static_cast<double>(kShare) * (n - 1) / (n_cables * kModel.bytes_per_us);
    for (const Operation operation : {Operation::gather, Operation::scatter}) {
      const Problem problem = problem_of(operation, n, kShare / 4, 4, 1);
      const double time_us = simulated("path_trees", problem, topology).time_us;
      EXPECT_LE(time_us, bound_us * 1.1) << n << " ranks, " << operation_text(operation);
      EXPECT_LE(time_us, simulated("direct", problem, topology).time_us * 1.001) << n << " ranks";
      EXPECT_NEAR(predict_us("path_trees", problem, topology, {}), time_us, time_us * 0.05) << n << " ranks";
    }
  }
}

TEST(Simulate, path_trees_are_a_third_faster_on_a_ring_of_four) {
  const Topology topology(fabric::ring(4), kModel);
  const Problem problem = problem_of(Operation::gather, 4, 1 << 20, 4, 2);
  EXPECT_GT(simulated("direct", problem, topology).time_us / simulated("path_trees", problem, topology).time_us, 1.3);
  EXPECT_EQ(choose(problem, topology, {}).front().name, "path_trees");
}

TEST(Simulate, ring_on_many_ranks_takes_what_its_formula_says) {
  constexpr uint32_t kRanks = 256;
  const Topology topology(fabric::ring(kRanks), kModel);
  const Problem problem = problem_of(Operation::all_reduce, kRanks, 1024 * kRanks, 4);
  // 2 (N - 1) (alpha + M / (N B)) if a shard is one chunk.
  EXPECT_NEAR(simulated("ring", problem, topology).time_us, 2 * (kRanks - 1) * (10 + 4096 / 5000.0), 1);
}

}  // namespace
}  // namespace ringbolt::collective
