#include "device/next_look.h"

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <cstdint>
#include <thread>

namespace ringbolt::device {
namespace {

TEST(NextLook, wakes_who_would_look_too_late) {
  NextLook next;
  EXPECT_TRUE(next.is_too_late_for(100));  // nobody meant to look at all
  EXPECT_FALSE(next.is_too_late_for(100));
  EXPECT_FALSE(next.is_too_late_for(200));
  EXPECT_TRUE(next.is_too_late_for(99));
}

TEST(NextLook, is_as_soon_as_who_looks_wants_it) {
  NextLook next;
  next.begin();
  EXPECT_EQ(next.end(50), 50U);
  EXPECT_FALSE(next.is_too_late_for(51));
  next.begin();
  EXPECT_EQ(next.end(UINT64_MAX), UINT64_MAX);
  EXPECT_TRUE(next.is_too_late_for(51));
}

TEST(NextLook, is_not_woken_while_it_looks_and_finds_what_was_set_meanwhile) {
  NextLook next;
  next.begin();
  EXPECT_FALSE(next.is_too_late_for(30));
  EXPECT_EQ(next.end(50), 30U);
  next.begin();
  EXPECT_FALSE(next.is_too_late_for(70));
  EXPECT_EQ(next.end(50), 50U);
}

/// Whoever sets a timer beside a look: it is found by that look or its end, or the look was over, and wakes.
TEST(NextLook, loses_no_timer_that_is_set_beside_a_look) {
  constexpr uint64_t kRounds = 20'000;
  constexpr uint64_t kDeadline = 100;
  NextLook next;
  std::atomic<uint64_t> timer{UINT64_MAX};
  uint64_t at = 0;
  std::barrier both(2);
  std::thread service([&] {
    for (uint64_t round = 0; round < kRounds; ++round) {
      both.arrive_and_wait();
      next.begin();
      at = next.end(timer.load(std::memory_order_relaxed));
      both.arrive_and_wait();
    }
  });
  uint64_t lost = 0;
  for (uint64_t round = 0; round < kRounds; ++round) {
    timer.store(UINT64_MAX, std::memory_order_relaxed);
    next.begin();
    next.end(round % 2 == 0 ? UINT64_MAX : 1);  // it sleeps for good, or meant to look before the timer
    both.arrive_and_wait();
    timer.store(kDeadline, std::memory_order_relaxed);
    const bool wakes = next.is_too_late_for(kDeadline);
    both.arrive_and_wait();
    lost += wakes || at <= kDeadline ? 0U : 1U;
  }
  service.join();
  EXPECT_EQ(lost, 0U);
}

}  // namespace
}  // namespace ringbolt::device
