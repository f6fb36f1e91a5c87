#include "group/short_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <vector>

#include "base/clock.h"
#include "group/communicator_test_support.h"

namespace ringbolt::group {
namespace {

using test::kNever;
using ::testing::HasSubstr;

constexpr size_t kCount = 16;

/// All ranks call one after the other, the short way where they can.
class ShortCallTest : public test::CommunicatorTest {
 protected:
  ShortCallTest() {
    make(ring_);
    for (uint32_t rank = 0; rank < kRanks; ++rank) {
      in_.emplace_back(kCount);
      out_.emplace_back(kCount);
    }
    prepare();
  }

  static ShortKey key(size_t count = kCount) {
    return {count, collective::Operation::all_reduce, collective::Type::int32, collective::Reduction::sum, true, 0};
  }
  Asked asked(uint32_t rank) {
    Asked all_reduce;
    all_reduce.what.problem.operation = collective::Operation::all_reduce;
    all_reduce.what.problem.n_ranks = kRanks;
    all_reduce.what.problem.element_bytes = sizeof(int32_t);
    all_reduce.what.n_equal_shares = 1;
    all_reduce.what.equal_share_bytes = kCount * sizeof(int32_t);
    all_reduce.type = collective::Type::int32;
    all_reduce.input = in_[rank].data();
    all_reduce.output = out_[rank].data();
    return all_reduce;
  }
  void fill(uint32_t rank, int32_t first) {
    for (size_t i = 0; i < kCount; ++i) {
      in_[rank][i] = first + static_cast<int32_t>(i * 17 + rank * 1000);
    }
    std::fill(out_[rank].begin(), out_[rank].end(), -1);
  }
  void expect_sums(uint32_t rank, int32_t first) {
    for (size_t i = 0; i < kCount; ++i) {
      EXPECT_EQ(out_[rank][i], 3 * first + static_cast<int32_t>(i * 17 * kRanks + 3000)) << "rank " << rank;
    }
  }
  /// The first call of all, which is none of the short ones.
  void prepare() {
    std::vector<Call*> calls;
    for (uint32_t rank = 0; rank < kRanks; ++rank) {
      fill(rank, 0);
      EXPECT_EQ(group(rank).begin_short(key(), in_[rank].data(), out_[rank].data()), nullptr);
      Status refused;
      calls.push_back(group(rank).begin_waited(asked(rank), refused));
      group(rank).prepare_short(key(), asked(rank));
    }
    EXPECT_TRUE(run_until(
        [&] { return std::all_of(calls.begin(), calls.end(), [](const Call* call) { return call->is_done(); }); }));
    for (uint32_t rank = 0; rank < kRanks; ++rank) {
      expect_sums(rank, 0);
      group(rank).end_waited(*calls[rank]);
    }
  }
  ShortCall* begin(uint32_t rank, int32_t first) {
    fill(rank, first);
    return group(rank).begin_short(key(), in_[rank].data(), out_[rank].data());
  }
  Status end(uint32_t rank, ShortCall& call) {
    Status status;
    group(rank).end_short(call, status);
    return status;
  }
  void go_on_for_a_while() {
    int n_turns = 0;
    (void)run_until([&] { return ++n_turns > 5; });
  }
  static bool are_over(const std::vector<ShortCall*>& calls) {
    return std::all_of(calls.begin(), calls.end(), [](const ShortCall* call) { return call->is_over(); });
  }

