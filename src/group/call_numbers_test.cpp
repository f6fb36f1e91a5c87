#include "group/call_numbers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <tuple>

namespace ringbolt::group {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr uint32_t kMost = CallNumbers::kMostAhead;

/// What tell_finished() looks at of a call.
struct Active {
  CallId id_;
  const CallId& id() const { return id_; }
};

/// This is rank 1 of three.
class CallNumbersTest : public testing::Test {
 protected:
  using Told = std::tuple<uint32_t, bool, uint32_t>;  // whom, of messages, up to which number

  static CallId collective(uint32_t number) { return {false, 0, 0, number}; }
  void take(uint32_t n) {
    for (uint32_t i = 0; i < n; ++i) {
      numbers_.take_collective();
    }
  }
  std::vector<Told> tell() {
    std::vector<Told> told;
    has_counted_all_ = numbers_.tell_finished(active_, [&](uint32_t peer, bool is_of_messages, uint32_t number) {
      told.push_back({peer, is_of_messages, number});
    });
    return told;
  }
  void begin(const CallId& id) { active_.push_back(std::make_unique<Active>(Active{id})); }

  CallNumbers numbers_{1, 3};
  std::vector<std::unique_ptr<Active>> active_;
  bool has_counted_all_ = false;
};

TEST_F(CallNumbersTest, collectives_have_one_sequence_and_messages_one_for_each_pair_and_way) {
  EXPECT_EQ(numbers_.take_collective(), 0U);
  EXPECT_EQ(numbers_.take_collective(), 1U);
  EXPECT_EQ(numbers_.take_message(true, 2), (CallId{true, 1, 2, 0}));
  EXPECT_EQ(numbers_.take_message(true, 2), (CallId{true, 1, 2, 1}));
  EXPECT_EQ(numbers_.take_message(true, 0), (CallId{true, 1, 0, 0}));
  EXPECT_EQ(numbers_.take_message(false, 2), (CallId{true, 2, 1, 0}));
  EXPECT_EQ(numbers_.next_of(collective(9)), 2U);
  EXPECT_EQ(numbers_.next_of({true, 1, 2, 9}), 2U);
  EXPECT_EQ(numbers_.next_of({true, 2, 1, 9}), 1U);
  EXPECT_EQ(numbers_.next_of({true, 0, 1, 9}), 0U);
}

TEST_F(CallNumbersTest, a_message_to_itself_has_one_number_at_both_ends) {
  EXPECT_EQ(numbers_.take_message(true, 1).number, numbers_.take_message(false, 1).number);
}

TEST_F(CallNumbersTest, what_is_past_next_and_too_far) {
  take(5);
  EXPECT_TRUE(numbers_.is_past(collective(4)));
  EXPECT_FALSE(numbers_.is_past(collective(5)));
  EXPECT_FALSE(numbers_.is_too_far(collective(4)));
  EXPECT_FALSE(numbers_.is_too_far(collective(5 + kMost - 1)));
  EXPECT_TRUE(numbers_.is_too_far(collective(5 + kMost)));
  EXPECT_TRUE(numbers_.is_past(collective(UINT32_MAX)));  // before 0, by the wrap
}

TEST_F(CallNumbersTest, a_collective_waits_for_the_rank_that_is_farthest_behind) {
  EXPECT_EQ(numbers_.rank_behind(collective(kMost - 1)), CallNumbers::kNobody);
  EXPECT_EQ(numbers_.rank_behind(collective(kMost)), 0U);
  take(kMost);
  numbers_.hear_finished(0, false, 1);
  EXPECT_EQ(numbers_.rank_behind(collective(kMost)), 2U);
  numbers_.hear_finished(2, false, 1);
  EXPECT_EQ(numbers_.rank_behind(collective(kMost)), CallNumbers::kNobody);
  EXPECT_NE(numbers_.rank_behind(collective(kMost + 1)), CallNumbers::kNobody);
}

TEST_F(CallNumbersTest, what_may_begin_at_once_is_behind_nobody) {
  take(3 * kMost);
  for (const auto& [peer, number] : std::vector<std::pair<uint32_t, uint32_t>>{{0, 10}, {2, 40}, {0, 70}, {2, 100}}) {
    numbers_.hear_finished(peer, false, number);
    for (uint32_t call = 0; call < 3 * kMost; ++call) {
      if (numbers_.may_begin(call)) {
        EXPECT_EQ(numbers_.rank_behind(collective(call)), CallNumbers::kNobody) << call;
      }
    }
  }
  EXPECT_TRUE(numbers_.may_begin(70 + kMost - 1));
  EXPECT_FALSE(numbers_.may_begin(70 + kMost));
}

TEST_F(CallNumbersTest, older_words_that_come_late_change_nothing) {
  take(kMost);
  numbers_.hear_finished(0, false, 20);
  numbers_.hear_finished(2, false, 20);
  numbers_.hear_finished(0, false, 19);
  EXPECT_TRUE(numbers_.may_begin(20 + kMost - 1));
  EXPECT_EQ(numbers_.rank_behind(collective(20 + kMost - 1)), CallNumbers::kNobody);
}

TEST_F(CallNumbersTest, chunks_say_it_as_seldom_as_words) {
  take(kMost);
  numbers_.hear_finished(2, false, kMost);
  numbers_.hear_ended_before(0, CallNumbers::kCallsPerWord - 1);
  EXPECT_FALSE(numbers_.may_begin(kMost));
  numbers_.hear_ended_before(0, CallNumbers::kCallsPerWord);
  EXPECT_TRUE(numbers_.may_begin(kMost));
  numbers_.hear_ended_before(0, 0);  // an old chunk
  EXPECT_TRUE(numbers_.may_begin(kMost));
}

TEST_F(CallNumbersTest, a_message_waits_for_its_receiver_alone) {
  const CallId far{true, 1, 2, kMost};
  EXPECT_EQ(numbers_.rank_behind({true, 1, 2, kMost - 1}), CallNumbers::kNobody);
  EXPECT_EQ(numbers_.rank_behind(far), 2U);
  EXPECT_EQ(numbers_.rank_behind({true, 2, 1, kMost}), CallNumbers::kNobody);  // who receives keeps nobody waiting
  EXPECT_EQ(numbers_.rank_behind({true, 1, 1, kMost}), CallNumbers::kNobody);
  numbers_.hear_finished(2, false, 1);  // of collectives
  EXPECT_EQ(numbers_.rank_behind(far), 2U);
  numbers_.hear_finished(0, true, 1);
  EXPECT_EQ(numbers_.rank_behind(far), 2U);
  numbers_.hear_finished(2, true, 1);
  EXPECT_EQ(numbers_.rank_behind(far), CallNumbers::kNobody);
}

TEST_F(CallNumbersTest, peers_are_told_every_sixteen_calls) {
  take(CallNumbers::kCallsPerWord - 1);
  EXPECT_THAT(tell(), IsEmpty());
  take(1);
  EXPECT_THAT(tell(), UnorderedElementsAre(Told{0, false, 16}, Told{2, false, 16}));
  EXPECT_TRUE(has_counted_all_);
  EXPECT_THAT(tell(), IsEmpty());  // once
}

TEST_F(CallNumbersTest, who_has_been_told_by_a_chunk_hears_no_word) {
  take(20);
  numbers_.note_told(0, 20);
  EXPECT_THAT(tell(), ElementsAre(Told{2, false, 20}));
}

TEST_F(CallNumbersTest, a_call_that_has_not_ended_holds_up_all_later_ones) {
  take(40);
  begin(collective(17));
  EXPECT_THAT(tell(), UnorderedElementsAre(Told{0, false, 17}, Told{2, false, 17}));
  EXPECT_FALSE(has_counted_all_);  // 18 to 39 have ended, and are not told of
  active_.clear();
  EXPECT_THAT(tell(), UnorderedElementsAre(Told{0, false, 40}, Told{2, false, 40}));
  EXPECT_TRUE(has_counted_all_);
}

TEST_F(CallNumbersTest, the_last_ones_alone_are_counted_all_though_they_are_active) {
  take(20);
  begin(collective(18));
  begin(collective(19));
  tell();
  EXPECT_TRUE(has_counted_all_);
}

TEST_F(CallNumbersTest, two_collectives_of_one_number_are_one_call) {
  take(20);
  begin(collective(19).in(Phase::counted));
  begin(collective(19).in(Phase::counting));
  EXPECT_THAT(tell(), UnorderedElementsAre(Told{0, false, 19}, Told{2, false, 19}));
  EXPECT_TRUE(has_counted_all_);
}

TEST_F(CallNumbersTest, a_sender_is_told_of_its_messages) {
  for (uint32_t i = 0; i < 18; ++i) {
    numbers_.take_message(false, 2);
    numbers_.take_message(true, 0);
  }
  begin({true, 2, 1, 17});
  begin({true, 1, 0, 0});  // what this rank sends is the receiver's to tell
  EXPECT_THAT(tell(), ElementsAre(Told{2, true, 17}));
  EXPECT_TRUE(has_counted_all_);
}

}  // namespace
}  // namespace ringbolt::group
