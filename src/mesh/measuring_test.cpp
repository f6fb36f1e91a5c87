#include "mesh/measuring.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "engine/loop_fabric_test_support.h"
#include "fabric/builders.h"

namespace ringbolt::mesh {
namespace {

using engine::test::LoopFabric;

/// All ranks of a fabric in this thread.
struct Ranks {
  explicit Ranks(const std::vector<engine::FabricCable>& cables, uint32_t n) : fabric(n, cables) {
    fabric::Graph graph{n, {}};
    for (const engine::FabricCable& cable : cables) {
      fabric::join(graph, cable.a, cable.b);
    }
    const auto neighbours = fabric::neighbours(graph);
    for (uint32_t rank = 0; rank < n; ++rank) {
      ranks.push_back(std::make_unique<Measuring>(fabric.engine(rank), rank, neighbours[rank]));
    }
  }
  bool run(uint64_t most_ns = 10'000'000'000) {
    for (auto& rank : ranks) {
      rank->start();
    }
    const uint64_t end_ns = base::now_ns() + most_ns;
    const auto is_done = [](const auto& rank) { return rank->is_done(); };
    while (!std::ranges::all_of(ranks, is_done)) {
      if (base::now_ns() >= end_ns) {
        return false;
      }
      for (auto& rank : ranks) {
        rank->progress(base::now_ns());
      }
    }
    return true;
  }

  LoopFabric fabric;
  std::vector<std::unique_ptr<Measuring>> ranks;
};

TEST(Measuring, measures_every_cable_from_both_ends) {
  Ranks ring({{0, 1}, {1, 2}, {0, 2}}, 3);
  ASSERT_TRUE(ring.run());
  for (const auto& rank : ring.ranks) {
    ASSERT_EQ(rank->figures().size(), 2U);
    for (const LinkFigures& link : rank->figures()) {
      EXPECT_LT(link.a, link.b);
      EXPECT_GT(link.latency_ns, 0U);
      EXPECT_GT(link.bytes_per_ms, 0U);
    }
  }
}

TEST(Measuring, rails_are_one_link) {
  Ranks rails({{0, 1}, {0, 1}}, 2);
  ASSERT_TRUE(rails.run());
  EXPECT_EQ(rails.ranks[0]->figures().size(), 1U);
}

TEST(Measuring, a_neighbour_that_says_nothing_leaves_zeros) {
  Ranks pair({{0, 1}}, 2);
  pair.ranks[0]->start();
  EXPECT_FALSE(pair.ranks[0]->is_done());
  EXPECT_EQ(pair.ranks[0]->figures(), (std::vector<LinkFigures>{{0, 1, 0, 0}}));
}

TEST(Measuring, merges_both_ends) {
  EXPECT_EQ(merged({{{0, 1, 4000, 100}}, {{0, 1, 3000, 300}, {1, 2, 0, 0}}, {{1, 2, 7000, 50}}}),
            (std::vector<LinkFigures>{{0, 1, 3000, 200}, {1, 2, 7000, 50}}));
  EXPECT_EQ(merged({{}, {}}), std::vector<LinkFigures>{});
}

TEST(MeasuredModel, is_nominal_where_nothing_was_measured) {
  const MeasuredModel model = model_of({{0, 1, 0, 0}}, fabric::line(2));
  EXPECT_EQ(model.model, fabric::CostModel{});
  EXPECT_EQ(model.n_links, 0U);
  EXPECT_EQ(model.thinner, std::vector<uint32_t>{1});
}

TEST(MeasuredModel, what_differs_a_little_from_run_to_run_is_the_same) {
  const fabric::Graph ring = fabric::ring(3);
  const MeasuredModel one = model_of({{0, 1, 4000, 4'000'000}, {0, 2, 4100, 4'100'000}, {1, 2, 9000, 3'000'000}}, ring);
  const MeasuredModel two = model_of({{0, 1, 4300, 3'900'000}, {0, 2, 3900, 5'000'000}, {1, 2, 3500, 4'400'000}}, ring);
  EXPECT_EQ(one.model, two.model);
  EXPECT_EQ(one.thinner, two.thinner);
  EXPECT_NEAR(one.model.latency_us, 4.1, 1);
  EXPECT_NEAR(one.model.bytes_per_us, 4000, 1000);
}

TEST(MeasuredModel, sees_a_cable_that_is_far_slower_than_its_device_says) {
  const MeasuredModel model =
      model_of({{0, 1, 4000, 4'000'000}, {0, 2, 4000, 400'000}, {1, 2, 4000, 4'000'000}}, fabric::ring(3));
  EXPECT_EQ(model.thinner.size(), 3U);
  const fabric::Graph ring = fabric::ring(3);
  for (size_t i = 0; i < 3; ++i) {
    const fabric::Cable& cable = ring.cables[i];
    EXPECT_EQ(model.thinner[i], cable.a == 0 && cable.b == 2 ? 12U : 1U);
  }
}

TEST(MeasuredModel, nominal_rates_count) {
  // A fat cable that is ten times as fast as the others is as it should be.
  fabric::Graph graph{3, {}};
  fabric::join(graph, 0, 1, 10);
  fabric::join(graph, 0, 2, 1);
  fabric::join(graph, 1, 2, 1);
  const MeasuredModel model =
      model_of({{0, 1, 4000, 10'000'000}, {0, 2, 4000, 1'000'000}, {1, 2, 4000, 1'000'000}}, graph);
  EXPECT_EQ(model.thinner, (std::vector<uint32_t>{1, 1, 1}));
}

TEST(MeasuredModel, survives_what_makes_no_sense) {
  const MeasuredModel model = model_of(
      merged({{{0, 1, 1, UINT64_MAX}, {0, 7, 1, 1}, {0, 2, UINT64_MAX, 1}}, {{0, 1, 1, UINT64_MAX}}}), fabric::star(3));
  EXPECT_GT(model.model.bytes_per_us, 0);
  for (const uint32_t thinner : model.thinner) {
    EXPECT_TRUE(thinner >= 1 && thinner <= 64);
  }
}

}  // namespace
}  // namespace ringbolt::mesh
