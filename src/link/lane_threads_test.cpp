// Both ends of lanes on threads of one process, for thread sanitizer to judge: payloads and headers are plain memory,
// ordered by the words of the lane alone. On x86 the processor would forgive most mistakes that it reports.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>

#include "base/cpu_pause.h"
#include "link/lane_consumer.h"
#include "link/lane_producer.h"

namespace ringbolt::link {
namespace {

struct Lane {
  std::unique_ptr<LaneMemory> memory{new LaneMemory{}};
  LaneProducer producer{*memory};
  LaneConsumer consumer{*memory};
};

void take_turn(uint32_t& turns) {
  base::cpu_pause();
  if (++turns % 64 == 0) {
    std::this_thread::yield();
  }
}

constexpr uint32_t kMessages = 20'000;
constexpr uint32_t kLongBytes = 3'000;

/// Every third message has a payload in the data ring, the others one in their slot.
uint32_t length_of(uint32_t message) { return message % 3 == 0 ? kLongBytes : 32; }
std::byte filling_of(uint32_t message) { return static_cast<std::byte>(message * 7 + 1); }

void send(LaneProducer& producer, uint32_t message, LaneProducer::Place place, uint32_t consumed) {
  const uint32_t length = length_of(message);
  const bool is_long = length > kInlineBytes;
  std::memset(is_long ? place.data : producer.next_slot().body, std::to_integer<int>(filling_of(message)), length);
  producer.publish(SlotKind::send, kSlotFirst | kSlotLast, length, message, consumed, place.data_at, is_long);
}

/// Takes the waiting message; false when there is none.
bool receive(LaneConsumer& consumer, uint32_t message, SlotHeader& header) {
  if (!consumer.peek(header)) {
    return false;
  }
  EXPECT_EQ(header.immediate, message);
  const std::byte* const payload = header.length > kInlineBytes ? consumer.payload(header) : consumer.inline_body();
  uint32_t wrong = 0;
  for (uint32_t i = 0; i < header.length; ++i) {
    wrong += payload[i] != filling_of(message) ? 1U : 0U;
  }
  EXPECT_EQ(wrong, 0U) << "message " << message;
  consumer.release();
  return true;
}

void send_all(Lane& lane, const std::function<void()>& hear) {
  uint32_t turns = 0;
  for (uint32_t message = 0; message < kMessages; ++message) {
    LaneProducer::Place place;
    while (!lane.producer.has_slot() || !lane.producer.reserve(length_of(message), place)) {
      take_turn(turns);
      hear();
    }
    send(lane.producer, message, place, 0);
  }
}

TEST(LaneThreads, a_slot_is_filled_again_only_when_the_lane_says_that_it_was_read) {
  Lane lane;
  std::thread consumer([&] {
    uint32_t turns = 0;
    SlotHeader header;
    for (uint32_t message = 0; message < kMessages;) {
      if (receive(lane.consumer, message, header)) {
        ++message;
        if (message % 16 == 0 || message == kMessages) {
          lane.consumer.tell();
        }
      } else {
        lane.consumer.tell();
        take_turn(turns);
      }
    }
  });
  send_all(lane, [&] { lane.producer.refresh(); });
  consumer.join();
}

// One thread of the consumer's process receives, another sends, and its messages carry how far the first one is; at the
// other end one thread hears it and another fills the slots. The count goes from hand to hand over four threads.
TEST(LaneThreads, a_count_that_travels_with_another_threads_message_frees_slots) {
  Lane lane;
  Lane back;
  std::atomic<uint32_t> heard{0};
  std::atomic<bool> is_done{false};
  std::thread receiver([&] {
    uint32_t turns = 0;
    SlotHeader header;
    for (uint32_t message = 0; message < kMessages;) {
      receive(lane.consumer, message, header) ? static_cast<void>(++message) : take_turn(turns);
    }
  });
  std::thread answering([&] {
    uint32_t turns = 0;
    while (!is_done.load(std::memory_order_relaxed)) {
      back.producer.refresh();
      if (back.producer.has_slot() && lane.consumer.has_news()) {
        const uint32_t consumed = lane.consumer.consumed();
        lane.consumer.note_told(consumed);
        back.producer.publish(SlotKind::send, kSlotFirst | kSlotLast, 0, 0, consumed, 0, false);
      } else {
        take_turn(turns);
      }
    }
  });
  std::thread hearing([&] {
    uint32_t turns = 0;
    SlotHeader header;
    while (!is_done.load(std::memory_order_relaxed)) {
      if (back.consumer.peek(header)) {
        heard.store(header.consumed, std::memory_order_release);  // as Connection::heard_consumed
        back.consumer.release();
        back.consumer.tell();
      } else {
        take_turn(turns);
      }
    }
  });
  send_all(lane, [&] { lane.producer.take_consumed(heard.load(std::memory_order_acquire)); });
  receiver.join();
  is_done = true;
  answering.join();
  hearing.join();
}

// Who answers stores the value first, and the number of the operation says that it is there.
TEST(LaneThreads, an_answer_is_whole_when_its_number_is_there) {
  Lane lane;
  constexpr uint32_t kOperations = 50'000;
  std::thread consumer([&] {
    uint32_t turns = 0;
    SlotHeader header;
    for (uint32_t operation = 0; operation < kOperations;) {
      if (lane.consumer.peek(header)) {
        std::memset(lane.consumer.read_buffer(), static_cast<int>(operation & 0xff), 64);
        lane.consumer.respond(operation, uint64_t{operation} * 3);
        lane.consumer.release();
        lane.consumer.tell();
        ++operation;
      } else {
        take_turn(turns);
      }
    }
  });
  uint32_t turns = 0;
  for (uint32_t operation = 0; operation < kOperations; ++operation) {
    lane.producer.refresh();
    EXPECT_TRUE(lane.producer.has_slot());
    lane.producer.publish(SlotKind::read, 0, 0, 0, 0, 0, false);
    const Response& response = lane.producer.response(operation);
    while (response.sequence.load(std::memory_order_acquire) != operation + 1) {
      take_turn(turns);
    }
    EXPECT_EQ(response.value, uint64_t{operation} * 3);
    EXPECT_EQ(std::to_integer<uint32_t>(lane.producer.read_buffer()[63]), operation & 0xff);
  }
  consumer.join();
}

}  // namespace
}  // namespace ringbolt::link
