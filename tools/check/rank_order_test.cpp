#include "check/rank_order.h"

#include <algorithm>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ringbolt::tools::check {
namespace {

using bootstrap::Environment;
using testing::ElementsAre;

TEST(RankOrder, is_one_of_all_ranks_and_depends_on_the_seed) {
  std::set<std::vector<uint32_t>> seen;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    std::vector<uint32_t> ranks = rank_order(seed, 4);
    EXPECT_EQ(ranks, rank_order(seed, 4));
    seen.insert(ranks);
    std::sort(ranks.begin(), ranks.end());
    EXPECT_THAT(ranks, ElementsAre(0, 1, 2, 3));
  }
  EXPECT_EQ(seen.size(), 24U);  // of 24
  EXPECT_THAT(rank_order(7, 1), ElementsAre(0));
}

TEST(RankOrder, gives_every_node_its_rank) {
  const std::vector<uint32_t> ranks = rank_order(5, 3);
  for (uint32_t node = 0; node < 3; ++node) {
    const auto with = with_rank_order({{"RINGBOLT_NODE", std::to_string(node)}, {"RINGBOLT_NODES", "3"}}, 5);
    ASSERT_TRUE(with);
    EXPECT_EQ(with->at("RINGBOLT_RANK"), std::to_string(ranks[node]));
    EXPECT_EQ(with->at("RINGBOLT_WORLD_SIZE"), "3");
    EXPECT_FALSE(with->contains("RINGBOLT_MEETING_HOST"));
  }
}

TEST(RankOrder, has_namespaces_meet_at_rank_0) {
  uint64_t seed = 0;
  while (rank_order(seed, 3)[2] != 0) {
    ++seed;
  }
  const auto with =
      with_rank_order({{"RINGBOLT_NODE", "1"}, {"RINGBOLT_NODES", "3"}, {"RINGBOLT_MEETING_HOST", "10.76.0.1"}}, seed);
  ASSERT_TRUE(with);
  EXPECT_EQ(with->at("RINGBOLT_MEETING_HOST"), "10.76.0.3");
}

TEST(RankOrder, leaves_alone_what_others_have_ordered) {
  const Environment node{{"RINGBOLT_NODE", "1"}, {"RINGBOLT_NODES", "3"}};
  EXPECT_TRUE(with_rank_order(node, 1));
  for (const auto& [name, value] : Environment{{"RINGBOLT_RANK", "1"},
                                               {"RINGBOLT_COORDINATOR", "10.0.0.1:4000"},
                                               {"RINGBOLT_NODE", "x"},
                                               {"RINGBOLT_NODES", "1"}}) {
    Environment other = node;
    other[name] = value;
    EXPECT_FALSE(with_rank_order(other, 1)) << name;
  }
  EXPECT_FALSE(with_rank_order({{"RINGBOLT_NODE", "1"}}, 1));
}

}  // namespace
}  // namespace ringbolt::tools::check
