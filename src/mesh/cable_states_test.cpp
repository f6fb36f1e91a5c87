#include "mesh/cable_states.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ringbolt::mesh {
namespace {

using ::testing::ElementsAre;

TEST(CableStates, what_has_been_seen_is_news_once) {
  CableStates states(2);
  EXPECT_FALSE(states.change(1, true));  // it was never down
  EXPECT_TRUE(states.change(1, false));
  EXPECT_FALSE(states.change(1, false));
  EXPECT_THAT(states.versions(), ElementsAre(0, 1));  // odd: down
  EXPECT_TRUE(states.change(1, true));
  EXPECT_THAT(states.versions(), ElementsAre(0, 2));
}

TEST(CableStates, only_newer_news_are_taken_over) {
  CableStates states(1);
  EXPECT_FALSE(states.hear({0, 0}));
  EXPECT_TRUE(states.hear({0, 3}));
  EXPECT_FALSE(states.hear({0, 3}));  // again
  EXPECT_FALSE(states.hear({0, 2}));  // past
  EXPECT_TRUE(states.hear({0, 4}));
  EXPECT_THAT(states.versions(), ElementsAre(4));
}

TEST(CableStates, versions_wrap) {
  CableStates states(1);
  EXPECT_TRUE(states.hear({0, 0x7000}));
  EXPECT_TRUE(states.hear({0, 0xd000}));
  EXPECT_TRUE(states.hear({0, 0xffff}));
  EXPECT_TRUE(states.change(0, true));
  EXPECT_THAT(states.versions(), ElementsAre(0));
  EXPECT_FALSE(states.hear({0, 0xffff}));  // is the one before, not the greatest
  EXPECT_TRUE(states.hear({0, 1}));
}

TEST(CableStates, of_a_cable_that_there_is_not_nothing_is_heard) {
  CableStates states(2);
  EXPECT_FALSE(states.hear({2, 1}));
  EXPECT_FALSE(states.hear({0xffff, 1}));
  EXPECT_FALSE(CableStates(0).hear({0, 1}));
}

TEST(CableStates, who_contradicts_has_newer_news) {
  CableStates here(1);
  ASSERT_TRUE(here.hear({0, 2}));  // it works, says somebody
  here.contradict(0);
  CableStates there(1);
  ASSERT_TRUE(there.hear({0, 2}));
  const fabric::CableNews news{0, here.versions()[0]};
  EXPECT_FALSE(news.works());
  EXPECT_TRUE(there.hear(news));
}

TEST(CableStates, what_is_down_has_a_reason_until_it_is_up) {
  CableStates states(3);
  EXPECT_THAT(states.down(), ElementsAre(false, false, false));
  states.set(1, false, "the port is down");
  states.set(2, false, "silence");
  EXPECT_TRUE(states.is_down(1));
  EXPECT_EQ(states.why_down(1), "the port is down");
  EXPECT_THAT(states.down(), ElementsAre(false, true, true));
  states.set(1, true, "whatever is said");
  EXPECT_FALSE(states.is_down(1));
  EXPECT_EQ(states.why_down(1), "");
  EXPECT_THAT(states.down(), ElementsAre(false, false, true));
}

}  // namespace
}  // namespace ringbolt::mesh
