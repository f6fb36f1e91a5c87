#include "trace/tick_clock.h"

#include <gtest/gtest.h>

namespace ringbolt::trace {
namespace {

constexpr uint64_t kSecondNs = 1'000'000'000;

// A counter of 2.5 GHz that showed 1,000 when the kernel's clock showed 7 s: a tick is 0.4 ns.
constexpr Moment kFirst{1000, 7 * kSecondNs};
constexpr uint64_t kTicksInASecond = 2'500'000'000;
constexpr Moment kLast{1000 + 10 * kTicksInASecond, 17 * kSecondNs};

TEST(TickClock, reading_lies_on_the_line_through_both_moments) {
  EXPECT_EQ(ns_at(kFirst.ticks, kFirst, kLast), kFirst.ns);
  EXPECT_EQ(ns_at(kLast.ticks, kFirst, kLast), kLast.ns);
  EXPECT_EQ(ns_at(kFirst.ticks + kTicksInASecond, kFirst, kLast), 8 * kSecondNs);
  EXPECT_EQ(ns_at(kLast.ticks - 2'500, kFirst, kLast), kLast.ns - 1'000);
  EXPECT_EQ(ns_at(kLast.ticks - 5, kFirst, kLast), kLast.ns - 2);
}

TEST(TickClock, reading_after_the_later_moment_is_later) {
  EXPECT_EQ(ns_at(kLast.ticks + 25'000, kFirst, kLast), kLast.ns + 10'000);
}

TEST(TickClock, moments_without_a_distance_say_no_rate) {
  EXPECT_EQ(ns_at(5, kFirst, kFirst), kFirst.ns);
  EXPECT_EQ(ns_at(5, kFirst, {kFirst.ticks + 100, kFirst.ns}), kFirst.ns);  // the kernel's clock has not moved
  EXPECT_EQ(ns_at(5, kLast, kFirst), kFirst.ns);                            // nor do those in the wrong order
}

// Exact or not, it must not leave what the kernel's clock said around it by more than what reading both can differ.
TEST(TickClock, becomes_time_between_what_the_kernel_says_before_and_after) {
  constexpr uint64_t kSlackNs = 1'000'000;  // a thread may lose its core between the two readings of a moment
  const TickClock clock;
  const uint64_t before = base::now_ns();
  const uint64_t first = clock.now();
  const uint64_t second = clock.now();
  const uint64_t after = base::now_ns();
  EXPECT_LE(first, second);
  EXPECT_GE(clock.ns(first) + kSlackNs, before);
  EXPECT_LE(clock.ns(second), after + kSlackNs);
}

TEST(TickClock, without_a_counter_ticks_are_nanoseconds) {
  const uint64_t before = base::now_ns();
  const Moment now = moment_now(false);
  EXPECT_EQ(now.ticks, now.ns);
  EXPECT_GE(now.ns, before);
  EXPECT_EQ(ns_at(now.ticks - 77, {now.ns - 1000, now.ns - 1000}, now), now.ns - 77);
}

}  // namespace
}  // namespace ringbolt::trace
