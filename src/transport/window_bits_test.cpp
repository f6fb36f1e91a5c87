#include "transport/window_bits.h"

#include <gtest/gtest.h>

namespace ringbolt::transport {
namespace {

TEST(WindowBits, keeps_single_bits_wherever_the_window_is) {
  for (const uint64_t base : {uint64_t{0}, uint64_t{255}, uint64_t{1} << 40}) {
    WindowBits bits;
    EXPECT_FALSE(bits.any());
    bits.set(base + 63);
    bits.set(base + 64);
    EXPECT_TRUE(bits.test(base + 63) && bits.test(base + 64) && !bits.test(base + 62));
    bits.clear(base + 63);
    EXPECT_EQ(bits.find_set(base, base + kWindowPackets), base + 64);
    EXPECT_EQ(bits.count(base, base + kWindowPackets), 1U);
  }
}

TEST(WindowBits, sets_and_clears_ranges_across_words_and_the_end) {
  WindowBits bits;
  bits.set_range(200, 300);  // wraps at 256
  EXPECT_EQ(bits.count(200, 300), 100U);
  EXPECT_EQ(bits.count(201, 299), 98U);
  EXPECT_EQ(bits.find_clear(200, 300), 300U);
  bits.clear_range(210, 290);
  EXPECT_EQ(bits.find_clear(200, 300), 210U);
  EXPECT_EQ(bits.find_set(210, 300), 290U);
  EXPECT_EQ(bits.count(200, 300), 20U);
}

TEST(WindowBits, treats_empty_and_full_ranges) {
  WindowBits bits;
  bits.set_range(5, 5);
  EXPECT_FALSE(bits.any());
  EXPECT_EQ(bits.find_set(5, 5), 5U);
  bits.set_range(1000, 1000 + kWindowPackets);
  EXPECT_EQ(bits.count(1000, 1000 + kWindowPackets), kWindowPackets);
  bits.clear_range(1000, 1000 + kWindowPackets);
  EXPECT_FALSE(bits.any());
}

}  // namespace
}  // namespace ringbolt::transport
