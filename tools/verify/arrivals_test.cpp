#include "verify/arrivals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "pair/values.h"
#include "verify/ledger.h"

namespace ringbolt::tools::verify {
namespace {

using testing::HasSubstr;
using Bytes = std::vector<std::byte>;
constexpr uint64_t kSeed = 99;
constexpr uint16_t kEpoch = 7;

struct Lane {
  explicit Lane(Order order = Order::kStrict, uint32_t loss_ppm = 0) {
    step.order = order;
    step.loss_ppm = loss_ppm;
    step.least_bytes = 16;
    step.most_bytes = 5000;
    step.seed = kSeed;
  }

  Bytes message(uint64_t sequence, uint16_t epoch = kEpoch, uint8_t queue_pair = 2) const {
    const uint32_t length = size_of(step, queue_pair, sequence);
    Bytes bytes(length);
    write_message(bytes, kSeed, {epoch, queue_pair, sequence, length});
    return bytes;
  }
  /// As a receiver does.
  void take(const Bytes& bytes) {
    if (!arrivals.accept(bytes, bytes.size())) {
      arrivals.examine(bytes, bytes.size(), false);
    }
  }
  void take(uint64_t sequence) { take(message(sequence)); }
  std::string first_text() const { return tally.findings().empty() ? "" : tally.findings().front().text; }

