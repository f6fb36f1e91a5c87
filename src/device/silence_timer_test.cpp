#include "device/silence_timer.h"

#include <gtest/gtest.h>

namespace ringbolt::device {
namespace {

constexpr uint64_t kStart = 7'000'000'000;

TEST(SilenceTimer, takes_the_least_time) {
  SilenceTimer timer;
  timer.begin(kStart);
  for (uint64_t ns = 0; ns <= kLeastTimeoutNs; ns += SilenceTimer::kLongestGapNs / 2) {
    timer.look(kStart + ns);
    EXPECT_EQ(timer.is_long_enough(kStart + ns), ns >= kLeastTimeoutNs) << ns;
  }
}

TEST(SilenceTimer, gap_of_the_longest_length_counts) {
  SilenceTimer timer;
  timer.begin(kStart);
  uint64_t now = kStart;
  for (; now < kStart + kLeastTimeoutNs; now += SilenceTimer::kLongestGapNs) {
    timer.look(now);
  }
  timer.look(now);
  EXPECT_TRUE(timer.is_long_enough(now));
}

TEST(SilenceTimer, begins_anew_after_a_gap) {
  SilenceTimer timer;
  timer.begin(kStart);
  const uint64_t back = kStart + 10 * kLeastTimeoutNs;
  timer.look(back);
  EXPECT_FALSE(timer.is_long_enough(back));
  EXPECT_FALSE(timer.is_long_enough(back + kLeastTimeoutNs - 1));
  EXPECT_TRUE(timer.is_long_enough(back + kLeastTimeoutNs));
}

TEST(SilenceTimer, ends_for_those_who_seldom_look) {
  SilenceTimer timer;
  timer.begin(kStart);
  timer.look(kStart + kLeastTimeoutNs);
  timer.look(kStart + 2 * kLeastTimeoutNs);
  EXPECT_TRUE(timer.is_long_enough(kStart + 2 * kLeastTimeoutNs));
}

TEST(SilenceTimer, may_begin_anew_again_after_an_answer) {
  SilenceTimer timer;
  timer.begin(kStart);
  timer.look(kStart + kLeastTimeoutNs);
  const uint64_t next = kStart + 2 * kLeastTimeoutNs;
  timer.begin(next);
  timer.look(next + kLeastTimeoutNs);
  EXPECT_FALSE(timer.is_long_enough(next + kLeastTimeoutNs));
}

TEST(SilenceTimer, clock_read_before_another_ones_is_no_gap) {
  SilenceTimer timer;
  timer.begin(kStart);
  timer.look(kStart + kLeastTimeoutNs / 5);
  timer.look(kStart);
  timer.look(kStart + kLeastTimeoutNs / 5);
  timer.look(kStart + kLeastTimeoutNs / 2);
  timer.look(kStart + 4 * kLeastTimeoutNs / 5);
  EXPECT_TRUE(timer.is_long_enough(kStart + kLeastTimeoutNs));
}

}  // namespace
}  // namespace ringbolt::device
