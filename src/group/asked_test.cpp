#include "group/asked.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "group/arguments.h"

namespace ringbolt::group {
namespace {

using collective::Operation;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::SizeIs;

constexpr uint32_t kRanks = 3;

TEST(Asked, has_a_share_for_all_for_each_rank_or_for_each_pair) {
  // collective/problem.h has the layouts.
  const std::vector<std::pair<Operation, size_t>> expected = {
      {Operation::all_reduce, 1}, {Operation::broadcast, 1},      {Operation::reduce, 1},
      {Operation::gather, 3},     {Operation::scatter, 3},        {Operation::all_gather, 3},
      {Operation::barrier, 0},    {Operation::reduce_scatter, 3}, {Operation::all_to_all, 9}};
  for (const auto& [operation, n] : expected) {
    const Asked asked = ask({5, operation, collective::Type::float32}, kRanks, nullptr, nullptr);
    EXPECT_THAT(asked.what.whole_problem().shares, SizeIs(n)) << static_cast<int>(operation);
    EXPECT_THAT(asked.what.whole_problem().shares, Each(20)) << "5 elements of 4 bytes";
    EXPECT_EQ(asked.what.problem.n_ranks, kRanks);
  }
}

TEST(Asked, takes_over_buffers_type_and_root) {
  const int in = 0;
  int out = 0;
  const Asked asked =
      ask({1, Operation::broadcast, collective::Type::int32, collective::Reduction::sum, true, 2}, kRanks, &in, &out);
  EXPECT_EQ(asked.input, &in);
  EXPECT_EQ(asked.output, &out);
  EXPECT_EQ(asked.type, collective::Type::int32);
  EXPECT_EQ(asked.what.problem.root, 2U);
  EXPECT_EQ(asked.what.problem.element_bytes, 4U);
  EXPECT_TRUE(asked.what.algorithm.empty());
}

TEST(Asked, keeps_the_order_of_ranks_only_where_it_matters_and_is_wanted) {
  const auto needs_order = [](Operation operation, collective::Type type, collective::Reduction reduction,
                              bool is_reproducible) {
    return ask({1, operation, type, reduction, is_reproducible}, kRanks, nullptr, nullptr)
        .what.problem.needs_rank_order;
  };
  EXPECT_TRUE(needs_order(Operation::all_reduce, collective::Type::float32, collective::Reduction::sum, true));
  EXPECT_FALSE(needs_order(Operation::all_reduce, collective::Type::float32, collective::Reduction::sum, false));
  EXPECT_FALSE(
      needs_order(Operation::all_reduce, collective::Type::int32, collective::Reduction::sum, true));  // associative
  EXPECT_FALSE(
      needs_order(Operation::all_reduce, collective::Type::float32, collective::Reduction::max, true));  // likewise
  EXPECT_FALSE(needs_order(Operation::all_gather, collective::Type::float32, collective::Reduction::sum,
                           true));  // reduces nothing
}

TEST(Asked, reduces_by_what_was_asked_for_only_where_it_reduces) {
  EXPECT_EQ(ask({1, Operation::reduce, collective::Type::int32, collective::Reduction::max}, kRanks, nullptr, nullptr)
                .reduction,
            collective::Reduction::max);
  EXPECT_EQ(ask({1, Operation::gather, collective::Type::int32, collective::Reduction::max}, kRanks, nullptr, nullptr)
                .reduction,
            collective::Reduction::sum);
}

TEST(Asked, sums_of_sixteen_bits_are_rounded_on_their_way) {
  for (const collective::Type type :
       {collective::Type::float16, collective::Type::bfloat16, collective::Type::float32, collective::Type::int16}) {
    const bool is_short = type == collective::Type::float16 || type == collective::Type::bfloat16;
    const auto rounds = [&](Operation operation) {
      return ask({1, operation, type}, kRanks, nullptr, nullptr).what.problem.rounds_partials;
    };
    EXPECT_EQ(rounds(Operation::reduce_scatter), is_short) << static_cast<int>(type);
    EXPECT_FALSE(rounds(Operation::all_gather));
  }
}

TEST(Asked, too_many_elements_stay_too_many) {
  for (const uint64_t count : {kMostBytes + 1, UINT64_MAX / 4 + 1, UINT64_MAX}) {
    const Asked asked = ask({count, Operation::all_reduce, collective::Type::float32}, kRanks, nullptr, nullptr);
    EXPECT_GT(asked.what.equal_share_bytes, kMostBytes) << count;
    EXPECT_NE(objection(asked, 0), "");
  }
}

TEST(Asked, a_type_that_there_is_not_has_no_bytes_and_is_objected_to) {
  const auto type = static_cast<collective::Type>(collective::kTypes);
  EXPECT_EQ(element_bytes(type), 0U);
  EXPECT_NE(objection(ask({1, Operation::all_reduce, type}, kRanks, nullptr, nullptr), 0), "");
}

TEST(Asked, all_gatherv_has_the_bytes_of_each_rank) {
  const std::vector<size_t> counts = {3, 0, 7};
  const Asked asked = ask_all_gatherv(counts, nullptr, nullptr, collective::Type::int16);
  EXPECT_THAT(asked.what.whole_problem().shares, ElementsAre(6, 0, 14));
  EXPECT_EQ(asked.what.problem.operation, Operation::all_gather);
  EXPECT_EQ(asked.what.problem.n_ranks, 3U);
}

TEST(Asked, all_to_allv_has_this_ranks_row_and_column) {
  const std::vector<size_t> sent = {1, 2, 3};
  const std::vector<size_t> received = {4, 2, 6};
  const Asked asked = ask_all_to_allv(1, sent, received, nullptr, nullptr, collective::Type::int16);
  // share(r * n + s) goes from r to s: row 1 is sent, column 1 received, and the rest is not known here.
  EXPECT_THAT(asked.what.whole_problem().shares, ElementsAre(0, 8, 0,  //
                                                             2, 4, 6,  //
                                                             0, 12, 0));
}

TEST(Asked, counting_tells_two_numbers_for_each_rank_to_all) {
  const Asked asked = counting_of(4);
  EXPECT_EQ(asked.phase, Phase::counting);
  EXPECT_EQ(asked.what.problem.operation, Operation::all_gather);
  EXPECT_THAT(asked.what.whole_problem().shares, ElementsAre(64, 64, 64, 64));  // 2 * 4 numbers of 8 bytes
  EXPECT_EQ(asked.type, collective::Type::uint64);
}

}  // namespace
}  // namespace ringbolt::group
