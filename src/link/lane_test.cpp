#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "link/lane_consumer.h"
#include "link/lane_producer.h"

namespace ringbolt::link {
namespace {

/// A lane in plain memory with both its ends.
struct Lane {
  std::unique_ptr<LaneMemory> memory{new LaneMemory{}};
  LaneProducer producer{*memory};
  LaneConsumer consumer{*memory};

  void send(uint32_t immediate) { producer.publish(SlotKind::send, kSlotFirst | kSlotLast, 0, immediate, 0, 0, false); }
};

TEST(Lane, delivers_in_order_and_nothing_before_it_is_published) {
  Lane lane;
  SlotHeader header;
  EXPECT_FALSE(lane.consumer.peek(header));
  for (uint32_t i = 0; i < 3 * kLaneSlots; ++i) {
    lane.send(i);
    ASSERT_TRUE(lane.consumer.peek(header));
    EXPECT_EQ(header.immediate, i);
    lane.consumer.release();
    ASSERT_FALSE(lane.consumer.peek(header)) << "the slot of the last lap was taken for a new one";
    lane.producer.take_consumed(lane.consumer.consumed());
  }
}

TEST(Lane, last_waiting_slot_has_the_latest_count) {
  Lane lane;
  uint32_t consumed = 77;
  EXPECT_FALSE(lane.consumer.last_heard(consumed));
  for (uint32_t i = 0; i < kLaneSlots + 3; ++i) {  // a lap, so that slots of the last one lie there too
    lane.send(i);
    lane.consumer.release();
    lane.producer.take_consumed(lane.consumer.consumed());
  }
  EXPECT_FALSE(lane.consumer.last_heard(consumed));
  EXPECT_EQ(consumed, 77U) << "of a slot that was done with";
  for (uint32_t i = 1; i <= kLaneSlots; ++i) {
    lane.producer.publish(SlotKind::send, kSlotFirst | kSlotLast, 0, 0, 1000 + i, 0, false);
    ASSERT_TRUE(lane.consumer.last_heard(consumed));
    ASSERT_EQ(consumed, 1000 + i);
  }
}

TEST(Lane, holds_exactly_its_slots) {
  Lane lane;
  for (uint32_t i = 0; i < kLaneSlots; ++i) {
    ASSERT_TRUE(lane.producer.has_slot());
    lane.send(i);
  }
  EXPECT_FALSE(lane.producer.has_slot());
  lane.consumer.release();
  EXPECT_FALSE(lane.producer.has_slot()) << "the producer can't know yet";
  lane.consumer.tell();
  lane.producer.refresh();
  EXPECT_TRUE(lane.producer.has_slot());
}

// Payloads of every length, never more in flight than fit, each read back from where it was put.
TEST(Lane, payloads_neither_overlap_nor_leave_the_ring) {
  Lane lane;
  std::mt19937 random(7);
  struct Sent {
    uint32_t length;
    uint8_t seed;
  };
  std::vector<Sent> sent;
  size_t received = 0;
  for (int step = 0; step < 20000; ++step) {
    const auto length = static_cast<uint32_t>(random() % (40U << 10U));
    LaneProducer::Place place;
    if (lane.producer.has_slot() && lane.producer.reserve(length, place)) {
      ASSERT_LE(place.data_at + length, kLaneDataBytes);
      const auto seed = static_cast<uint8_t>(sent.size() * 31);
      std::memset(place.data, seed, length);
      lane.producer.publish(SlotKind::send, 0, length, 0, 0, place.data_at, true);
      sent.push_back({length, seed});
      continue;
    }
    SlotHeader header;
    ASSERT_TRUE(lane.consumer.peek(header)) << "full, and yet nothing to take";
    ASSERT_EQ(header.length, sent[received].length);
    const std::byte* data = lane.consumer.payload(header);
    ASSERT_NE(data, nullptr);
    for (uint32_t i = 0; i < header.length; i += 997) {
      ASSERT_EQ(static_cast<uint8_t>(data[i]), sent[received].seed) << "message " << received << ", byte " << i;
    }
    lane.consumer.release();
    ++received;
    lane.producer.take_consumed(lane.consumer.consumed());
  }
  EXPECT_GT(received, 100U);
}

TEST(Lane, a_payload_of_the_whole_ring_fits_and_one_byte_more_does_not) {
  Lane lane;
  LaneProducer::Place place;
  EXPECT_TRUE(lane.producer.reserve(kLaneDataBytes, place));
  EXPECT_FALSE(lane.producer.reserve(kLaneDataBytes + 1, place));
}

// A peer may write any number where it says how far it is.
TEST(Lane, a_count_of_slots_that_were_never_sent_is_ignored) {
  Lane lane;
  lane.send(1);
  lane.producer.take_consumed(2);
  EXPECT_EQ(lane.producer.consumed(), 0U);
  lane.producer.take_consumed(0xffffffffU);
  EXPECT_EQ(lane.producer.consumed(), 0U);
  lane.producer.take_consumed(1);
  EXPECT_TRUE(lane.producer.is_done(1));
  lane.producer.take_consumed(0);
  EXPECT_EQ(lane.producer.consumed(), 1U) << "it never goes back";
}

TEST(Lane, a_header_that_points_outside_the_ring_has_no_payload) {
  Lane lane;
  SlotHeader header;
  header.length = 64;
  header.data_at = kLaneDataBytes - 64;
  EXPECT_NE(lane.consumer.payload(header), nullptr);
  header.data_at = kLaneDataBytes - 63;
  EXPECT_EQ(lane.consumer.payload(header), nullptr);
  header.data_at = 0;
  header.length = 0xffffffffU;
  EXPECT_EQ(lane.consumer.payload(header), nullptr);
}

TEST(Lane, knows_what_the_producer_was_not_told) {
  Lane lane;
  lane.send(1);
  EXPECT_FALSE(lane.consumer.has_news());
  lane.consumer.release();
  EXPECT_TRUE(lane.consumer.has_news());
  lane.consumer.note_told(lane.consumer.consumed());
  EXPECT_FALSE(lane.consumer.has_news());
}

TEST(Lane, the_consumer_learns_that_somebody_waits_for_room) {
  Lane lane;
  EXPECT_FALSE(lane.consumer.tell());
  lane.producer.wait_for_room(true);
  EXPECT_TRUE(lane.producer.waits_for_room());
  EXPECT_TRUE(lane.consumer.tell());
  lane.producer.wait_for_room(false);
  EXPECT_FALSE(lane.consumer.tell());
}

TEST(Lane, a_wait_for_a_receive_is_noted_for_that_slot_alone) {
  Lane lane;
  lane.send(1);
  EXPECT_FALSE(lane.producer.waits_for_receive());
  lane.consumer.note_waits_for_receive();
  EXPECT_TRUE(lane.producer.waits_for_receive());
  lane.consumer.note_receive_posted();
  EXPECT_FALSE(lane.producer.waits_for_receive());
}

TEST(Lane, the_consumer_learns_that_the_producer_has_ended) {
  Lane lane;
  lane.send(1);
  EXPECT_FALSE(lane.consumer.is_ended());
  lane.producer.end();
  EXPECT_TRUE(lane.consumer.is_ended());
  EXPECT_TRUE(lane.consumer.has_slot());  // a receive that was posted before may take it
}

TEST(Lane, an_unknown_refusal_is_one_all_the_same) {
  Lane lane;
  EXPECT_EQ(lane.producer.refusal(), Refusal::none);
  lane.memory->refusal.store(77);
  EXPECT_EQ(lane.producer.refusal(), Refusal::operation);
}

TEST(Lane, answers_carry_the_number_of_their_operation) {
  Lane lane;
  const uint32_t operation = kLaneResponses + 3;
  EXPECT_NE(lane.producer.response(operation).sequence.load(), operation + 1);
  lane.consumer.respond(operation, 42);
  EXPECT_EQ(lane.producer.response(operation).sequence.load(), operation + 1);
  EXPECT_EQ(lane.producer.response(operation).value, 42U);
}

}  // namespace
}  // namespace ringbolt::link
