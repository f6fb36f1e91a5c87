#include "group/uneven.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>

#include "group/arguments.h"

namespace ringbolt::group {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Gt;

using Row = std::vector<size_t>;

/// What rank 0 holds once all of two have told: what each sends, and what it awaits.
Counts told(const std::vector<Row>& sent, const std::vector<Row>& awaited) {
  Counts counts(sent[0], awaited[0]);
  auto at = counts.all.begin();
  for (size_t rank = 0; rank < sent.size(); ++rank) {
    at = std::copy(sent[rank].begin(), sent[rank].end(), at);
    at = std::copy(awaited[rank].begin(), awaited[rank].end(), at);
  }
  return counts;
}

TEST(Uneven, a_rank_tells_what_it_sends_and_then_what_it_awaits) {
  const Counts counts(Row{1, 2, 3}, Row{4, 5, 6});
  EXPECT_THAT(counts.mine, ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_EQ(counts.n_ranks(), 3U);
  EXPECT_EQ(counts.all.size(), 18U);  // of each of three the same
}

TEST(Uneven, shares_go_from_row_to_column) {
  std::vector<uint64_t> shares = {77};  // of another call
  const Status status = shares_of(told({{1, 2}, {3, 0}}, {{1, 3}, {2, 0}}), 4, shares);
  EXPECT_TRUE(status.is_ok()) << status.text;
  EXPECT_THAT(shares, ElementsAre(4, 8, 12, 0));
}

TEST(Uneven, two_ranks_that_count_differently_are_named) {
  std::vector<uint64_t> shares;
  const Status status = shares_of(told({{1, 2}, {3, 0}}, {{1, 3}, {7, 0}}), 4, shares);
  EXPECT_EQ(status.code, EPROTO);
  EXPECT_EQ(status.text, "all_to_allv: rank 0 sends 2 elements to rank 1, which awaits 7");
}

TEST(Uneven, what_a_rank_sends_itself_is_compared_too) {
  std::vector<uint64_t> shares;
  EXPECT_EQ(shares_of(told({{1}}, {{2}}), 4, shares).code, EPROTO);
}

TEST(Uneven, too_many_elements_stay_too_many) {
  const size_t many = SIZE_MAX / 2 + 1;  // times 4 it would wrap to 0
  std::vector<uint64_t> shares;
  ASSERT_TRUE(shares_of(told({{many}}, {{many}}), 4, shares).is_ok());
  EXPECT_THAT(shares, Each(Gt(kMostBytes)));
}

}  // namespace
}  // namespace ringbolt::group
