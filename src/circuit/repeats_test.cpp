#include "circuit/repeats.h"

#include <gtest/gtest.h>

#include <deque>
#include <random>
#include <vector>

// Frames of a rail that loses some: which are sent again, and when nobody answers any more.
namespace ringbolt::circuit {
namespace {

constexpr uint64_t kMs = 1'000'000;

class RepeatsTest : public testing::Test {
 protected:
  void send(uint32_t n) {
    for (uint32_t i = 0; i < n; ++i) {
      repeats.note_sent(now_ns);
    }
  }
  /// All that is due just now.
  std::vector<uint32_t> due() {
    std::vector<uint32_t> numbers;
    for (auto one = repeats.take_due(now_ns); one.what == Repeats::What::frame; one = repeats.take_due(now_ns)) {
      numbers.push_back(one.number);
    }
    return numbers;
  }
  using Numbers = std::vector<uint32_t>;

  Repeats repeats;
  uint64_t now_ns = 1000 * kMs;
};

TEST_F(RepeatsTest, sends_nothing_again_while_all_comes) {
  send(4);
  repeats.hear(2, 0b11, now_ns);
  repeats.hear(4, 0, now_ns);
  now_ns += 40 * kMs;
  EXPECT_EQ(repeats.take_due(now_ns).what, Repeats::What::nothing);
}

TEST_F(RepeatsTest, sends_a_gap_again_at_once) {
  send(5);
  repeats.hear(1, 0b1010, now_ns);  // 0, 2 and 4 are here
  EXPECT_EQ(due(), (Numbers{1, 3}));
  EXPECT_EQ(due(), Numbers{}) << "once";
  repeats.hear(1, 0b1010, now_ns);
  EXPECT_EQ(due(), Numbers{}) << "an answer that says nothing new";
}

TEST_F(RepeatsTest, sends_a_repetition_again_that_is_lost_itself) {
  send(4);
  repeats.hear(0, 0b1000, now_ns);
  EXPECT_EQ(due(), (Numbers{0, 1, 2}));
  repeats.hear(0, 0b1100, now_ns);  // 2 was sent after 0 and 1
  EXPECT_EQ(due(), (Numbers{0, 1}));
}

TEST_F(RepeatsTest, asks_for_the_oldest_by_time_later_and_later) {
  send(3);
  repeats.hear(1, 0, now_ns);
  std::vector<uint64_t> waited_ms;
  uint64_t since_ns = now_ns;
  for (const uint64_t begin_ns = now_ns; now_ns < begin_ns + 2000 * kMs; now_ns += kMs) {
    const Repeats::Due one = repeats.take_due(now_ns);
    if (one.what == Repeats::What::give_up) {
      break;
    }
    if (one.what == Repeats::What::frame) {
      EXPECT_EQ(one.number, 1U);
      waited_ms.push_back((now_ns - since_ns) / kMs);
      since_ns = now_ns;
    }
  }
  EXPECT_EQ(waited_ms, (std::vector<uint64_t>{4, 8, 16, 32, 64, 128, 256}));
  EXPECT_EQ((now_ns - since_ns) / kMs, 512U) << "then it is given up";
  EXPECT_EQ(repeats.n_tries(), Repeats::kMostTries);
}

TEST_F(RepeatsTest, begins_anew_with_any_news) {
  send(2);
  for (int i = 0; i < 5; ++i) {
    now_ns += 100 * kMs;
    (void)repeats.take_due(now_ns);
  }
  EXPECT_EQ(repeats.n_tries(), 5U);
  repeats.hear(1, 0, now_ns);
  EXPECT_EQ(repeats.n_tries(), 0U);
}

TEST_F(RepeatsTest, asks_what_has_become_of_frames_that_wait_for_receives) {
  send(1);
  repeats.hear(0, 1, now_ns);
  now_ns += Repeats::kAskNs - 1;
  EXPECT_EQ(repeats.take_due(now_ns).what, Repeats::What::nothing);
  now_ns += 1;
  EXPECT_EQ(repeats.take_due(now_ns).what, Repeats::What::greeting);
  repeats.hear(0, 1, now_ns);
  EXPECT_EQ(repeats.take_due(now_ns + 10 * kMs).what, Repeats::What::nothing) << "that is an answer";
}

TEST_F(RepeatsTest, keeps_an_idle_rail_warm_and_notices_that_it_is_dead) {
  repeats.note_greeting(now_ns);
  repeats.hear_greeting(now_ns);
  now_ns += Repeats::kKeepWarmNs;
  EXPECT_EQ(repeats.take_due(now_ns).what, Repeats::What::greeting);
  bool has_given_up = false;
  for (int i = 0; i < 1100 && !has_given_up; ++i) {
    now_ns += kMs;
    has_given_up = repeats.take_due(now_ns).what == Repeats::What::give_up;
  }
  EXPECT_TRUE(has_given_up);
}

TEST_F(RepeatsTest, passes_over_answers_that_are_late_or_can_not_be) {
  send(4);
  repeats.hear(3, 0, now_ns);
  repeats.hear(1, 0xffff, now_ns);
  repeats.hear(5, 0, now_ns);
  now_ns += 4 * kMs;
  EXPECT_EQ(repeats.take_due(now_ns).number, 3U);
}

TEST(Come, counts_each_frame_once) {
  Come come;
  EXPECT_EQ(come.note(0, 0), Come::Is::news);
  EXPECT_EQ(come.note(0, 0), Come::Is::known);
  EXPECT_EQ(come.note(kWindow - 1, 0), Come::Is::news);
  EXPECT_EQ(come.note(kWindow, 0), Come::Is::impossible);
  EXPECT_EQ(come.bits(0), 1U | 1U << (kWindow - 1));
  come.forget(0);
  EXPECT_EQ(come.note(0, 1), Come::Is::known) << "it is taken";
  EXPECT_EQ(come.note(kWindow, 1), Come::Is::news);
  EXPECT_EQ(come.bits(1), 1U << (kWindow - 2) | 1U << (kWindow - 1));
}

/// Both ends over a way that keeps the order and loses frames and answers by chance.
TEST(Repeats, bring_all_frames_over_a_way_that_loses_many) {
  for (uint32_t seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    const auto percent = static_cast<uint32_t>(random() % 12);
    const auto is_lost = [&] { return random() % 100 < percent; };
    Repeats repeats;
    Come come;
    std::deque<uint32_t> frames;
    std::deque<std::pair<uint32_t, uint32_t>> answers;
    uint32_t n_sent = 0;
    uint32_t n_known = 0;  // to be taken
    uint32_t n_taken = 0;
    std::vector<bool> has_come(400);
    uint64_t now_ns = kMs;
    for (int step = 0; n_known < has_come.size(); ++step) {
      ASSERT_LT(step, 400'000) << "seed " << seed;
      now_ns += kMs / 20;
      if (n_sent < has_come.size() && n_sent - n_known < kWindow) {
        repeats.note_sent(now_ns);
        frames.push_back(n_sent++);
      }
      const Repeats::Due due = repeats.take_due(now_ns);
      if (due.what == Repeats::What::frame) {
        frames.push_back(due.number);
      } else if (due.what == Repeats::What::greeting && !is_lost()) {
        answers.emplace_back(n_taken, come.bits(n_taken));
      }
      ASSERT_NE(due.what, Repeats::What::give_up) << "seed " << seed;
      if (!frames.empty() && random() % 2 == 0) {
        const uint32_t number = frames.front();
        frames.pop_front();
        if (!is_lost()) {
          const Come::Is is = come.note(number, n_taken);
          ASSERT_NE(is, Come::Is::impossible);
          ASSERT_EQ(is == Come::Is::news, !has_come[number]);
          has_come[number] = true;
          if (!is_lost()) {
            answers.emplace_back(n_taken, come.bits(n_taken));
          }
        }
      }
      if (!answers.empty() && random() % 2 == 0) {
        const auto [taken, bits] = answers.front();
        answers.pop_front();
        repeats.hear(taken, bits, now_ns);
        n_known = std::max(n_known, taken);
      }
      for (; random() % 4 != 0 && n_taken < has_come.size() && has_come[n_taken]; ++n_taken) {
        come.forget(n_taken);
      }
    }
  }
}

}  // namespace
}  // namespace ringbolt::circuit
