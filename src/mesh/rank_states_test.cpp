#include "mesh/rank_states.h"

#include <gtest/gtest.h>

namespace ringbolt::mesh {
namespace {

TEST(RankStates, a_rank_fails_once_and_the_first_reason_stays) {
  RankStates states(3);
  EXPECT_FALSE(states.has_failed(2));
  EXPECT_TRUE(states.fail(2, {EHOSTDOWN, "silent"}, false));
  EXPECT_FALSE(states.fail(2, {ECONNRESET, "closed"}, false));
  EXPECT_TRUE(states.has_failed(2));
  ASSERT_EQ(states.failed().size(), 1U);
  EXPECT_EQ(states.failed().at(2).code, EHOSTDOWN);
  EXPECT_EQ(states.failed().at(2).text, "silent");
}

TEST(RankStates, that_a_process_has_ended_may_be_known_later) {
  RankStates states(3);
  states.fail(1, {EHOSTDOWN, "silent"}, false);
  EXPECT_EQ(states.ended(), 0U);
  states.fail(1, {ECONNRESET, "closed"}, true);
  EXPECT_EQ(states.ended(), 0b10U);
  states.fail(1, {EHOSTDOWN, "silent"}, false);  // what is certain stays so
  EXPECT_EQ(states.ended(), 0b10U);
}

TEST(RankStates, the_set_of_ended_ranks_has_64_bits) {
  RankStates states(65);
  states.fail(63, {ECONNRESET, "closed"}, true);
  states.fail(64, {ECONNRESET, "closed"}, true);
  EXPECT_EQ(states.ended(), uint64_t{1} << 63);
  EXPECT_TRUE(states.has_failed(64));
}

TEST(RankStates, only_what_took_too_long_is_explained_by_silent_ranks) {
  RankStates states(4);
  EXPECT_EQ(states.explained({ETIMEDOUT, "late"}).text, "late");
  states.note_silent(3, "rank 3 is frozen");
  states.note_silent(1, "rank 1 is silent");
  EXPECT_EQ(states.explained({ETIMEDOUT, "late"}).text, "late; rank 1 is silent; rank 3 is frozen");
  EXPECT_EQ(states.explained({ECONNRESET, "reset"}).text, "reset");
  EXPECT_EQ(states.explained({}).text, "");
  states.note_silent(1, "rank 1 is frozen");  // the latest counts
  states.note_back(3);
  EXPECT_EQ(states.explained({ETIMEDOUT, "late"}).text, "late; rank 1 is frozen");
}

TEST(RankStates, a_rank_may_leave_when_no_other_one_stays) {
  RankStates states(3);
  EXPECT_FALSE(states.may_leave(1));
  states.note_leaving(0);
  EXPECT_FALSE(states.may_leave(1));  // rank 2 may need a relay
  states.note_leaving(2);
  EXPECT_TRUE(states.may_leave(1));
  EXPECT_FALSE(states.may_leave(0));  // rank 1 has not said so
}

TEST(RankStates, who_has_failed_is_not_waited_for) {
  RankStates states(3);
  states.note_leaving(0);
  states.fail(2, {ECONNRESET, "closed"}, true);
  EXPECT_TRUE(states.may_leave(1));
}

TEST(RankStates, without_rank_0_nobody_can_say_that_it_leaves) {
  RankStates states(3);
  states.fail(0, {ECONNRESET, "closed"}, true);
  EXPECT_TRUE(states.may_leave(1));
}

TEST(RankStates, a_single_rank_may_leave) { EXPECT_TRUE(RankStates(1).may_leave(0)); }

}  // namespace
}  // namespace ringbolt::mesh
