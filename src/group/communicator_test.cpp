#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "group/communicator_test_support.h"

namespace ringbolt::group {
namespace {

using test::CommunicatorTest;
using test::kNever;
using ::testing::HasSubstr;

TEST_F(CommunicatorTest, sums_over_all_ranks) {
  make(ring_);
  for (const size_t count : {size_t{1}, size_t{1000}, size_t{100'000}}) {
    for (const Status& end : all_reduce(count)) {
      EXPECT_TRUE(end.is_ok()) << end.text;
    }
  }
}

TEST_F(CommunicatorTest, ranks_that_see_other_cables_are_told_so) {
  make({ring_, line_, line_});
  for (const size_t count : {size_t{1}, size_t{1000}, size_t{100'000}}) {
    for (const Status& end : all_reduce(count)) {
      EXPECT_EQ(end.code, EPROTO);
      EXPECT_THAT(end.text, HasSubstr("or other cables"));
    }
  }
}

TEST_F(CommunicatorTest, what_is_left_of_two_groups_does_not_mix_even_under_one_number) {
  make({ring_, ring_, ring_}, {1, 65, 1});
  for (const Status& end : all_reduce(1000)) {
    EXPECT_EQ(end.code, EPROTO);
  }
  std::vector<int32_t> data(10);
  const std::vector<std::shared_ptr<Call>> calls = {
      group(0).begin_send(data.data(), 40, collective::Type::int32, 1, kNever),
      group(1).begin_receive(data.data(), 40, collective::Type::int32, 0, kNever)};
  ASSERT_TRUE(run_until([&] { return are_done({calls[1]}); }));
  EXPECT_EQ(calls[1]->status().code, EPROTO);
}

TEST_F(CommunicatorTest, all_hear_of_a_call_that_differs_from_one_that_has_ended) {
  make(line_);
  std::vector<std::vector<int32_t>> data = {std::vector<int32_t>(1000), std::vector<int32_t>(1001),
                                            std::vector<int32_t>(1001)};
  std::vector<std::shared_ptr<Call>> calls;
  for (uint32_t rank = 0; rank < kRanks; ++rank) {
    calls.push_back(begin(rank, collective::Operation::reduce, data[rank], 2, "chain"));
    if (rank == 0) {
      ASSERT_TRUE(run_until([&] { return are_done(calls); }));
      ASSERT_TRUE(calls[0]->status().is_ok()) << calls[0]->status().text;
    }
  }
  ASSERT_TRUE(run_until([&] { return are_done(calls); }));
  for (uint32_t rank = 1; rank < kRanks; ++rank) {
    EXPECT_EQ(calls[rank]->status().code, EPROTO);
    EXPECT_THAT(calls[rank]->status().text, HasSubstr("has ended"));
  }
  for (const Status& end : all_reduce(1000)) {
    EXPECT_TRUE(end.is_ok()) << end.text;
  }
}

TEST_F(CommunicatorTest, a_deadline_names_who_has_not_taken_what_was_sent) {
  make(line_);
  std::vector<int32_t> data(4'000'000);
  const auto call = group(0).begin_send(data.data(), data.size() * sizeof(int32_t), collective::Type::int32, 1,
                                        base::now_ns() + 200'000'000);
  ASSERT_TRUE(run_until([&] { return call->is_done(); }));
  EXPECT_EQ(call->status().code, ETIMEDOUT);
  EXPECT_THAT(call->status().text, HasSubstr("waits for rank 1 to take what it sends"));
}

TEST_F(CommunicatorTest, nobody_hears_again_of_a_call_that_has_failed) {
  make(line_);
  group(1).refuse_collective({EINVAL, "a root that there is not"});
  engine::ChunkHeader header;  // of a rank that has not heard of it when it says what it has called itself
  header.source = 2;
  group(1).on_word(header, {WordKind::differs, EPROTO, "barrier"});
  std::vector<int32_t> none;
  const std::vector<std::shared_ptr<Call>> calls = {begin(0, collective::Operation::barrier, none),
                                                    begin(2, collective::Operation::barrier, none)};
  ASSERT_TRUE(run_until([&] { return are_done(calls); }));
  for (const Status& end : all_reduce(1000)) {
    EXPECT_TRUE(end.is_ok()) << end.text;
  }
  for (const uint32_t rank : {0U, 2U}) {
    EXPECT_THAT(members_[rank]->heard, ::testing::Not(::testing::Contains(HasSubstr("has ended"))));
  }
}

TEST_F(CommunicatorTest, all_hear_of_a_refused_call_however_far_ahead_it_is) {
  make(line_);
  constexpr int kAhead = 70;
  std::vector<int32_t> none;
  std::vector<std::vector<std::shared_ptr<Call>>> barriers(kRanks);
  std::vector<std::shared_ptr<Call>> last;
  for (uint32_t rank = 0; rank < kRanks; ++rank) {
    for (int i = 0; i < kAhead; ++i) {
      barriers[rank].push_back(begin(rank, collective::Operation::barrier, none));
    }
    if (rank == 0) {
      group(rank).refuse_collective({EINVAL, "a root that there is not"});
    } else {
      last.push_back(begin(rank, collective::Operation::broadcast, none));
    }
  }
  ASSERT_TRUE(run_until([&] { return are_done(last); }));
  for (const auto& call : last) {
    EXPECT_EQ(call->status().code, EPROTO);
    EXPECT_THAT(call->status().text, HasSubstr("a root that there is not"));
  }
  for (const auto& of_rank : barriers) {
    EXPECT_TRUE(run_until([&] { return are_done(of_rank); }));
  }
}

bool is_readable(int fd) {
  pollfd looked_at{fd, POLLIN, 0};
  return ::poll(&looked_at, 1, 0) == 1;
}

TEST_F(CommunicatorTest, progress_is_told_by_calls_that_end_and_by_a_group_that_breaks) {
  make(ring_);
  const int fd = group(1).progress_fd();
  EXPECT_EQ(group(1).progress_fd(), fd);
  EXPECT_TRUE(is_readable(fd)) << "calls may have ended before";
  uint64_t n_ends = 0;
  ASSERT_EQ(::read(fd, &n_ends, sizeof n_ends), ssize_t{sizeof n_ends});
  EXPECT_FALSE(is_readable(fd));
  std::vector<std::vector<int32_t>> data(kRanks, std::vector<int32_t>(1000, 1));
  std::vector<std::shared_ptr<Call>> calls;
  for (const uint32_t rank : {0U, 1U}) {
    calls.push_back(begin(rank, collective::Operation::all_reduce, data[rank]));
  }
  (void)run_until([n = 0]() mutable { return ++n > 100; });
  EXPECT_FALSE(is_readable(fd)) << "one rank has not come";
  calls.push_back(begin(2, collective::Operation::all_reduce, data[2]));
  ASSERT_TRUE(run_until([&] { return are_done(calls); }));
  ASSERT_EQ(::read(fd, &n_ends, sizeof n_ends), ssize_t{sizeof n_ends});
  EXPECT_EQ(n_ends, 1U);
  group(1).abort("enough");
  EXPECT_TRUE(is_readable(fd));
}

}  // namespace
}  // namespace ringbolt::group
