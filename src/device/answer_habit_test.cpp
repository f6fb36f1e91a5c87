#include "device/answer_habit.h"

#include <gtest/gtest.h>

namespace ringbolt::device {
namespace {

constexpr uint64_t kPrompt = AnswerHabit::kPromptNs;

void answer(AnswerHabit& habit, uint64_t at_ns, uint64_t after_ns) {
  habit.note_received(at_ns);
  habit.note_sent(at_ns + after_ns);
}

TEST(AnswerHabit, is_one_from_the_second_prompt_answer_on) {
  AnswerHabit habit;
  EXPECT_FALSE(habit.is_prompt());
  answer(habit, 1000, kPrompt);
  EXPECT_FALSE(habit.is_prompt());
  answer(habit, 2000, 0);
  EXPECT_TRUE(habit.is_prompt());
  answer(habit, 3000, 1);
  EXPECT_TRUE(habit.is_prompt());
}

TEST(AnswerHabit, ends_with_a_late_answer_and_begins_anew) {
  AnswerHabit habit;
  answer(habit, 1000, 0);
  answer(habit, 2000, 0);
  answer(habit, 3000, kPrompt + 1);
  EXPECT_FALSE(habit.is_prompt());
  answer(habit, 4000, 0);
  EXPECT_FALSE(habit.is_prompt());
  answer(habit, 5000, 0);
  EXPECT_TRUE(habit.is_prompt());
}

TEST(AnswerHabit, ends_when_the_program_looks_for_more) {
  AnswerHabit habit;
  answer(habit, 1000, 0);
  answer(habit, 2000, 0);
  habit.note_received(3000);
  EXPECT_TRUE(habit.is_answer_due());
  habit.note_unanswered();
  EXPECT_FALSE(habit.is_answer_due());
  EXPECT_FALSE(habit.is_prompt());
}

TEST(AnswerHabit, is_not_shown_by_sends_that_answer_nothing) {
  AnswerHabit habit;
  for (uint64_t at = 1; at < 10; ++at) {
    habit.note_sent(at);
  }
  EXPECT_FALSE(habit.is_prompt());
  answer(habit, 100, 0);
  habit.note_sent(101);
  EXPECT_FALSE(habit.is_prompt());
}

}  // namespace
}  // namespace ringbolt::device
