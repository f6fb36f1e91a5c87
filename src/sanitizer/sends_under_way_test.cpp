// InfiniBand Architecture Specification 1.4, 10.8.5: a request without a completion is done when a later one of its
// queue is.

#include "sanitizer/sends_under_way.h"

#include <gtest/gtest.h>

namespace ringbolt::sanitizer {
namespace {

using Numbers = std::vector<uint32_t>;

TEST(SendsUnderWay, a_completion_tells_of_those_before_it_that_have_none) {
  SendsUnderWay sends;
  sends.post(10, false);
  sends.post(11, true);
  sends.post(12, false);
  sends.post(13, true);
  sends.post(14, false);
  EXPECT_EQ(sends.done_with(13), (Numbers{10, 12, 13})) << "11 has its own, which another thread may just look at";
  EXPECT_EQ(sends.done_with(11), (Numbers{10, 11})) << "not what is behind it";
  EXPECT_EQ(sends.done_with(10), Numbers{10}) << "a request that failed has a completion, signaled or not";
}

TEST(SendsUnderWay, what_is_not_here_tells_of_nobody_else) {
  SendsUnderWay sends;
  sends.post(1, false);
  EXPECT_EQ(sends.done_with(7), Numbers{7});
  sends.drop(7);
  EXPECT_EQ(sends.count(), 1U);
}

TEST(SendsUnderWay, counts_until_dropped) {
  SendsUnderWay sends;
  EXPECT_EQ(sends.count(), 0U);
  sends.post(1, true);
  sends.post(2, false);
  EXPECT_EQ(sends.count(), 2U);
  EXPECT_EQ(sends.signaled(), 1U);
  sends.drop(2);
  EXPECT_EQ(sends.signaled(), 1U);
  sends.drop(1);
  sends.drop(1);
  EXPECT_EQ(sends.count(), 0U);
  EXPECT_EQ(sends.signaled(), 0U);
}

TEST(SendsUnderWay, drains_where_a_completion_is_among_the_first) {
  SendsUnderWay sends;
  EXPECT_FALSE(sends.can_drain(3)) << "nothing is there";
  sends.post(1, false);
  sends.post(2, false);
  sends.post(3, true);
  EXPECT_TRUE(sends.can_drain(3));
  EXPECT_TRUE(sends.can_drain(100));
  EXPECT_FALSE(sends.can_drain(2)) << "the queue has taken two, and none of them ever says that it is done";
  EXPECT_FALSE(sends.can_drain(0));
}

}  // namespace
}  // namespace ringbolt::sanitizer
