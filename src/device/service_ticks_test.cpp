#include "device/service_ticks.h"

#include <gtest/gtest.h>

#include <vector>

namespace ringbolt::device {
namespace {

class ServiceTicksTest : public testing::Test {
 protected:
  static constexpr uint64_t kNow = 7'000'000'000;
  static constexpr uint64_t kMs = 1'000'000;

  /// What follows a look that found this, slept for as long as was agreed on before.
  int after(Remains remains) { return last_ = ticks_.next(last_, {remains, UINT64_MAX, false}, kNow); }
  int after_deadline(uint64_t deadline_ns, Remains remains = Remains::nothing) {
    return last_ = ticks_.next(last_, {remains, deadline_ns, false}, kNow);
  }
  /// How many looks that find nothing follow one another until a bell is waited for.
  int quiet_looks() {
    int looks = 0;
    while (after(Remains::nothing) >= 0 && looks < 1000) {
      EXPECT_EQ(last_, ServiceTicks::kQuietMs);
      ++looks;
    }
    return looks;
  }

  ServiceTicks ticks_;
  int last_ = ServiceTicks::kNoTick;
};

TEST_F(ServiceTicksTest, waits_for_a_bell_as_long_as_there_is_nothing) {
  EXPECT_EQ(after(Remains::nothing), -1);
  EXPECT_EQ(after(Remains::nothing), -1);
}

TEST_F(ServiceTicksTest, looks_at_timers_ever_less_often) {
  std::vector<int> ticks;
  for (int i = 0; i < 8; ++i) {
    ticks.push_back(after(Remains::timers));
  }
  EXPECT_EQ(ticks, (std::vector{1, 2, 4, 8, 16, 32, 64, 64}));
}

TEST_F(ServiceTicksTest, looks_at_work_as_often_as_it_can) {
  for (int i = 0; i < 7; ++i) {
    after(Remains::timers);
  }
  for (int i = 0; i < 200; ++i) {
    EXPECT_EQ(after(Remains::work), 1);
  }
}

TEST_F(ServiceTicksTest, a_bell_between_has_timers_looked_at_soon) {
  for (int i = 0; i < 7; ++i) {
    after(Remains::timers);
  }
  last_ = ServiceTicks::kFirstMs;  // as the bell says
  EXPECT_EQ(after(Remains::timers), 2);
  EXPECT_EQ(after(Remains::timers), 4);
}

TEST_F(ServiceTicksTest, lingers_where_there_was_something) {
  EXPECT_EQ(after(Remains::timers), 1);
  EXPECT_EQ(quiet_looks(), ServiceTicks::kMostQuiet);
  EXPECT_EQ(after(Remains::nothing), -1);
  EXPECT_EQ(after(Remains::work), 1);  // the next one is given as long
  EXPECT_EQ(quiet_looks(), ServiceTicks::kMostQuiet);
}

TEST_F(ServiceTicksTest, timers_after_a_quiet_look_are_new_ones) {
  for (int i = 0; i < 5; ++i) {
    after(Remains::timers);
  }
  ASSERT_EQ(last_, 16);
  EXPECT_EQ(after(Remains::nothing), ServiceTicks::kQuietMs);
  EXPECT_EQ(after(Remains::timers), 1);
  EXPECT_EQ(after(Remains::timers), 2);  // not new any more
  EXPECT_EQ(quiet_looks(), ServiceTicks::kMostQuiet);
}

// Rounded up to whole milliseconds, so less than one too late. Those that are further away than the longest sleep are
// looked at before they run out, and then again.
TEST_F(ServiceTicksTest, sleeps_until_a_deadline_is_past_and_hardly_longer) {
  for (const uint64_t ahead : {uint64_t{1}, kMs - 1, kMs, kMs + 1, 5 * kMs, 63 * kMs - 1, 63 * kMs}) {
    const auto slept = static_cast<uint64_t>(ServiceTicks::until(kNow, kNow + ahead)) * kMs;
    EXPECT_GE(slept, ahead);
    EXPECT_LT(slept, ahead + kMs);
  }
  EXPECT_EQ(ServiceTicks::until(kNow, kNow), 1);
  EXPECT_EQ(ServiceTicks::until(kNow, kNow - 1), 1);
  EXPECT_EQ(ServiceTicks::until(kNow, 0), 1);
  EXPECT_EQ(ServiceTicks::until(kNow, kNow + 64 * kMs), 64);
  EXPECT_EQ(ServiceTicks::until(kNow, UINT64_MAX), 64);
}

TEST_F(ServiceTicksTest, deadlines_come_before_what_remains) {
  EXPECT_EQ(after_deadline(kNow + 20 * kMs), 20);
  EXPECT_EQ(after_deadline(kNow + 20 * kMs - 1, Remains::timers), 20);
  EXPECT_EQ(after_deadline(kNow + 20 * kMs - 1, Remains::work), 20);
  EXPECT_EQ(after_deadline(kNow - 1, Remains::work), 1);
}

TEST_F(ServiceTicksTest, what_changes_by_the_clock_comes_before_all) {
  for (const Remains remains : {Remains::nothing, Remains::timers, Remains::work}) {
    EXPECT_EQ(ticks_.next(-1, {remains, UINT64_MAX, true}, kNow), 2);
    EXPECT_EQ(ticks_.next(64, {remains, kNow + 50 * kMs, true}, kNow), 2);
    EXPECT_EQ(ticks_.next(2, {remains, kNow, true}, kNow), 2);
  }
}

}  // namespace
}  // namespace ringbolt::device
