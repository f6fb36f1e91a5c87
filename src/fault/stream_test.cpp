#include "fault/stream.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>

#include "fault/plan_text.h"

namespace ringbolt::fault {
namespace {

constexpr size_t kFrameBytes = 1044;

Plan plan_of(const std::string& text) {
  auto plan = parse_plan(text);
  EXPECT_TRUE(plan) << plan.error().text();
  return plan ? *plan : Plan{};
}

Stream stream_of(const std::string& text, Direction direction = Direction::send,
                 const Place& place = {{}, {}, "rdma_a"}) {
  Stream stream(place, direction);
  stream.set_rules(plan_of(text), 0);
  return stream;
}

std::vector<Verdict> judge(Stream stream, size_t frames) {
  std::vector<Verdict> verdicts;
  for (size_t i = 0; i < frames; ++i) {
    verdicts.push_back(stream.judge(kFrameBytes, i * 1000));
  }
  return verdicts;
}

constexpr const char* kEverything =
    "loss 1%; duplicate 2%; reorder 3% by 4; corrupt 4% bits 2; truncate 5%; delay 6% by 1ms jitter 300us";

TEST(FaultStream, without_rules_every_frame_is_clean) {
  for (const Verdict& verdict : judge(stream_of(""), 1000)) {
    EXPECT_TRUE(verdict.is_clean());
  }
  EXPECT_FALSE(stream_of("").has_rules());
  EXPECT_FALSE(stream_of("loss 1% port rdma_b").has_rules());
}

TEST(FaultStream, each_kind_happens_as_often_as_it_says) {
  constexpr size_t kFrames = 1'000'000;
  for (const double chance : {0.0001, 0.001, 0.01, 0.1, 1.0}) {
    const std::string text = std::to_string(chance * 100) + "%";
    Stream stream = stream_of("loss " + text + " direction receive; duplicate " + text + "; reorder " + text +
                              "; corrupt " + text + "; truncate " + text);
    for (size_t i = 0; i < kFrames; ++i) {
      (void)stream.judge(kFrameBytes, 0);
    }
    const double expected = chance * kFrames;
    const double spread = 5 * std::sqrt(expected * (1 - chance));  // five sigma; the seed is fixed
    const Tally& tally = stream.tally();
    for (const uint64_t count : {tally.duplicated, tally.reordered, tally.corrupted, tally.truncated}) {
      EXPECT_NEAR(static_cast<double>(count), expected, spread) << chance;
    }
    EXPECT_EQ(tally.lost, 0U);
  }
}

TEST(FaultStream, hundred_runs_of_one_seed_are_the_same) {
  const auto first = judge(stream_of(kEverything), 20'000);
  for (int run = 1; run < 100; ++run) {
    ASSERT_EQ(judge(stream_of(kEverything), 20'000), first) << "run " << run;
  }
}

TEST(FaultStream, seed_place_direction_and_kind_each_choose_other_frames) {
  const auto lost = [](const std::string& text, Direction direction, const Place& place) {
    std::set<size_t> frames;
    const auto verdicts = judge(stream_of(text, direction, place), 10'000);
    for (size_t i = 0; i < verdicts.size(); ++i) {
      if (!verdicts[i].is_clean()) {
        frames.insert(i);
      }
    }
    return frames;
  };
  const Place place{0, 0, "rdma_a"};
  const auto base = lost("loss 1%", Direction::send, place);
  EXPECT_GT(base.size(), 50U);
  const std::set<size_t> others[] = {
      lost("loss 1% seed 2", Direction::send, place),     lost("loss 1%", Direction::receive, place),
      lost("loss 1%", Direction::send, {1, 0, "rdma_a"}), lost("loss 1%", Direction::send, {0, 0, "rdma_b"}),
      lost("duplicate 1%", Direction::send, place),       lost("loss 1%", Direction::send, {{}, 0, "rdma_a"})};
  for (const auto& other : others) {
    std::vector<size_t> both;
    std::ranges::set_intersection(base, other, std::back_inserter(both));
    EXPECT_LT(both.size(), 10U);
  }
}

TEST(FaultStream, rules_do_not_disturb_each_other) {
  const auto alone = judge(stream_of("loss 1%"), 5000);
  const auto beside = judge(stream_of("duplicate 50%; loss 1%; corrupt 10%"), 5000);
  for (size_t i = 0; i < alone.size(); ++i) {
    EXPECT_EQ(alone[i].is_lost, beside[i].is_lost) << i;
  }
}

TEST(FaultStream, rule_that_stays_goes_on_counting_and_a_new_one_begins_at_0) {
  const auto whole = judge(stream_of("loss 10%"), 2000);
  Stream stream = stream_of("loss 10%");
  for (size_t i = 0; i < 2000; ++i) {
    if (i == 700) {
      stream.set_rules(plan_of("duplicate 100% frames 0-9; loss 10%"), i * 1000);
    }
    const Verdict verdict = stream.judge(kFrameBytes, i * 1000);
    EXPECT_EQ(verdict.is_lost, whole[i].is_lost) << i;
    EXPECT_EQ(!verdict.is_lost && i >= 700 && i < 710, verdict.copies == 1) << i;
  }
}

TEST(FaultStream, frames_and_time_bound_a_rule) {
  const auto by_frames = judge(stream_of("loss 100% frames 10-19"), 40);
  const auto by_time = judge(stream_of("loss 100% time 10us-20us"), 40);
  const auto open = judge(stream_of("loss 100% frames 30-"), 40);
  for (size_t i = 0; i < 40; ++i) {
    EXPECT_EQ(by_frames[i].is_lost, i >= 10 && i < 20) << i;
    EXPECT_EQ(by_time[i].is_lost, i >= 10 && i < 20) << i;
    EXPECT_EQ(open[i].is_lost, i >= 30) << i;
  }
}

TEST(FaultStream, strength_is_as_the_rule_says) {
  Stream stream =
      stream_of("reorder 100% by 7 within 3ms; corrupt 100% bits 4; delay 100% by 5ms jitter 2ms; truncate 100%");
  uint64_t least = UINT64_MAX;
  uint64_t most = 0;
  for (int i = 0; i < 10'000; ++i) {
    const Verdict verdict = stream.judge(64, 0);
    EXPECT_EQ(verdict.overtakers, 7U);
    ASSERT_EQ(verdict.flip_count, 4U);
    const std::set<uint32_t> bits(verdict.flips.begin(), verdict.flips.begin() + 4);
    EXPECT_LT(*bits.rbegin(), 64U * 8);
    EXPECT_GE(verdict.kept_bytes, 1U);
    EXPECT_LT(verdict.kept_bytes, 64U);
    least = std::min(least, verdict.hold_ns);
    most = std::max(most, verdict.hold_ns);
  }
  EXPECT_GE(least, 6'000'000U);  // 3 ms and at least 3 more
  EXPECT_LT(least, 6'100'000U);
  EXPECT_LE(most, 10'000'000U);
  EXPECT_GT(most, 9'900'000U);
}

TEST(FaultStream, lost_frame_suffers_nothing_else) {
  for (const Verdict& verdict : judge(stream_of("loss 50%; duplicate 100%; corrupt 100%"), 100)) {
    EXPECT_EQ(verdict.is_lost, verdict.copies == 0 && verdict.flip_count == 0);
  }
}

TEST(FaultStream, turned_bits_are_those_named) {
  Verdict verdict;
  verdict.flip_count = 3;
  verdict.flips = {0, 15, 999};  // the last lies beyond the frame
  std::array<std::byte, 2> frame{};
  turn_bits(verdict, frame);
  EXPECT_EQ(frame[0], std::byte{0x01});
  EXPECT_EQ(frame[1], std::byte{0x80});
}

Stream messages_of(const std::string& text) {
  Stream stream({{}, {}, "rdma_a"}, Direction::send, Subject::message);
  stream.set_rules(plan_of(text), 0);
  return stream;
}

TEST(FaultStream, a_shape_queues_messages_behind_each_other) {
  Stream stream = messages_of("shape rate 8Gbit by 5us");  // a byte a nanosecond
  EXPECT_EQ(stream.judge(1000, 0).hold_ns, 6'000U);
  EXPECT_EQ(stream.judge(1000, 0).hold_ns, 7'000U);
  EXPECT_EQ(stream.judge(1000, 500).hold_ns, 7'500U);
  EXPECT_EQ(stream.judge(1000, 1'000'000).hold_ns, 6'000U);  // the cable is free again
}

TEST(FaultStream, a_window_lets_so_many_frames_through_in_a_round_trip) {
  Stream stream = messages_of("shape by 5us window 2");
  EXPECT_EQ(stream.judge(64, 0).hold_ns, 10'000U);
  EXPECT_EQ(stream.judge(64, 0).hold_ns, 15'000U);
  EXPECT_EQ(stream.judge(8192, 0).hold_ns, 25'000U);
}

TEST(FaultStream, a_lost_message_is_still_early) {
  const Verdict verdict = messages_of("completion-early by 1ms; message-loss 100%; rnr").judge(64, 0);
  EXPECT_TRUE(verdict.is_early);
  EXPECT_TRUE(verdict.is_lost);
  EXPECT_TRUE(verdict.is_not_ready);
  EXPECT_EQ(verdict.hold_ns, 1'000'000U);
}

TEST(FaultStream, repetitions_take_no_number_and_disturb_nobody) {
  Stream plain = messages_of("message-loss 30% seed 5");
  Stream repeating = messages_of("message-loss 30% seed 5");
  size_t losses = 0;
  for (uint64_t i = 0; i < 500; ++i) {
    const Verdict verdict = plain.judge(64, 0);
    EXPECT_EQ(verdict, repeating.judge(64, 0));
    const bool is_lost = repeating.judge_again(verdict.number, 1, 64, 0).is_lost;
    EXPECT_EQ(is_lost, plain.judge_again(verdict.number, 1, 64, 999).is_lost);  // whenever it comes
    losses += is_lost ? 1U : 0U;
  }
  EXPECT_GT(losses, 100U);
  EXPECT_LT(losses, 200U);
}

TEST(FaultStream, a_repetition_counts_as_the_message_after) {
  Stream stream = messages_of("message-loss 100% count 1-2");
  EXPECT_FALSE(stream.judge(64, 0).is_lost);
  EXPECT_TRUE(stream.judge(64, 0).is_lost);
  EXPECT_TRUE(stream.judge_again(1, 1, 64, 0).is_lost);
  EXPECT_FALSE(stream.judge_again(1, 2, 64, 0).is_lost);
}

TEST(FaultStream, objects_are_refused_from_so_many_on) {
  Stream pairs({{}, {}, "rdma_a"}, Direction::send, Subject::object, Object::qp);
  pairs.set_rules(plan_of("exhaust object qp left 3; exhaust object pd; pd-null"), 0);
  EXPECT_FALSE(pairs.judge(2, 0).is_refused);
  EXPECT_TRUE(pairs.judge(3, 0).is_refused);
  Stream domains({{}, {}, "rdma_a"}, Direction::send, Subject::object, Object::pd);
  domains.set_rules(plan_of("pd-null count 1-1"), 0);
  EXPECT_FALSE(domains.judge(0, 0).is_refused);
  EXPECT_TRUE(domains.judge(0, 0).is_refused);
  EXPECT_FALSE(domains.judge(0, 0).is_refused);
}

TEST(FaultStream, states_hold_in_their_time_and_are_not_counted) {
  Stream states({1, 2, "rdma_a", 3}, Direction::send, Subject::state);
  states.set_rules(plan_of("frozen node 3 time 1s-2s; flap by 1ms every 2ms node 7; cross-cables node 3 cable 9 with 2"), 0);
  EXPECT_EQ(states.holding(Kind::frozen, 0), nullptr);
  EXPECT_NE(states.holding(Kind::frozen, 1'500'000'000), nullptr);  // the peer is: both ends suffer
  EXPECT_EQ(states.holding(Kind::frozen, 2'000'000'000), nullptr);
  EXPECT_EQ(states.holding(Kind::flap, 0), nullptr);
  EXPECT_NE(states.holding(Kind::cross_cables, 0), nullptr);
}

TEST(States, a_pulled_cable_is_plugged_back_in_after_its_time) {
  constexpr uint64_t kSecond = 1'000'000'000;
  Stream states({3, 9, "rdma_en2", 4}, Direction::send, Subject::state);
  states.set_rules(plan_of("unplug mode flush time 1s- restore 2s node 4"), 0);
  EXPECT_EQ(states.holding(Kind::unplug, kSecond - 1), nullptr);
  ASSERT_NE(states.holding(Kind::unplug, kSecond), nullptr);  // the other end's node is meant, and both ends feel it
  EXPECT_EQ(states.holding(Kind::unplug, kSecond)->unplug, Unplug::flush);
  EXPECT_NE(states.holding(Kind::unplug, 3 * kSecond - 1), nullptr);
  EXPECT_EQ(states.holding(Kind::unplug, 3 * kSecond), nullptr);
  states.set_rules(plan_of("unplug mode hang"), 0);
  EXPECT_NE(states.holding(Kind::unplug, 1000 * kSecond), nullptr);
}

}  // namespace
}  // namespace ringbolt::fault
