#include "verify/under_way.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ringbolt::tools::verify {
namespace {

using testing::HasSubstr;

struct Posted {
  explicit Posted(uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) {
      operations.note_posted();
    }
  }
  uint64_t complete(uint32_t id) { return operations.complete(id, tally); }
  UnderWay operations{"queue pair 3", "send"};
  Tally tally;
};

TEST(UnderWay, completes_in_order) {
  Posted all(3);
  for (uint32_t id = 0; id < 3; ++id) {
    EXPECT_EQ(all.complete(id), 1U);
  }
  EXPECT_EQ(all.operations.count(), 0U);
  EXPECT_EQ(all.tally.total(), 0U);
}

TEST(UnderWay, what_completed_already_is_unasked) {
  Posted all(3);
  all.complete(0);
  all.complete(1);
  for (const uint32_t id : {0U, 1U}) {
    EXPECT_EQ(all.complete(id), 0U);
  }
  EXPECT_EQ(all.tally.count(Kind::kUnasked), 2U);
  EXPECT_THAT(all.tally.findings()[1].text, HasSubstr("queue pair 3: send 1 completed again"));
  EXPECT_EQ(all.complete(2), 1U);
}

TEST(UnderWay, what_was_never_posted_is_unasked) {
  Posted all(1);
  EXPECT_EQ(all.complete(1), 0U);
  EXPECT_THAT(all.tally.findings()[0].text, HasSubstr("a completion of no send that was posted (id 0x1)"));
  EXPECT_EQ(all.complete(0), 1U);
  EXPECT_EQ(all.complete(1), 0U);
  EXPECT_EQ(all.tally.count(Kind::kUnasked), 2U);
}

TEST(UnderWay, one_that_overtakes_is_told_once_and_counted_in_its_time) {
  Posted all(4);
  EXPECT_EQ(all.complete(0), 1U);
  EXPECT_EQ(all.complete(2), 0U);
  EXPECT_EQ(all.operations.completed(), 1U);
  EXPECT_EQ(all.complete(2), 0U);
  EXPECT_EQ(all.complete(1), 2U);
  EXPECT_EQ(all.complete(3), 1U);
  EXPECT_EQ(all.tally.count(Kind::kOrder), 1U);
  EXPECT_EQ(all.tally.count(Kind::kUnasked), 1U);
  EXPECT_THAT(all.tally.findings()[0].text, HasSubstr("expected send 1, found 2"));
}

TEST(UnderWay, any_id_is_safe) {
  Posted all(2);
  for (const uint32_t id : {2U, 1000U, 0x7fff'ffffU, 0x8000'0000U, UINT32_MAX}) {
    EXPECT_EQ(all.complete(id), 0U);
  }
  EXPECT_EQ(all.tally.count(Kind::kUnasked), 5U);
}

}  // namespace
}  // namespace ringbolt::tools::verify
