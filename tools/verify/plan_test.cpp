#include "verify/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pair/values.h"

namespace ringbolt::tools::verify {
namespace {

using pair::Transport;
using testing::HasSubstr;

/// A card that has everything.
Abilities card() {
  Abilities one;
  one.has_rc = one.has_ud = one.has_atomics = true;
  one.most_queue_pairs = 1000;
  one.most_completions = 100'000;
  one.most_requests = 4096;
  one.mtu_bytes = 1024;
  one.most_message_bytes = uint64_t{1} << 30U;
  return one;
}

/// Of a Mac's shape.
Abilities mac() {
  Abilities one = card();
  one.has_rc = one.has_ud = one.has_atomics = false;
  one.counts_frames = true;
  one.most_queue_pairs = 11;
  one.most_requests = 4096;
  return one;
}

TEST(Abilities, survive_the_way) { EXPECT_EQ(pair::value_in<Abilities>(to_line(card())), card()); }

TEST(Abilities, that_no_device_has_are_refused) {
  const auto is_taken = [](const auto& change) {
    Abilities one = card();
    change(one);
    return pair::value_in<Abilities>(to_line(one)).has_value();
  };
  EXPECT_FALSE(is_taken([](Abilities& one) { one.most_queue_pairs = 0; }));
  EXPECT_FALSE(is_taken([](Abilities& one) { one.most_completions = 0; }));
  EXPECT_FALSE(is_taken([](Abilities& one) { one.most_requests = 0; }));
  EXPECT_FALSE(is_taken([](Abilities& one) { one.most_message_bytes = 0; }));
  EXPECT_FALSE(is_taken([](Abilities& one) { one.mtu_bytes = 63; }));
  EXPECT_TRUE(is_taken([](Abilities& one) { one.mtu_bytes = 64; }));
  EXPECT_TRUE(is_taken([](Abilities& one) { one.most_queue_pairs = 1; }));
}

TEST(Abilities, common_ones_are_what_both_have) {
  const Abilities both = common(card(), mac());
  EXPECT_FALSE(both.has_rc);
  EXPECT_FALSE(both.has_atomics);
  EXPECT_TRUE(both.counts_frames) << "one of them does";
  EXPECT_EQ(both.most_queue_pairs, 11U);
}

TEST(Plan, what_a_device_has_not_is_refused) {
  EXPECT_THAT(plan_step({}, Mode::kRead, std::nullopt, mac()).refusal, HasSubstr("RC: one of the devices has none"));
  EXPECT_THAT(plan_step({}, Mode::kStream, Transport::kUd, mac()).refusal, HasSubstr("no address handles"));
  Wish wish;
  wish.queue_pairs = 12;
  EXPECT_THAT(plan_step(wish, Mode::kStream, std::nullopt, mac()).refusal, HasSubstr("12 queue pairs"));
}

TEST(Plan, every_step_of_a_soak_makes_sense) {
  for (const Abilities& both : {card(), mac()}) {
    for (uint32_t turn = 0; turn < 8; ++turn) {
      std::vector<std::string> left_out;
      for (Step& step : plan_turn({}, both, turn, left_out)) {
        step.duration_ms = 100;  // the caller's
        EXPECT_TRUE(step.makes_sense()) << title_of(step) << " of turn " << turn;
        if (step.transport == Transport::kUd) {
          EXPECT_LE(step.most_bytes, both.mtu_bytes) << "a datagram is one packet";
        }
      }
    }
  }
}

TEST(Plan, macs_are_not_written_to_in_a_soak_and_that_is_said) {
  std::vector<std::string> left_out;
  for (const Step& step : plan_turn({}, mac(), 0, left_out)) {
    EXPECT_NE(step.mode, Mode::kWrite);
    EXPECT_EQ(step.transport, Transport::kUc);
  }
  EXPECT_THAT(left_out, testing::Contains(HasSubstr("a WRITE goes nowhere")));
}

}  // namespace
}  // namespace ringbolt::tools::verify