  std::vector<std::vector<int32_t>> in_;
  std::vector<std::vector<int32_t>> out_;
};

TEST_F(ShortCallTest, call_after_call_gives_what_a_long_one_gives) {
  for (int32_t call = 1; call <= 200; ++call) {  // of which each rank tells the others in between
    std::vector<ShortCall*> calls;
    for (uint32_t i = 0; i < kRanks; ++i) {
      const uint32_t rank = (i + static_cast<uint32_t>(call)) % kRanks;  // some are early, some late
      calls.push_back(begin(rank, call));
      ASSERT_NE(calls.back(), nullptr) << "call " << call << ", rank " << rank;
      go_on_for_a_while();
    }
    ASSERT_TRUE(run_until([&] { return are_over(calls); }));
    for (uint32_t i = 0; i < kRanks; ++i) {
      const uint32_t rank = (i + static_cast<uint32_t>(call)) % kRanks;
      EXPECT_FALSE(calls[i]->is_handed_over);
      EXPECT_TRUE(end(rank, *calls[i]).is_ok());
      expect_sums(rank, call);
    }
  }
}

TEST_F(ShortCallTest, its_chunks_tell_that_those_before_it_have_ended) {
  const auto n_words = [&] {
    return members_[0]->heard.size() + members_[1]->heard.size() + members_[2]->heard.size();
  };
  const size_t n_before = n_words();
  for (int32_t call = 1; call <= 150; ++call) {  // more than a rank may be ahead of one that it does not hear of
    std::vector<ShortCall*> calls;
    for (uint32_t rank = 0; rank < kRanks; ++rank) {
      calls.push_back(begin(rank, call));
      ASSERT_NE(calls.back(), nullptr) << "call " << call << ", rank " << rank;
    }
    ASSERT_TRUE(run_until([&] { return are_over(calls); }));
    for (uint32_t rank = 0; rank < kRanks; ++rank) {
      EXPECT_TRUE(end(rank, *calls[rank]).is_ok());
    }
  }
  go_on_for_a_while();
  EXPECT_EQ(n_words(), n_before);
}

TEST_F(ShortCallTest, others_of_the_group_go_on_meanwhile) {
  ShortCall* const first = begin(0, 1);
  ASSERT_NE(first, nullptr);
  const auto message = [&](uint32_t from, uint32_t to) {
    return std::vector<std::shared_ptr<Call>>{
        group(from).begin_send(in_[from].data(), 4, collective::Type::int32, to, kNever),
        group(to).begin_receive(out_[to].data(), 4, collective::Type::int32, from, kNever)};
  };
  const auto calls = message(1, 2);
  ASSERT_TRUE(run_until([&] { return are_done(calls); }));
  const std::vector<ShortCall*> all = {first, begin(1, 1), begin(2, 1)};
  ASSERT_NE(all[1], nullptr);
  ASSERT_NE(all[2], nullptr);
  ASSERT_TRUE(run_until([&] { return are_over(all); }));
  for (uint32_t rank = 0; rank < kRanks; ++rank) {
    EXPECT_TRUE(end(rank, *all[rank]).is_ok());
    expect_sums(rank, 1);
  }
}

TEST_F(ShortCallTest, is_handed_over_when_another_call_begins) {
  std::vector<ShortCall*> calls = {begin(0, 5)};
  std::vector<int32_t> word(1);
  const auto send = group(0).begin_send(word.data(), 4, collective::Type::int32, 1, kNever);
  EXPECT_TRUE(calls[0]->is_handed_over);
  EXPECT_EQ(begin(0, 5), nullptr);  // only one at a time
  const auto receive = group(1).begin_receive(word.data(), 4, collective::Type::int32, 0, kNever);
  ASSERT_TRUE(run_until([&] { return are_done({send, receive}); }));
  for (const uint32_t rank : {1U, 2U}) {
    calls.push_back(begin(rank, 5));
    ASSERT_NE(calls.back(), nullptr);
  }
  ASSERT_TRUE(run_until([&] { return are_over(calls); }));
  for (uint32_t rank = 0; rank < kRanks; ++rank) {
    EXPECT_TRUE(end(rank, *calls[rank]).is_ok());
    expect_sums(rank, 5);
  }
  EXPECT_NE(begin(0, 6), nullptr);  // and the short way again
}

TEST_F(ShortCallTest, fails_at_its_deadline_with_the_words_of_a_long_one) {
  ShortCall* const call = begin(0, 1);
  ASSERT_NE(call, nullptr);
  call->call->set_deadline(base::now_ns() + 1'000'000);
  ASSERT_TRUE(run_until([&] { return call->is_over(); }));
  const Status status = end(0, *call);
  EXPECT_EQ(status.code, ETIMEDOUT);
  EXPECT_THAT(status.text, HasSubstr("all_reduce of 16 int32 (sum, in any order): the deadline has passed with "));
  EXPECT_THAT(status.text, HasSubstr("this rank, 0, waits for rank "));
}

TEST_F(ShortCallTest, hears_that_others_have_called_something_else) {
  ShortCall* const call = begin(0, 1);
  ASSERT_NE(call, nullptr);
  std::vector<int32_t> other(kCount + 1);
  const std::vector<std::shared_ptr<Call>> others = {
      CommunicatorTest::begin(1, collective::Operation::all_reduce, other),
      CommunicatorTest::begin(2, collective::Operation::all_reduce, other)};
  ASSERT_TRUE(run_until([&] { return call->is_over() && are_done(others); }));
  const Status status = end(0, *call);
  EXPECT_EQ(status.code, EPROTO);
  EXPECT_THAT(status.text, HasSubstr("all_reduce of 16 int32 (sum, in any order)"));
  EXPECT_THAT(status.text, HasSubstr("all_reduce of 17 int32 (sum, in any order)"));
  for (const Status& end : all_reduce(1000)) {  // in step again
    EXPECT_TRUE(end.is_ok()) << end.text;
  }
}

TEST_F(ShortCallTest, ends_when_the_group_is_given_up) {
  ShortCall* const call = begin(0, 1);
  ASSERT_NE(call, nullptr);
  group(0).break_off({ECONNRESET, "rank 2 has died"});
  EXPECT_TRUE(call->is_over());
  EXPECT_EQ(end(0, *call), (Status{ECONNRESET, "rank 2 has died"}));
  EXPECT_EQ(begin(0, 2), nullptr);
}

TEST_F(ShortCallTest, hears_of_a_call_that_was_refused_elsewhere) {
  ShortCall* const early = begin(0, 1);
  group(1).refuse_collective({EINVAL, "a root that there is not"});
  ASSERT_TRUE(run_until([&] { return early->is_over(); }));
  EXPECT_THAT(end(0, *early).text, HasSubstr("a root that there is not"));
  ASSERT_TRUE(run_until([&] { return !members_[2]->heard.empty(); }));  // which has not called yet
  EXPECT_EQ(begin(2, 1), nullptr);  // it has to be begun the other way, and fails at once
}

TEST_F(ShortCallTest, is_asked_for_by_what_it_does) {
  for (const ShortKey& other : {key(kCount + 1), ShortKey{kCount, collective::Operation::all_reduce},
                                ShortKey{kCount, collective::Operation::all_reduce, collective::Type::int32,
                                         collective::Reduction::max, true, 0}}) {
    EXPECT_EQ(group(0).begin_short(other, in_[0].data(), out_[0].data()), nullptr);
  }
  EXPECT_EQ(group(0).begin_short(key(), nullptr, out_[0].data()), nullptr);
  EXPECT_EQ(group(0).begin_short(key(), in_[0].data(), nullptr), nullptr);
  EXPECT_NE(group(0).begin_short(key(), in_[0].data(), out_[0].data()), nullptr);
}

}  // namespace
}  // namespace ringbolt::group
