#include "collective/builder.h"

#include <algorithm>
#include <bit>
#include <set>

#include <gtest/gtest.h>

#include "collective/check.h"
#include "collective/problems_test_support.h"
#include "collective/tree_schedules.h"

namespace ringbolt::collective {
namespace {

void expect_all_pass(const NamedGraph& graph, const Topology& topology, const Problem& problem, const Limits& limits) {
  const std::vector<std::string> names = candidates(problem, topology);
  EXPECT_FALSE(names.empty());
  for (const std::string& name : names) {
    const Schedule schedule = build(name, problem, topology, limits);
    const auto checked = check(schedule, problem, graph.graph, limits);
    EXPECT_TRUE(checked) << name << " on " << graph.name << ", " << text_of(problem) << ": "
                         << (checked ? "" : checked.error());
  }
}

/// Every size that can go wrong: none, one, one too few, one for each, primes, several chunks.
class EveryOperation : public testing::TestWithParam<Operation> {};

TEST_P(EveryOperation, passes_the_check_on_every_graph) {
  for (const NamedGraph& graph : usual_graphs()) {
    const Topology topology(graph.graph);
    const uint32_t n = topology.n_ranks();
    for (const uint64_t n_elements : std::set<uint64_t>{0, 1, n - 1, n, 13, 1009}) {
      for (const bool are_uneven : {false, true}) {
        expect_all_pass(graph, topology, problem_of(GetParam(), n, n_elements, 4, n / 2, are_uneven), {1024});
      }
    }
  }
}

TEST_P(EveryOperation, passes_the_check_with_every_element_size) {
  for (const NamedGraph& graph : usual_graphs()) {
    const Topology topology(graph.graph);
    for (const uint32_t element_bytes : {1u, 2u, 8u}) {
      expect_all_pass(graph, topology, problem_of(GetParam(), topology.n_ranks(), 211, element_bytes, 0, true), {256});
    }
  }
}

class EveryRootedOperation : public testing::TestWithParam<Operation> {};

TEST_P(EveryRootedOperation, passes_the_check_with_every_root) {
  for (const NamedGraph& graph : usual_graphs()) {
    const Topology topology(graph.graph);
    for (uint32_t root = 0; root < topology.n_ranks(); ++root) {
      expect_all_pass(graph, topology, problem_of(GetParam(), topology.n_ranks(), 101, 4, root, true), {128});
    }
  }
}

TEST_P(EveryOperation, keeps_to_chunks_of_the_limit) {
  const NamedGraph graph{"ring:4", fabric::ring(4)};
  const Topology topology(graph.graph);
  for (const uint32_t most : {8u, 4096u, 65536u}) {
    expect_all_pass(graph, topology, problem_of(GetParam(), 4, uint64_t{most} / 8 * 7 + 1, 8), {most});
  }
}

TEST_P(EveryOperation, has_a_rank_ordered_schedule) {
  for (const NamedGraph& graph : usual_graphs()) {
    const Topology topology(graph.graph);
    Problem problem = problem_of(GetParam(), topology.n_ranks(), 10, 4);
    problem.needs_rank_order = true;
    const std::vector<std::string> names = candidates(problem, topology);
    EXPECT_FALSE(names.empty());
    for (const std::string& name : names) {
      EXPECT_TRUE(build(name, problem, topology, {}).is_rank_ordered) << name;
    }
  }
}

TEST_P(EveryOperation, is_built_of_few_steps) {
  for (const fabric::Graph& graph : {fabric::torus({4, 4}), fabric::full_mesh(16), fabric::ring(16)}) {
    const Topology topology(graph);
    const Problem problem = problem_of(GetParam(), 16, 1'000'000, 4);
    for (const std::string& name : candidates(problem, topology)) {
      for (const Program& program : build(name, problem, topology, {}).programs) {
        EXPECT_LE(program.steps.size(), 150u) << name;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Builder, EveryOperation, testing::ValuesIn(kOperations), testing::PrintToStringParamName());

INSTANTIATE_TEST_SUITE_P(Builder, EveryRootedOperation,
                         testing::Values(Operation::broadcast, Operation::reduce, Operation::gather,
                                         Operation::scatter),
                         testing::PrintToStringParamName());

TEST(Builder, builds_for_one_rank_what_it_builds_for_all) {
  const Topology topology(fabric::petersen());
  const Problem problem = problem_of(Operation::all_reduce, 10, 1000, 4);
  for (const std::string& name : candidates(problem, topology)) {
    const Schedule schedule = build(name, problem, topology, {});
    EXPECT_EQ(schedule.name, name);
    for (uint32_t rank = 0; rank < 10; ++rank) {
      EXPECT_EQ(schedule.programs[rank], build_for(name, problem, topology, {}, rank)) << name;
    }
  }
}

TEST(Builder, lists_names_once) {
  const std::vector<std::string> names = schedule_names();
  EXPECT_EQ((std::set<std::string>(names.begin(), names.end()).size()), names.size());
}

TEST(Builder, finds_a_use_for_every_schedule) {
  std::set<std::string> used;
  for (const Operation operation : kOperations) {
    for (const fabric::Graph& graph : {fabric::ring(5), fabric::torus({4, 4}), fabric::full_mesh(2)}) {
      const std::vector<std::string> names = candidates(problem_of(operation, graph.n_nodes, 5, 4), Topology(graph));
      used.insert(names.begin(), names.end());
    }
  }
  const std::vector<std::string> names = schedule_names();
  EXPECT_EQ(used, std::set<std::string>(names.begin(), names.end()));
}

TEST(Builder, direct_all_reduce_carries_least_bytes_on_a_mesh) {
  const Topology topology(fabric::full_mesh(4));
  const Problem problem = problem_of(Operation::all_reduce, 4, 1000, 4);
  const Schedule direct = build("direct", problem, topology, {});
  const auto checked = check(direct, problem, topology.graph(), {});
  ASSERT_TRUE(checked) << checked.error();
  EXPECT_EQ(checked->transfer_bytes, 2u * 3 * 4000);  // 2 (N - 1) M: Patarasuk and Yuan 2009
  const auto exchange = check(build("exchange", problem, topology, {}), problem, topology.graph(), {});
  ASSERT_TRUE(exchange) << exchange.error();
  EXPECT_EQ(exchange->transfer_bytes, 4u * 3 * 4000);
}

TEST(Builder, barrier_takes_rounds_of_the_logarithm) {
  for (const auto& [n_ranks, n_steps] :
       std::vector<std::pair<uint32_t, size_t>>{{1, 0}, {2, 2}, {5, 4}, {8, 4}, {9, 5}}) {
    const Topology topology(fabric::full_mesh(n_ranks));
    const Problem problem = problem_of(Operation::barrier, n_ranks, 0, 1);
    EXPECT_EQ(build("dissemination", problem, topology, {}).programs[0].steps.size(), n_steps) << n_ranks;
  }
}

/// Bytes that transfers carry; the schedule must pass the check.
uint64_t transfer_bytes(const std::string& name, const fabric::Graph& graph, const Problem& problem) {
  const Topology topology(graph);
  const auto checked = check(build(name, problem, topology, {}), problem, graph, {});
  EXPECT_TRUE(checked) << name << ": " << (checked ? "" : checked.error());
  return checked ? checked->transfer_bytes : 0;
}

TEST(Builder, all_reduce_of_long_vectors_carries_least_bytes) {
  const Problem problem = problem_of(Operation::all_reduce, 8, 1000, 4);
  const fabric::Graph cube = fabric::hypercube(3);
  for (const char* name : {"direct", "chain", "tree", "double_tree", "ring", "two_way_ring", "halving", "trees"}) {
    EXPECT_EQ(transfer_bytes(name, cube, problem), 2u * 7 * 4000) << name;  // 2 (N - 1) M
  }
  EXPECT_EQ(transfer_bytes("doubling", cube, problem), 3u * 8 * 4000);
}

TEST(Builder, two_trees_share_the_work) {
  for (uint32_t n_ranks = 3; n_ranks <= 40; ++n_ranks) {
    const Topology topology(fabric::full_mesh(n_ranks));
    const std::vector<TreePart> trees = two_trees(problem_of(Operation::all_reduce, n_ranks, 1000, 4), topology, {});
    ASSERT_EQ(trees.size(), 2u);
    std::vector<uint32_t> n_inner(n_ranks);
    for (const TreePart& tree : trees) {
      EXPECT_LE(levels_of(topology, tree), std::bit_width(n_ranks)) << n_ranks;
      std::vector<uint32_t> n_children(n_ranks);
      for (uint32_t rank = 0; rank < n_ranks; ++rank) {
        if (tree.parents[rank] != Topology::kNoParent) {
          EXPECT_LE(++n_children[tree.parents[rank]], 2u) << n_ranks;
        }
      }
      for (uint32_t rank = 0; rank < n_ranks; ++rank) {
        n_inner[rank] += n_children[rank] > 0 ? 1u : 0u;
      }
    }
    EXPECT_EQ(std::ranges::count(n_inner, 2u), n_ranks % 2 == 0 ? 0 : 1) << n_ranks;
  }
}

TEST(Candidates, no_rounded_sums_are_passed_on_in_order) {
  const Topology topology(fabric::ring(4));
  Problem problem = problem_of(Operation::all_reduce, 4, 100, 2);
  problem.needs_rank_order = true;
  const auto has_chain = [&] {
    const auto names = candidates(problem, topology);
    return std::find(names.begin(), names.end(), "chain") != names.end();
  };
  EXPECT_TRUE(has_chain());
  problem.rounds_partials = true;
  EXPECT_FALSE(has_chain());
  problem.needs_rank_order = false;
  EXPECT_TRUE(has_chain());
}

}  // namespace
}  // namespace ringbolt::collective
