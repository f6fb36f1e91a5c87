#include "collective/cost.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "collective/builder.h"
#include "collective/estimate.h"
#include "collective/problems_test_support.h"
#include "collective/simulate.h"

namespace ringbolt::collective {
namespace {

constexpr CostModel kModel{10, 5000, 0, 0};

/// A call with about `bytes` in all.
Problem problem_of_bytes(Operation operation, uint64_t n, uint64_t bytes) {
  const bool has_one_share =
      operation == Operation::all_reduce || operation == Operation::broadcast || operation == Operation::reduce;
  const uint64_t share = has_one_share ? bytes : operation == Operation::all_to_all ? bytes / n / n : bytes / n;
  return problem_of(operation, static_cast<uint32_t>(n), share / 4, 4);
}

double simulated_us(const std::string& name, const Problem& problem, const Topology& topology) {
  const auto result = simulate(build(name, problem, topology, {}), problem, topology);
  EXPECT_TRUE(result) << name << ", " << text_of(problem) << ": " << (result ? "" : result.error());
  return result ? result->time_us : 0;
}

template <class Test>
void for_all_graphs(const std::vector<uint64_t>& sizes, const Test& test) {
  for (const NamedGraph& graph : usual_graphs()) {
#ifndef NDEBUG
    if (graph.graph.n_nodes > 5) {
      continue;  // minutes under a sanitizer
    }
#endif
    const Topology topology(graph.graph, kModel);
    for (const Operation operation : kOperations) {
      for (const uint64_t bytes : sizes) {
        if (topology.n_ranks() > 1) {
          test(graph, topology, problem_of_bytes(operation, topology.n_ranks(), bytes));
        }
      }
    }
  }
}

TEST(Predict, is_within_5_percent_for_long_vectors) {
  for_all_graphs({uint64_t{128} << 20}, [](const NamedGraph& graph, const Topology& topology, const Problem& problem) {
    for (const std::string& name : candidates(problem, topology)) {
      if (name != "halving" && problem.operation != Operation::barrier) {
        const double ratio = predict_us(name, problem, topology, {}) / simulated_us(name, problem, topology);
        EXPECT_GE(ratio, 0.95) << name << " on " << graph.name << ", " << text_of(problem);
        EXPECT_LE(ratio, 1.05) << name << " on " << graph.name << ", " << text_of(problem);
      }
    }
  });
}

TEST(Predict, is_within_a_factor_of_two_for_short_vectors) {
  for_all_graphs({1024u, 65536u, 1u << 20},
                 [](const NamedGraph& graph, const Topology& topology, const Problem& problem) {
                   for (const std::string& name : candidates(problem, topology)) {
                     const double predicted_us = predict_us(name, problem, topology, {});
                     const double us = simulated_us(name, problem, topology);
                     EXPECT_GE(predicted_us, us * 0.6) << name << " on " << graph.name << ", " << text_of(problem);
                     EXPECT_LE(predicted_us, us * 2.1) << name << " on " << graph.name << ", " << text_of(problem);
                   }
                 });
}

TEST(Choose, takes_what_is_no_more_than_a_third_slower_than_the_best) {
  for_all_graphs({1024u, 65536u, 1u << 20, 16u << 20},
                 [](const NamedGraph& graph, const Topology& topology, const Problem& problem) {
                   double best_us = 1e300;
                   for (const std::string& name : candidates(problem, topology)) {
                     best_us = std::min(best_us, simulated_us(name, problem, topology));
                   }
                   const std::string name = choose(problem, topology, {}).front().name;
                   EXPECT_LE(simulated_us(name, problem, topology), best_us * 4 / 3)
                       << name << " on " << graph.name << ", " << text_of(problem);
                 });
}

TEST(Predict, knows_what_ranks_relay) {
  for_all_graphs({uint64_t{1} << 20}, [](const NamedGraph& graph, const Topology& topology, const Problem& problem) {
    for (const std::string& name : candidates(problem, topology)) {
      double relayed = 0;
      for (const Program& program : build(name, problem, topology, {}).programs) {
        for (const Step& step : program.steps) {
          for (const Target& target : step.targets) {
            relayed += static_cast<double>(step.bytes * target.via.size());
          }
        }
      }
      const double mean = relayed / topology.n_ranks();
      EXPECT_NEAR(estimate(name, problem, topology, {}).relayed_bytes, mean, mean * 0.05 + 100)
          << name << " on " << graph.name << ", " << text_of(problem);
    }
  });
}

TEST(Predict, knows_what_ranks_add_up) {
  for_all_graphs({uint64_t{1} << 20}, [](const NamedGraph& graph, const Topology& topology, const Problem& problem) {
    for (const std::string& name : candidates(problem, topology)) {
      double added = 0;
      for (const Program& program : build(name, problem, topology, {}).programs) {
        for (const Step& step : program.steps) {
          added += static_cast<double>(step.bytes) * (static_cast<double>(step.sources.size()) - 1);
        }
      }
      const double mean = added / topology.n_ranks();
      EXPECT_NEAR(estimate(name, problem, topology, {}).added_bytes, mean, mean * 0.01 + 100)
          << name << " on " << graph.name << ", " << text_of(problem);
    }
  });
}

TEST(Choose, adds_up_once_where_that_costs) {
  CostModel model = kModel;
  model.latency_us = 0.5;
  model.bytes_per_us = 250'000;
  Problem problem = problem_of_bytes(Operation::all_reduce, 2, 1 << 20);
  problem.needs_rank_order = true;
  EXPECT_EQ(choose(problem, Topology(fabric::line(2), model), {}).front().name, "exchange");
  model.add_bytes_per_us = 20'000;
  EXPECT_EQ(choose(problem, Topology(fabric::line(2), model), {}).front().name, "direct");
}

TEST(Choose, avoids_relays_where_they_cost) {
  CostModel model = kModel;
  Problem problem = problem_of_bytes(Operation::all_reduce, 4, 1 << 20);
  problem.needs_rank_order = true;
  EXPECT_EQ(choose(problem, Topology(fabric::ring(4), model), {}).front().name, "direct_tree");
  model.relay_bytes_per_us = 2000;
  EXPECT_EQ(choose(problem, Topology(fabric::ring(4), model), {}).front().name, "chain");
}

TEST(Choose, lists_all_candidates_the_fastest_first) {
  const Topology topology(fabric::torus({3, 3}), kModel);
  const Problem problem = problem_of(Operation::all_reduce, 9, 1000, 4);
  const std::vector<Choice> choices = choose(problem, topology, {});
  EXPECT_EQ(choices.size(), candidates(problem, topology).size());
  EXPECT_TRUE(std::ranges::is_sorted(choices, {}, &Choice::predicted_us));
  EXPECT_FALSE(choices.front().why.empty());
}

TEST(Choose, keeps_the_order_of_ranks_if_it_must) {
  for (const uint64_t n_elements : {0u, 1000u, 10'000'000u}) {
    const Topology topology(fabric::line(8), kModel);
    Problem problem = problem_of(Operation::all_reduce, 8, n_elements, 4);
    problem.needs_rank_order = true;
    for (const Choice& choice : choose(problem, topology, {})) {
      EXPECT_TRUE(is_rank_ordered(choice.name, problem)) << choice.name;
    }
    if (n_elements == 10'000'000) {
      EXPECT_EQ(choose(problem, topology, {}).front().name, "chain");  // M / B, as no schedule can beat on a line
    }
  }
}

TEST(Choose, knows_where_exchange_meets_direct) {
  // On a mesh of N exchange costs one hop less: they meet at M = alpha B N / (N - 2).
  const Topology topology(fabric::full_mesh(4), kModel);
  const auto better = [&](uint64_t bytes) {
    const Problem problem = problem_of(Operation::all_reduce, 4, bytes / 4, 4);
    return predict_us("exchange", problem, topology, {1 << 20}) < predict_us("direct", problem, topology, {1 << 20})
               ? "exchange"
               : "direct";
  };
  EXPECT_STREQ(better(50'000), "exchange");
  EXPECT_STREQ(better(200'000), "direct");
}

TEST(Choose, has_one_for_a_single_rank) {
  const Topology topology(fabric::Graph{1}, kModel);
  for (const Operation operation : kOperations) {
    EXPECT_EQ(choose(problem_of(operation, 1, 10, 4), topology, {}).size(), 1u) << operation_text(operation);
  }
}

}  // namespace
}  // namespace ringbolt::collective
