#include "collective/simulate.h"

#include <gtest/gtest.h>

#include "collective/builder.h"
#include "collective/cost.h"
#include "collective/problems_test_support.h"
#include "fabric/bounds.h"

namespace ringbolt::collective {
namespace {

constexpr CostModel kModel{10, 5000, 0};

Simulated simulated(const std::string& name, const Problem& problem, const Topology& topology,
                    const Limits& limits = {}) {
  const auto result = simulate(build(name, problem, topology, limits), problem, topology);
  EXPECT_TRUE(result) << name << ", " << text_of(problem) << ": " << (result ? "" : result.error());
  return result.value_or(Simulated{});
}

TEST(Simulate, times_a_chunk_by_hand) {
  const Topology line(fabric::line(3), kModel);
  const Problem problem = problem_of(Operation::broadcast, 3, 5000, 1);
  // 1 us over each cable and 10 us each.
  const Simulated result = simulated("tree", problem, line);
  EXPECT_DOUBLE_EQ(result.time_us, 11);  // from the centre... of the root 0: two hops
}

TEST(Simulate, packed_trees_reach_the_bounds) {
  for (const fabric::GoldenGraph& golden : fabric::golden_graphs()) {
    const Topology topology(golden.graph, kModel);
    const uint32_t n = golden.graph.n_nodes;
    const uint64_t bytes = uint64_t{64} << 20;
    const auto efficiency = [&](Operation operation, const fabric::Fraction& rate, uint64_t share) {
      const Problem problem = problem_of(operation, n, share / 4, 4);
      const double bound_us = static_cast<double>(bytes) / (rate.value() * kModel.bytes_per_us);
      return bound_us / simulated("trees", problem, topology).time_us;
    };
    printf("%-24s all_reduce %.3f all_gather %.3f reduce_scatter %.3f broadcast %.3f reduce %.3f\n",
           golden.name.c_str(), efficiency(Operation::all_reduce, golden.tree_rate, bytes),
           efficiency(Operation::all_gather, golden.shard_rate * fabric::Fraction(n), bytes / n),
           efficiency(Operation::reduce_scatter, golden.shard_rate * fabric::Fraction(n), bytes / n),
           efficiency(Operation::broadcast, fabric::rate_from(golden.graph, 0), bytes),
           efficiency(Operation::reduce, fabric::rate_from(golden.graph, 0), bytes));
    fflush(stdout);
  }
}

TEST(Predict, explore) {
  for (const NamedGraph& graph : usual_graphs()) {
    const Topology topology(graph.graph, kModel);
    if (topology.n_ranks() == 1) continue;
    for (const Operation operation : kOperations) {
      for (const uint64_t bytes : {uint64_t{64}, uint64_t{65536}, uint64_t{1} << 20, uint64_t{64} << 20}) {
        const uint64_t n = topology.n_ranks();
        const bool one =
            operation == Operation::all_reduce || operation == Operation::broadcast || operation == Operation::reduce;
        const Problem problem = problem_of(operation, topology.n_ranks(),
                                           (one                                  ? bytes
                                            : operation == Operation::all_to_all ? bytes / n / n
                                                                                 : bytes / n) /
                                               4,
                                           4);
        for (const std::string& name : candidates(problem, topology)) {
          const double p = predict_us(name, problem, topology, {});
          const double t = simulated(name, problem, topology).time_us;
          printf("X %s %s %s %zu %.1f %.1f %.3f\n", name.c_str(), operation_text(operation), graph.name.c_str(), bytes,
                 p, t, p / t);
        }
      }
    }
  }
}

}  // namespace
}  // namespace ringbolt::collective
