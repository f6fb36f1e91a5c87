#include "group/messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "group/communicator.h"

namespace ringbolt::group {
namespace {

using ::testing::HasSubstr;

/// A group of one rank, so that there are calls; they are given to no engine.
class SelfMessagesTest : public testing::Test {
 protected:
  std::shared_ptr<Call> end(bool is_send, uint32_t number, uint64_t bytes,
                            collective::Type type = collective::Type::uint8) {
    CallShape shape;
    shape.is_message = true;
    shape.type = type;
    shape.bytes = bytes;
    auto call = std::make_shared<Call>(group_, CallId{true, 0, 0, number}, shape, shape.signature(), UINT64_MAX);
    messages_.meet(is_send, call, is_send ? from_.data() : to_.data(), bytes);
    return call;
  }

  Communicator group_{nullptr, 0, {0}, 0, fabric::Graph{1, {}}, {}};
  SelfMessages messages_{0};
  std::array<std::byte, 8> from_ = {std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}};
  std::array<std::byte, 8> to_ = {};
};

TEST_F(SelfMessagesTest, the_second_end_copies_whichever_it_is) {
  for (const bool is_send_first : {true, false}) {
    to_ = {};
    const auto first = end(is_send_first, 0, 3);
    EXPECT_FALSE(first->is_done());
    const auto second = end(!is_send_first, 0, 3);
    EXPECT_TRUE(first->is_done() && first->status().is_ok());
    EXPECT_TRUE(second->is_done() && second->status().is_ok());
    EXPECT_EQ(std::memcmp(to_.data(), from_.data(), 3), 0);
    EXPECT_EQ(to_[3], std::byte{0});
    EXPECT_TRUE(messages_.is_empty());
  }
}

TEST_F(SelfMessagesTest, ends_meet_by_their_numbers) {
  const auto first = end(true, 0, 3);
  const auto second = end(false, 1, 3);
  EXPECT_FALSE(first->is_done() || second->is_done());
  end(true, 1, 3);
  EXPECT_TRUE(second->is_done());
  EXPECT_FALSE(first->is_done());
  end(false, 0, 3);
  EXPECT_TRUE(first->is_done());
}

TEST_F(SelfMessagesTest, of_no_bytes_touches_no_memory) {
  CallShape shape;
  shape.is_message = true;
  for (const bool is_send : {true, false}) {
    const auto call = std::make_shared<Call>(group_, CallId{true, 0, 0, 0}, shape, shape.signature(), UINT64_MAX);
    messages_.meet(is_send, call, nullptr, 0);
    EXPECT_EQ(call->is_done(), !is_send);
  }
}

TEST_F(SelfMessagesTest, ends_that_differ_fail_with_both_in_words) {
  const auto sent = end(true, 0, 3);
  const auto awaited = end(false, 0, 4);
  for (const auto& call : {sent, awaited}) {
    ASSERT_TRUE(call->is_done());
    EXPECT_EQ(call->status().code, EPROTO);
    EXPECT_EQ(call->status().text,
              "rank 0 sends itself " + sent->shape().text() + ", and awaits " + awaited->shape().text());
  }
  EXPECT_EQ(to_[0], std::byte{0});
}

TEST_F(SelfMessagesTest, an_end_that_has_failed_takes_the_other_one_with_it) {
  const auto first = end(false, 0, 3);
  first->finish({ETIMEDOUT, "the deadline has passed"});
  const auto second = end(true, 0, 3);
  EXPECT_EQ(first->status().code, ETIMEDOUT);
  EXPECT_EQ(second->status().code, ECANCELED);
  EXPECT_THAT(second->status().text, HasSubstr("its other end failed: the deadline has passed"));
  EXPECT_EQ(to_[0], std::byte{0});
}

TEST_F(SelfMessagesTest, a_deadline_says_which_call_is_missing) {
  const auto sent = end(true, 0, 3);
  const auto awaited = end(false, 1, 3);
  EXPECT_EQ(messages_.timed_out(*sent).code, ETIMEDOUT);
  EXPECT_THAT(messages_.timed_out(*sent).text, HasSubstr("has not called recv()"));
  EXPECT_THAT(messages_.timed_out(*awaited).text, HasSubstr("has not called send()"));
}

/// All bytes of a message, in order, once, in whole elements; alike at both ends.
void check_program(uint64_t bytes, uint32_t element_bytes) {
  const auto sends = message_program(true, bytes, element_bytes, 5).steps;
  const auto receives = message_program(false, bytes, element_bytes, 5).steps;
  ASSERT_EQ(sends.size(), receives.size());
  uint64_t at = 0;
  for (size_t i = 0; i < sends.size(); ++i) {
    ASSERT_EQ(sends[i].sources.size(), 1U);
    ASSERT_EQ(receives[i].targets.size(), 1U);
    EXPECT_EQ(sends[i].sources[0].offset, at) << bytes;
    EXPECT_EQ(receives[i].targets[0].offset, at) << bytes;
    EXPECT_EQ(sends[i].targets[0].transfer, i);
    EXPECT_EQ(receives[i].sources[0].transfer, i);
    EXPECT_EQ(sends[i].targets[0].peer, 5U);
    EXPECT_EQ(receives[i].sources[0].peer, 5U);
    EXPECT_EQ(sends[i].bytes, receives[i].bytes);
    EXPECT_EQ(sends[i].chunk_bytes % element_bytes, 0U);
    EXPECT_LE(sends[i].chunk_bytes, collective::Limits{}.most_chunk_bytes);
    at += sends[i].bytes;
  }
  EXPECT_EQ(at, bytes);
}

TEST(MessageProgram, carries_all_bytes_once_and_alike_at_both_ends) {
  for (const uint32_t element_bytes : {1U, 2U, 12U, 16U}) {
    for (const uint64_t n : {0U, 1U, 65536U / 12, 65536U, 1'000'000U, 10'000'019U}) {
      check_program(n * element_bytes, element_bytes);
    }
  }
}

TEST(MessageProgram, of_no_bytes_is_one_transfer) { EXPECT_EQ(message_program(true, 0, 4, 1).steps.size(), 1U); }

TEST(MessageProgram, long_ones_go_through_four_transfers) {
  EXPECT_EQ(message_program(true, uint64_t{1} << 30, 4, 1).steps.size(), 4U);
}

}  // namespace
}  // namespace ringbolt::group
