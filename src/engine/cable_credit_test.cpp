#include "engine/cable_credit.h"

#include <gtest/gtest.h>

namespace ringbolt::engine {
namespace {

constexpr CreditPlan kPlan{8, 3, 1, 2};  // 8 receives: 1 kept for each of 3 classes, 2 for control, 3 for all

TEST(SenderCredit, keeps_something_for_every_class) {
  SenderCredit sender(kPlan);
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(sender.may_send(0));
    sender.send(0);
  }
  EXPECT_FALSE(sender.may_send(0));
  EXPECT_TRUE(sender.may_send(1));
  sender.send(1);
  EXPECT_FALSE(sender.may_send(1));
  EXPECT_TRUE(sender.may_send(2));
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(sender.may_send(kControlClass));
    sender.send(kControlClass);
  }
  EXPECT_FALSE(sender.may_send(kControlClass));
  EXPECT_TRUE(sender.hear_freed(0, 1));
  EXPECT_TRUE(sender.may_send(0));
  EXPECT_TRUE(sender.may_send(1));
}

TEST(SenderCredit, hears_words_of_credit_past_in_order_and_wrong) {
  SenderCredit sender(kPlan);
  for (int round = 0; round < 50'000; ++round) {  // past the wrap of 16 bits
    sender.send(0);
    sender.send(0);
    ASSERT_TRUE(sender.hear_freed(0, static_cast<uint16_t>(2 * round + 2)));
    ASSERT_TRUE(sender.hear_freed(0, static_cast<uint16_t>(2 * round + 1)));  // late
    ASSERT_EQ(sender.taken(0), 0U);
  }
  EXPECT_FALSE(sender.hear_freed(0, static_cast<uint16_t>(100'000 + 1)));  // more than there were
}

TEST(SenderCredit, what_is_told_to_be_lost_late_goes_back_to_its_own_class) {
  SenderCredit sender(kPlan);
  sender.send(kControlClass);  // this one gets lost
  for (uint32_t i = 1; i <= 20'000; ++i) {
    sender.send(0);
    ASSERT_TRUE(sender.hear_freed(0, static_cast<uint16_t>(i)));
  }
  sender.send(0);
  LostMessages lost;
  lost.add(0);
  ASSERT_TRUE(sender.hear_lost(lost));
  EXPECT_EQ(sender.taken(kControlClass), 0U);
  EXPECT_EQ(sender.taken(0), 1U);
  EXPECT_TRUE(sender.hear_freed(0, 20'001));
}

// A large message that waits behind others for a slow cable brings a word of credit that is old when it comes, while
// small messages have brought hundreds of newer ones. With counters of 8 bits it was taken for one from the future.
TEST(SenderCredit, hears_a_word_that_is_hundreds_of_messages_old) {
  SenderCredit sender(kPlan);
  for (uint16_t freed = 1; freed <= 1000; ++freed) {
    sender.send(0);
    ASSERT_TRUE(sender.hear_freed(0, freed));
  }
  sender.send(0);
  for (uint16_t old = 1; old <= 1000; ++old) {
    ASSERT_TRUE(sender.hear_freed(0, old)) << old;
    ASSERT_EQ(sender.taken(0), 1U) << old;
  }
}

TEST(Credit, what_is_lost_comes_back) {
  SenderCredit sender(kPlan);
  ReceiverCredit receiver;
  for (uint32_t i = 0; i < 100'000; ++i) {  // past the wrap of 16 bits
    const uint16_t number = sender.send(i % 3);
    if (i % 5 != 4) {
      ASSERT_TRUE(receiver.receive(number));
      receiver.free(i % 3);
      ASSERT_TRUE(sender.hear_freed(i % 3, receiver.freed(i % 3)));
    }
    if (i % 5 == 0) {  // the gap before this one is seen
      ASSERT_TRUE(sender.hear_lost(receiver.lost()));
      ASSERT_TRUE(sender.is_idle()) << i;
    }
  }
}

TEST(Credit, a_message_that_comes_after_all_owes_nothing) {
  SenderCredit sender(kPlan);
  ReceiverCredit receiver;
  const uint16_t number = sender.send(0);
  EXPECT_TRUE(receiver.miss_before(sender.number()));
  ASSERT_TRUE(sender.hear_lost(receiver.lost()));
  EXPECT_TRUE(sender.is_idle());
  EXPECT_FALSE(receiver.receive(number));
  EXPECT_TRUE(receiver.receive(sender.send(0)));
}

TEST(Credit, old_reports_say_nothing_about_now) {
  SenderCredit sender(kPlan);
  ReceiverCredit receiver;
  uint32_t old = sender.number();
  for (uint32_t i = 0; i < 200'000; ++i) {
    ASSERT_TRUE(receiver.receive(sender.send(0)));
    receiver.free(0);
    ASSERT_TRUE(sender.hear_freed(0, receiver.freed(0)));
    if (i % 50'000 == 49'999) {  // so many messages in the time of a beat
      EXPECT_TRUE(receiver.miss_before(old));
      old = sender.number();
    }
  }
  EXPECT_EQ(receiver.lost().count, 0U);
}

TEST(Credit, more_losses_than_can_be_told_are_noticed) {
  SenderCredit sender({100, 1, 1, 0});
  ReceiverCredit receiver;
  for (int i = 0; i < 40; ++i) {
    sender.send(0);
  }
  EXPECT_TRUE(receiver.miss_before(sender.number()));
  EXPECT_FALSE(sender.hear_lost(receiver.lost()));
}

// A peer may say anything; to count it one by one would take hours.
TEST(Credit, numbers_beyond_all_reason_are_refused) {
  ReceiverCredit receiver;
  EXPECT_TRUE(receiver.miss_before(65535));
  EXPECT_FALSE(receiver.miss_before(65535 + 65536));
  EXPECT_FALSE(receiver.miss_before(INT32_MAX));
  EXPECT_EQ(receiver.expected(), 65535U);
}

}  // namespace
}  // namespace ringbolt::engine
