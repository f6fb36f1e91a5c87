#include "device/completion_shuffle.h"

#include <gtest/gtest.h>

namespace ringbolt::device {
namespace {

/// The first completion of queue 0 is late with this seed.
shuffle::Shuffle late_at_first() {
  for (uint64_t seed = 1;; ++seed) {
    const shuffle::Shuffle shuffle(shuffle::Wish{seed, {}}, 5);
    if (shuffle.draw(shuffle::Kind::late, 0, 1) != 0) {
      return shuffle;
    }
  }
}

TEST(CompletionShuffle, holds_back_for_a_bounded_time_and_then_tells_all) {
  const shuffle::Shuffle shuffle = late_at_first();
  CompletionShuffle queue(shuffle, 0);
  constexpr uint64_t kNow = 1'000'000'000;
  EXPECT_FALSE(queue.holds_back(0, 0, kNow)) << "nothing is there";
  EXPECT_TRUE(queue.holds_back(0, 1, kNow));
  EXPECT_TRUE(queue.holds_back(0, 3, kNow + 40'000));
  EXPECT_FALSE(queue.holds_back(0, 3, kNow + 4'000'000));
  EXPECT_FALSE(queue.holds_back(1, 3, kNow + 4'000'000)) << "of the same batch";
  EXPECT_FALSE(queue.holds_back(2, 3, kNow + 4'000'001));
}

TEST(CompletionShuffle, is_asked_anew_for_what_comes_after_a_batch) {
  const shuffle::Shuffle shuffle = late_at_first();
  CompletionShuffle queue(shuffle, 0);
  bool was_held = false;
  uint64_t now = 1'000'000'000;
  for (uint64_t told = 0; told < 100; ++told) {
    const bool is_held = queue.holds_back(told, told + 1, now);
    EXPECT_EQ(is_held, shuffle.draw(shuffle::Kind::late, 0, told + 1) != 0);
    was_held = was_held || is_held;
    now += 4'000'000;
    EXPECT_FALSE(queue.holds_back(told, told + 1, now));
  }
  EXPECT_TRUE(was_held);
}

TEST(CompletionShuffle, a_queue_that_nothing_came_to_has_no_event) {
  const shuffle::Shuffle shuffle(*shuffle::parse_wish("1:events"), 5);
  CompletionShuffle idle(shuffle, 0);
  CompletionShuffle busy(shuffle, 0);
  int events = 0;
  for (uint64_t armings = 1; armings <= 100; ++armings) {
    EXPECT_FALSE(idle.is_spurious(0));
    events += busy.is_spurious(armings) ? 1 : 0;
  }
  EXPECT_GT(events, 0);
}

TEST(CompletionShuffle, nothing_is_odd_that_is_not_wished_for) {
  const shuffle::Shuffle shuffle(*shuffle::parse_wish("1:order"), 5);
  CompletionShuffle queue(shuffle, 0);
  for (uint64_t told = 0; told < 100; ++told) {
    EXPECT_FALSE(queue.holds_back(told, told + 1, 1'000'000'000));
    EXPECT_FALSE(queue.is_spurious(told));
  }
}

}  // namespace
}  // namespace ringbolt::device
