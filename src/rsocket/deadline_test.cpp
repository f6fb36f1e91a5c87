#include "rsocket/deadline.h"

#include <gtest/gtest.h>

#include <climits>

namespace ringbolt::rsocket {
namespace {

TEST(Deadline, of_a_poll_that_does_not_wait_is_over_at_once) {
  EXPECT_TRUE(Deadline::in_ms(0).is_over());
  EXPECT_EQ(Deadline::in_ms(0).sleep_ms(), 0);
}

TEST(Deadline, of_negative_milliseconds_never_comes) {
  EXPECT_FALSE(Deadline::in_ms(-1).is_over());
  EXPECT_FALSE(Deadline::never().is_over());
}

TEST(Deadline, lets_nobody_sleep_longer_than_half_a_second) {
  EXPECT_EQ(Deadline::never().sleep_ms(), 500);
  EXPECT_EQ(Deadline::in_ms(INT_MAX).sleep_ms(), 500);
  EXPECT_LE(Deadline::in_ms(20).sleep_ms(), 20);
}

TEST(Deadline, bounds_a_sleep_that_nothing_else_does) {
  EXPECT_LT(Deadline::never().sleep_ms(UINT64_MAX), 0) << "as poll() has for ever";
  EXPECT_EQ(Deadline::never().sleep_ms(1), 1);
  EXPECT_EQ(Deadline::in_ms(0).sleep_ms(UINT64_MAX), 0);
  const int hour_ms = 3'600'000;
  EXPECT_GT(Deadline::in_ms(hour_ms).sleep_ms(UINT64_MAX), hour_ms / 2);
  EXPECT_LE(Deadline::in_ms(hour_ms).sleep_ms(UINT64_MAX), hour_ms);
  EXPECT_EQ(Deadline::in_ns(UINT64_MAX / 4).sleep_ms(UINT64_MAX), INT_MAX);
}

TEST(Deadline, that_the_clock_can_not_show_never_comes) {
  EXPECT_FALSE(Deadline::in_ns(UINT64_MAX).is_over());
  EXPECT_EQ(Deadline::in_ns(UINT64_MAX).sleep_ms(), 500);
}

TEST(Deadline, of_an_option_without_a_time_never_comes_and_that_of_select_is_over) {
  const timeval none{};
  EXPECT_FALSE(Deadline::of_option(none).is_over());
  EXPECT_TRUE(Deadline::of_select(&none).is_over());
  EXPECT_FALSE(Deadline::of_select(nullptr).is_over());
}

TEST(NsOf, counts_seconds_and_microseconds) {
  EXPECT_EQ(ns_of({0, 1}), 1000U);
  EXPECT_EQ(ns_of({3, 250'000}), 3'250'000'000U);
}

/// 2^64 nanoseconds are 18446744073.709551616 seconds.
TEST(NsOf, of_more_than_the_clock_has_is_as_long_as_can_be) {
  EXPECT_EQ(ns_of({18'446'744'073, 709'551}), 18'446'744'073'709'551'000U);
  EXPECT_EQ(ns_of({18'446'744'073, 709'552}), UINT64_MAX);
  EXPECT_EQ(ns_of({18'446'744'074, 0}), UINT64_MAX);
  EXPECT_EQ(ns_of({LONG_MAX, 999'999}), UINT64_MAX);
}

}  // namespace
}  // namespace ringbolt::rsocket
