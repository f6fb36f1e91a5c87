#include "fabric/among.h"

#include <gtest/gtest.h>

#include "fabric/builders.h"

namespace ringbolt::fabric {
namespace {

TEST(GraphAmong, all_is_the_graph_itself) { EXPECT_EQ(graph_among(ring(4), {0, 1, 2, 3}), ring(4)); }

TEST(GraphAmong, numbers_follow_the_list) {
  Graph wanted{3, {}};
  join(wanted, 0, 1);
  join(wanted, 1, 2);
  EXPECT_EQ(graph_among(ring(5), {3, 2, 1}), wanted);
}

TEST(GraphAmong, members_that_nothing_joins_talk_through_others) {
  Graph wanted{3, {}};  // leaves of a star, whose middle only relays
  join(wanted, 0, 1, Fraction(1, 2));
  join(wanted, 0, 2, Fraction(1, 2));
  join(wanted, 1, 2, Fraction(1, 2));
  EXPECT_EQ(graph_among(star(4), {1, 2, 3}), wanted);
  EXPECT_EQ(graph_among(line(4), {0, 3}).cables[0].capacity, Fraction(1, 3));
}

TEST(GraphAmong, one_member_and_none) {
  EXPECT_EQ(graph_among(ring(3), {1}).cables.size(), 0U);
  EXPECT_EQ(graph_among(ring(3), {}).n_nodes, 0U);
}

}  // namespace
}  // namespace ringbolt::fabric
