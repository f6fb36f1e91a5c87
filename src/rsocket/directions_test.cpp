#include "rsocket/directions.h"

#include <gtest/gtest.h>

namespace ringbolt::rsocket {
namespace {

TEST(Directions, are_both_open_at_first) {
  const Directions directions;
  EXPECT_TRUE(directions.may_read());
  EXPECT_TRUE(directions.may_write());
  EXPECT_FALSE(directions.has_said_goodbye());
}

TEST(Directions, end_of_writing_is_told_as_a_shutdown) {
  Directions directions;
  EXPECT_EQ(directions.shut(SHUT_WR), Control::shutdown);
  EXPECT_TRUE(directions.may_read());
  EXPECT_FALSE(directions.may_write());
}

/// Nothing in the protocol says so.
TEST(Directions, end_of_reading_is_not_told) {
  Directions directions;
  EXPECT_EQ(directions.shut(SHUT_RD), std::nullopt);
  EXPECT_FALSE(directions.may_read());
  EXPECT_TRUE(directions.may_write());
}

TEST(Directions, end_of_both_is_told_as_a_disconnect) {
  Directions directions;
  EXPECT_EQ(directions.shut(SHUT_RDWR), Control::disconnect);
  EXPECT_FALSE(directions.may_read());
  EXPECT_FALSE(directions.may_write());
}

TEST(Directions, one_after_the_other_end_with_a_disconnect_either_way) {
  Directions reading_first;
  reading_first.shut(SHUT_RD);
  EXPECT_EQ(reading_first.shut(SHUT_WR), Control::disconnect);
  Directions writing_first;
  EXPECT_EQ(writing_first.shut(SHUT_WR), Control::shutdown);
  writing_first.said_goodbye();
  EXPECT_EQ(writing_first.shut(SHUT_RD), Control::disconnect) << "which says more than the shutdown";
}

TEST(Directions, end_of_writing_is_told_once) {
  Directions directions;
  directions.shut(SHUT_WR);
  EXPECT_EQ(directions.shut(SHUT_WR), Control::shutdown) << "the first one was not sent yet";
  directions.said_goodbye();
  EXPECT_EQ(directions.shut(SHUT_WR), std::nullopt);
}

TEST(Directions, of_a_peer_that_has_finished_need_no_more_than_our_end) {
  Directions directions;
  directions.peer_finished();
  EXPECT_FALSE(directions.may_read());
  EXPECT_TRUE(directions.may_write());
  EXPECT_EQ(directions.shut(SHUT_WR), Control::disconnect);
}

}  // namespace
}  // namespace ringbolt::rsocket
