#include "device/poll_backoff.h"

#include <gtest/gtest.h>

namespace ringbolt::device {
namespace {

constexpr uint32_t kFirst = PollBackoff::kFirstPollsBeforeYield;
constexpr uint32_t kMost = PollBackoff::kMostPollsBeforeYield;
constexpr uint32_t kLeast = PollBackoff::kLeastPollsBeforeYield;
constexpr uint32_t kBetweenYields = PollBackoff::kPollsBetweenYields;

void poll_in_vain(PollBackoff& backoff, uint32_t times) {
  for (uint32_t i = 0; i < times; ++i) {
    backoff.note_empty();
  }
}

/// Which of the polls in vain from here on is the first to give the core away. 0: none of as many as that may take.
uint32_t first_yield(PollBackoff backoff) {
  for (uint32_t poll = 1; poll <= kMost + kBetweenYields; ++poll) {
    if (backoff.note_empty().gives_core_away) {
      return poll;
    }
  }
  return 0;
}

/// The same when a poll has found something, behind that many that have not.
uint32_t first_yield_after(PollBackoff& backoff, uint32_t empty_polls) {
  poll_in_vain(backoff, empty_polls);
  backoff.note_found();
  return first_yield(backoff);
}

TEST(PollBackoff, gives_the_core_away_now_and_then_once_its_patience_is_over) {
  PollBackoff backoff;
  for (uint32_t poll = 1; poll <= 4 * kFirst; ++poll) {
    EXPECT_EQ(backoff.note_empty().gives_core_away, poll >= kFirst && poll % kBetweenYields == 0) << poll;
  }
}

TEST(PollBackoff, what_is_found_soon_makes_it_more_patient_up_to_a_bound) {
  PollBackoff backoff;
  EXPECT_EQ(first_yield_after(backoff, 1), 2 * kFirst);
  EXPECT_EQ(first_yield_after(backoff, 2 * kFirst), kMost) << "with the last poll of its patience: soon";
  EXPECT_EQ(first_yield_after(backoff, 1), kMost);
}

TEST(PollBackoff, what_is_found_after_the_core_was_given_away_makes_it_less_patient_down_to_a_bound) {
  PollBackoff backoff;
  for (uint32_t expected = kFirst / 2; expected > kLeast; expected /= 2) {
    EXPECT_EQ(first_yield_after(backoff, 2 * expected + 1), expected);
  }
  EXPECT_EQ(first_yield_after(backoff, kFirst), kLeast);
  EXPECT_EQ(first_yield_after(backoff, kFirst), kLeast);
}

TEST(PollBackoff, what_is_found_at_once_tells_nothing) {
  PollBackoff backoff;
  EXPECT_EQ(first_yield_after(backoff, 0), kFirst);
  EXPECT_EQ(first_yield_after(backoff, kFirst + 1), kFirst / 2);
  EXPECT_EQ(first_yield_after(backoff, 0), kFirst / 2);
}

TEST(PollBackoff, who_shares_the_core_with_its_peer_gives_it_away_with_each_poll) {
  PollBackoff backoff;
  for (int i = 0; i < 8; ++i) {
    poll_in_vain(backoff, kMost + 1);
    backoff.note_found();
  }
  for (uint32_t poll = 1; poll <= 3 * kLeast; ++poll) {
    EXPECT_EQ(backoff.note_empty().gives_core_away, poll >= kLeast) << poll;
  }
  backoff.note_found();
  EXPECT_EQ(first_yield_after(backoff, 1), 2 * kLeast) << "it comes back from there";
}

TEST(PollBackoff, looks_at_timers_whenever_it_may_have_been_away_and_now_and_then) {
  PollBackoff backoff;
  poll_in_vain(backoff, 1);
  backoff.note_found();
  poll_in_vain(backoff, 1);
  backoff.note_found();  // as patient as it gets
  for (uint32_t poll = 1; poll <= 3 * PollBackoff::kPollsBetweenChecks; ++poll) {
    const PollBackoff::Step step = backoff.note_empty();
    const bool is_due = step.gives_core_away || poll % PollBackoff::kPollsBetweenChecks == 0;
    EXPECT_EQ(step.looks_at_timers, is_due) << poll;
    EXPECT_EQ(step.looks_at_timers && poll < kMost, false) << "a poll that spins reads no clock: " << poll;
  }
}

TEST(PollBackoff, looks_at_timers_once_in_a_time) {
  constexpr uint64_t kPause = PollBackoff::kNsBetweenChecks;
  constexpr uint64_t kNow = 1'000'000'000;
  PollBackoff backoff;
  EXPECT_TRUE(backoff.is_check_due(kNow));
  EXPECT_FALSE(backoff.is_check_due(kNow));
  EXPECT_FALSE(backoff.is_check_due(kNow + kPause - 1));
  EXPECT_TRUE(backoff.is_check_due(kNow + kPause)) << "a look that was not due is none";
  EXPECT_FALSE(backoff.is_check_due(kNow + 2 * kPause - 1));
}

TEST(PollBackoff, one_in_sixteen_polls_looks_at_sends_that_nobody_waits_for) {
  PollBackoff backoff;
  for (uint32_t poll = 1; poll <= 64; ++poll) {
    EXPECT_EQ(backoff.looks_at_all_sends(), poll % 16 == 0) << poll;
    backoff.note_empty();
  }
  poll_in_vain(backoff, 15);
  EXPECT_TRUE(backoff.looks_at_all_sends());
  backoff.note_found();
  EXPECT_FALSE(backoff.looks_at_all_sends());
}

}  // namespace
}  // namespace ringbolt::device
