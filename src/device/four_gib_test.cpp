#include "device/four_gib.h"

#include <gtest/gtest.h>

namespace ringbolt::device {
namespace {

TEST(FourGib, is_crossed_when_there_are_bytes_on_both_sides) {
  EXPECT_FALSE(crosses_4_gib(kFourGib - 1, 0));
  EXPECT_FALSE(crosses_4_gib(kFourGib - 1, 1));
  EXPECT_TRUE(crosses_4_gib(kFourGib - 1, 2));
  EXPECT_FALSE(crosses_4_gib(kFourGib, kFourGib));
  EXPECT_TRUE(crosses_4_gib(kFourGib, kFourGib + 1));
}

TEST(FourGib, moves_what_is_beyond_and_nothing_else) {
  constexpr uint64_t kFirst = 5 * kFourGib - 16;
  EXPECT_EQ(without_carry(kFirst, kFirst), kFirst);
  EXPECT_EQ(without_carry(kFirst, 5 * kFourGib - 1), 5 * kFourGib - 1);
  EXPECT_EQ(without_carry(kFirst, 5 * kFourGib), 4 * kFourGib);
  EXPECT_EQ(without_carry(kFirst, 5 * kFourGib + 7), 4 * kFourGib + 7);
}

}  // namespace
}  // namespace ringbolt::device
