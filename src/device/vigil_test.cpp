#include "device/vigil.h"

#include <gtest/gtest.h>

namespace ringbolt::device {
namespace {

constexpr uint64_t kStart = 7'000'000'000;

TEST(Vigil, takes_the_least_time) {
  Vigil vigil;
  vigil.begin(kStart);
  for (uint64_t ns = 0; ns <= kLeastTimeoutNs; ns += Vigil::kLongestGapNs / 2) {
    vigil.look(kStart + ns);
    EXPECT_EQ(vigil.is_long_enough(kStart + ns), ns >= kLeastTimeoutNs) << ns;
  }
}

TEST(Vigil, gap_of_the_longest_length_counts) {
  Vigil vigil;
  vigil.begin(kStart);
  uint64_t now = kStart;
  for (; now < kStart + kLeastTimeoutNs; now += Vigil::kLongestGapNs) {
    vigil.look(now);
  }
  vigil.look(now);
  EXPECT_TRUE(vigil.is_long_enough(now));
}

TEST(Vigil, begins_anew_after_a_gap) {
  Vigil vigil;
  vigil.begin(kStart);
  const uint64_t back = kStart + 10 * kLeastTimeoutNs;
  vigil.look(back);
  EXPECT_FALSE(vigil.is_long_enough(back));
  EXPECT_FALSE(vigil.is_long_enough(back + kLeastTimeoutNs - 1));
  EXPECT_TRUE(vigil.is_long_enough(back + kLeastTimeoutNs));
}

TEST(Vigil, ends_for_those_who_seldom_look) {
  Vigil vigil;
  vigil.begin(kStart);
  vigil.look(kStart + kLeastTimeoutNs);
  vigil.look(kStart + 2 * kLeastTimeoutNs);
  EXPECT_TRUE(vigil.is_long_enough(kStart + 2 * kLeastTimeoutNs));
}

TEST(Vigil, may_begin_anew_again_after_an_answer) {
  Vigil vigil;
  vigil.begin(kStart);
  vigil.look(kStart + kLeastTimeoutNs);
  const uint64_t next = kStart + 2 * kLeastTimeoutNs;
  vigil.begin(next);
  vigil.look(next + kLeastTimeoutNs);
  EXPECT_FALSE(vigil.is_long_enough(next + kLeastTimeoutNs));
}

TEST(Vigil, clock_read_before_another_ones_is_no_gap) {
  Vigil vigil;
  vigil.begin(kStart);
  vigil.look(kStart + kLeastTimeoutNs / 5);
  vigil.look(kStart);
  vigil.look(kStart + kLeastTimeoutNs / 5);
  vigil.look(kStart + kLeastTimeoutNs / 2);
  vigil.look(kStart + 4 * kLeastTimeoutNs / 5);
  EXPECT_TRUE(vigil.is_long_enough(kStart + kLeastTimeoutNs));
}

}  // namespace
}  // namespace ringbolt::device