  Step step;
  Tally tally;
  Arrivals arrivals{step, 2, kEpoch, kSeed, tally};
};

TEST(Arrivals, whole_messages_in_order_are_well) {
  Lane lane;
  for (uint64_t sequence = 0; sequence < 300; ++sequence) {
    lane.take(sequence);
  }
  lane.arrivals.give_up(300);
  lane.arrivals.judge_loss(300);
  EXPECT_EQ(lane.tally.total(), 0U) << lane.first_text();
  EXPECT_EQ(lane.arrivals.messages(), 300U);
  EXPECT_EQ(lane.arrivals.settled(), 300U);
}

TEST(Arrivals, gap_is_a_loss_when_it_stays) {
  Lane lane;
  for (const uint64_t sequence : {0U, 1U, 3U, 4U}) {
    lane.take(sequence);
  }
  EXPECT_EQ(lane.arrivals.settled(), 4U);
  lane.arrivals.give_up(6);
  lane.arrivals.judge_loss(6);
  EXPECT_EQ(lane.tally.count(Kind::kLost), 2U);
  EXPECT_THAT(lane.first_text(),
              HasSubstr("queue pair 2: 2 of 6 messages never came; expected 2, found 3; message 5 never"));
  EXPECT_EQ(lane.tally.total(), 2U);
}

TEST(Arrivals, allowed_loss_is_none) {
  Lane lane(Order::kStrict, 500'000);
  lane.take(0);
  lane.take(2);
  lane.arrivals.give_up(4);
  lane.arrivals.judge_loss(4);
  EXPECT_EQ(lane.tally.total(), 0U);
  EXPECT_EQ(lane.arrivals.lost(), 2U);
}

TEST(Arrivals, overtaken_message_is_out_of_order_and_not_lost) {
  Lane lane;
  for (const uint64_t sequence : {0U, 2U, 1U, 3U}) {
    lane.take(sequence);
  }
  lane.arrivals.give_up(4);
  lane.arrivals.judge_loss(4);
  EXPECT_EQ(lane.tally.count(Kind::kOrder), 1U);
  EXPECT_EQ(lane.tally.total(), 1U);
  Lane any(Order::kAny);
  for (const uint64_t sequence : {0U, 2U, 1U, 3U}) {
    any.take(sequence);
  }
  EXPECT_EQ(any.tally.total(), 0U);
}

TEST(Arrivals, repeated_message_is_doubled) {
  for (const Order order : {Order::kStrict, Order::kAny}) {
    Lane lane(order);
    for (const uint64_t sequence : {0U, 1U, 1U, 2U}) {
      lane.take(sequence);
    }
    lane.arrivals.give_up(3);
    lane.arrivals.judge_loss(3);
    EXPECT_EQ(lane.tally.count(Kind::kDoubled), 1U);
    EXPECT_EQ(lane.tally.total(), 1U);
  }
}

TEST(Arrivals, damage_names_byte_and_bits) {
  for (const Order order : {Order::kStrict, Order::kAny}) {
    for (const size_t at : {0U, 9U, 40U}) {
      Lane lane(order);
      Bytes bytes = lane.message(0);
      bytes.resize(size_of(lane.step, 2, 0));
      if (bytes.size() <= 40) {
        GTEST_SKIP() << "the seed makes the first message too short";
      }
      bytes[at] ^= std::byte{0x81};
      lane.take(bytes);
      lane.take(1);
      lane.arrivals.give_up(2);
      lane.arrivals.judge_loss(2);
      EXPECT_EQ(lane.tally.count(Kind::kDamaged), 1U) << lane.first_text();
      EXPECT_EQ(lane.tally.total(), 1U);
      EXPECT_THAT(lane.first_text(), HasSubstr("first at byte " + std::to_string(at)));
      EXPECT_THAT(lane.first_text(), HasSubstr("1 byte and 2 bits differ"));
    }
  }
}

TEST(Arrivals, wrong_length_is_told_with_both) {
  Lane lane;
  Bytes bytes = lane.message(0);
  bytes.pop_back();
  lane.take(bytes);
  EXPECT_EQ(lane.tally.count(Kind::kLength), 1U) << lane.first_text();
}

TEST(Arrivals, messages_of_other_queue_pairs_are_foreign) {
  Lane lane;
  lane.take(lane.message(0, kEpoch - 1));
  EXPECT_THAT(lane.first_text(), HasSubstr("of a queue pair that is gone (epoch 6, this one is 7)"));
  lane.take(lane.message(0, kEpoch, 1));
  EXPECT_EQ(lane.tally.count(Kind::kForeign), 2U);
  lane.take(0);
  EXPECT_EQ(lane.tally.total(), 2U);
}

TEST(Arrivals, numbers_that_no_sender_can_have_reached_are_foreign) {
  for (const Order order : {Order::kStrict, Order::kAny}) {
    Lane lane(order);
    lane.take(lane.message(1'000'000));
    EXPECT_EQ(lane.tally.count(Kind::kForeign), 1U);
    EXPECT_THAT(lane.first_text(), HasSubstr("was not sent in this run (1000000 of "));
    lane.take(0);
    EXPECT_EQ(lane.tally.total(), 1U);
  }
}

TEST(Arrivals, any_bytes_are_safe) {
  for (const Order order : {Order::kStrict, Order::kAny}) {
    Lane lane(order);
    for (size_t length = 0; length < 200; ++length) {
      Bytes noise(length);
      fill(noise, 0, mixed(length));
      lane.take(noise);
    }
    EXPECT_GT(lane.tally.total(), 100U);
    lane.arrivals.give_up(UINT64_MAX);
    lane.arrivals.judge_loss(UINT64_MAX);
  }
}

TEST(Step, survives_the_way_and_nonsense_does_not) {
  Step step;
  step.mode = Mode::kChurn;
  step.transport = pair::Transport::kUc;
  step.count = 5;
  step.most_bytes = 77;
  step.seed = UINT64_MAX;
  const std::string text = to_line(step);
  EXPECT_EQ(pair::value_in<Step>(text), step);
  for (size_t length = 0; length + 1 < text.size(); ++length) {
    EXPECT_FALSE(pair::value_in<Step>(text.substr(0, length))) << length;
  }
  EXPECT_FALSE(pair::value_in<Step>(text + " 1"));
  step.queue_pairs = 100'000;
  EXPECT_FALSE(pair::value_in<Step>(to_line(step)));
}

TEST(Step, queue_pairs_of_frame_counters_keep_to_a_number_of_frames) {
  Step step;
  step.counts_frames = true;
  step.queue_pairs = 4;
  step.most_bytes = 65536;
  for (uint32_t queue_pair = 0; queue_pair < 4; ++queue_pair) {
    const uint64_t frames = (sizes_of(step, queue_pair).most + kFrameBytes - 1) / kFrameBytes;
    for (uint64_t sequence = 0; sequence < 500; ++sequence) {
      EXPECT_EQ((size_of(step, queue_pair, sequence) + kFrameBytes - 1) / kFrameBytes, frames);
    }
  }
  EXPECT_EQ(sizes_of(step, 0).most, 4096U);
  EXPECT_EQ(sizes_of(step, 3).most, 65536U);
}

TEST(Ledger, finds_what_does_not_add_up) {
  Tally tally;
  Ledger ledger(2, tally);
  ledger.begin(4);
  ledger.shared_addition(0, 0);
  ledger.shared_addition(1, 1);
  EXPECT_TRUE(ledger.exchange(0, 0, 5, 0));
  EXPECT_FALSE(ledger.exchange(1, 0, 6, 5));
  EXPECT_TRUE(ledger.exchange(1, 5, 7, 5));
  EXPECT_EQ(ledger.end(), 7U);
  EXPECT_EQ(tally.total(), 0U);
  ledger.shared_addition(1, 1);
  EXPECT_EQ(tally.count(Kind::kAccount), 1U);
  ledger.own_addition(0, 3, 0);
  ledger.own_addition(0, 3, 4);
  EXPECT_EQ(tally.count(Kind::kAccount), 2U);
  ledger.begin(4);
  EXPECT_TRUE(ledger.exchange(0, 9, 10, 9));
  EXPECT_EQ(ledger.end(), 7U);
  EXPECT_EQ(tally.count(Kind::kAccount), 3U);
}

}  // namespace
}  // namespace ringbolt::tools::verify
