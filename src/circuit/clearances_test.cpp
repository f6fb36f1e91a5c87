#include "circuit/clearances.h"

#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <memory>
#include <random>
#include <vector>

#include "circuit/clearing.h"

// What a receiver tells of its receives, and what its sender makes of that: the buffer that the receiver's queue says.
namespace ringbolt::circuit {
namespace {

constexpr uint64_t kLeastCleared = 65'536;

ClearedReceive cleared(std::vector<int32_t> tags, uint64_t address = 0x1000) {
  ClearedReceive receive;
  receive.n_parts = static_cast<uint32_t>(tags.size());
  for (size_t i = 0; i < tags.size(); ++i) {
    receive.parts[i] = {tags[i], true, kLeastCleared, address + i * kLeastCleared, {77}};
  }
  return receive;
}

ClearToSend frame_of(uint32_t first, std::vector<ClearedReceive> receives, bool is_base = false, uint32_t message = 0) {
  ClearToSend frame;
  frame.first = first;
  frame.is_base = is_base;
  frame.base_message = message;
  frame.n_rails = 1;
  frame.rails[0] = 3;
  for (const ClearedReceive& one : receives) {
    frame.receives[frame.n_receives++] = one;
  }
  return frame;
}

TEST(Clearances, tell_where_a_message_goes_whichever_was_first) {
  Clearances clearances;
  EXPECT_TRUE(clearances.hear(frame_of(0, {cleared({5}, 0x10000)}, true, 0)));
  clearances.begin(9);
  ASSERT_TRUE(clearances.of_latest().has_value()) << "one buffer takes any tag";
  EXPECT_EQ(clearances.of_latest()->address, 0x10000U);
  EXPECT_EQ(clearances.of_latest()->key_of(3), 77U);
  EXPECT_FALSE(clearances.of_latest()->key_of(0).has_value());
  clearances.begin(9);
  EXPECT_FALSE(clearances.of_latest().has_value());
  EXPECT_TRUE(clearances.hear(frame_of(1, {cleared({5}, 0x20000)})));
  ASSERT_TRUE(clearances.of_latest().has_value());
  EXPECT_EQ(clearances.of_latest()->address, 0x20000U);
  EXPECT_EQ(clearances.of_latest()->clearance, 1U);
}

TEST(Clearances, know_members_of_groups_by_their_tags) {
  Clearances clearances;
  EXPECT_TRUE(clearances.hear(frame_of(0, {cleared({1, 3}, 0x10000), cleared({2, 1}, 0x90000)}, true, 0)));
  clearances.begin(2);  // for the second group, though the first is not full
  ASSERT_TRUE(clearances.of_latest());
  EXPECT_EQ(clearances.of_latest()->address, 0x90000U);
  clearances.begin(3);
  ASSERT_TRUE(clearances.of_latest());
  EXPECT_EQ(clearances.of_latest()->address, 0x10000U + kLeastCleared);
  clearances.begin(4);
  EXPECT_FALSE(clearances.of_latest().has_value());
}

TEST(Clearances, that_were_said_before_are_passed_over_and_gaps_refused) {
  Clearances clearances;
  EXPECT_TRUE(clearances.hear(frame_of(0, {cleared({1}), cleared({1})}, true, 0)));
  EXPECT_TRUE(clearances.hear(frame_of(0, {cleared({1})}, true, 0)));
  EXPECT_TRUE(clearances.hear(frame_of(1, {cleared({1}), cleared({1})}))) << "one of two is new";
  EXPECT_EQ(clearances.next_clearance(), 3U);
  EXPECT_FALSE(clearances.hear(frame_of(4, {cleared({1})}))) << "3 is missing";
}

TEST(Clearances, of_a_message_that_has_not_begun_are_refused) {
  Clearances clearances;
  clearances.begin(0);
  EXPECT_FALSE(clearances.hear(frame_of(0, {cleared({1})}, true, 2)));
}

TEST(Clearances, more_than_can_be_posted_are_refused) {
  Clearances clearances;
  EXPECT_TRUE(clearances.hear(frame_of(0, {cleared({1})}, true, 0)));
  for (uint32_t i = 1; i < kMostReceives; ++i) {
    ASSERT_TRUE(clearances.hear(frame_of(i, {cleared({1})})));
  }
  EXPECT_FALSE(clearances.hear(frame_of(kMostReceives, {cleared({1})})));
}

TEST(Clearances, rest_when_too_many_messages_are_unmatched_until_a_base) {
  Clearances clearances;
  EXPECT_TRUE(clearances.hear(frame_of(0, {cleared({1})}, true, 0)));
  for (uint32_t i = 0; i < 2 * Clearances::kMostUnmatched; ++i) {
    clearances.begin(0);
  }
  EXPECT_TRUE(clearances.hear(frame_of(1, {cleared({0})})));
  EXPECT_FALSE(clearances.of_latest().has_value());
  EXPECT_TRUE(clearances.hear(frame_of(2, {cleared({0}, 0x70000)}, true, 2 * Clearances::kMostUnmatched)));
  clearances.begin(0);
  ASSERT_TRUE(clearances.of_latest());
  EXPECT_EQ(clearances.of_latest()->address, 0x70000U);
}

/// Random groups, tags, sizes and orders: the sender's answer, where it has one, is the receiver's.
TEST(Clearances, agree_with_the_receivers_queue) {
  static std::array<std::byte, 1> memory;
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    ReceiveQueue queue;
    Clearing clearing(kLeastCleared);
    Clearances clearances;
    const Registered registered(0, UINTPTR_MAX);
    std::array<const Registered*, kMostParts> all{};
    all.fill(&registered);
    struct Sent {
      int32_t tag = 0;
      std::optional<Target> target;
      bool is_matched = false;
    };
    std::vector<Sent> sent;
    std::vector<uint32_t> unmatched;  // numbers that have come, in order
    uint32_t n_come = 0;
    uintptr_t next_address = 0x100000;
    size_t n_known = 0;
    const auto match = [&](uint32_t number) {
      const auto place = queue.match(sent[number].tag);
      if (place.part != nullptr) {
        const auto& target = sent[number].target;
        if (target && target->clearance == place.receive->clearance && place.part->is_cleared) {
          ++n_known;
        }
        if (target && target->is_direct) {
          EXPECT_EQ(target->address, reinterpret_cast<uintptr_t>(place.part->data)) << seed << " " << number;
        }
        ReceiveQueue::finish(place);
        sent[number].is_matched = true;
      }
      return place.part != nullptr;
    };
    std::deque<std::pair<uint8_t, uint32_t>> on_the_way;
    for (int round = 0; round < 400; ++round) {
      switch (random() % 4) {
        case 0:  // a message begins
          if (sent.size() - n_come < 30 && unmatched.size() < 30) {
            const auto tag = static_cast<int32_t>(random() % 3);
            clearances.begin(tag);
            sent.push_back({tag, clearances.of_latest(), false});
          }
          break;
        case 1:  // a message comes
          if (n_come < sent.size()) {
            clearing.heard(static_cast<uint8_t>(clearances.next_clearance()));
            if (!match(n_come)) {
              unmatched.push_back(n_come);
            }
            ++n_come;
          }
          break;
        case 2: {  // a receive is posted
          while (!queue.is_empty() && queue.is_done(queue.first())) {
            queue.pop();
          }
          if (queue.is_full()) {
            break;
          }
          const uint32_t n = random() % 3 == 0 ? 1 + random() % kMostParts : 1;
          Receive& receive = queue.next();
          for (uint32_t i = 0; i < n; ++i) {
            receive.parts[i].data = reinterpret_cast<std::byte*>(next_address += 0x100000);
            receive.parts[i].capacity = random() % 2 == 0 ? kLeastCleared : 8;
            receive.parts[i].tag = static_cast<int32_t>(random() % 3);
          }
          std::optional<uint32_t> base;
          const uint32_t first = unmatched.empty() ? n_come : unmatched.front();
          if (queue.is_taken() && unmatched.size() == n_come - first) {
            base = first;
          }
          queue.post(n);
          clearing.post(receive, all.data(), base);
          std::erase_if(unmatched, [&](uint32_t number) { return match(number); });
          break;
        }
        case 3: {  // clearances come
          std::array<std::byte, kClearToSendBytes> bytes{};
          while (clearing.has_something_to_tell()) {
            FrameHeader header;
            const uint32_t length = clearing.tell(header, {}, bytes);
            const auto parsed = parse_frame(std::span(bytes).first(length), length);
            ASSERT_TRUE(parsed.has_value());
            auto frame = std::make_unique<ClearToSend>();
            ASSERT_TRUE(parse_clear_to_send(*parsed, std::span(bytes).subspan(kShortHeaderBytes), *frame));
            ASSERT_TRUE(clearances.hear(*frame)) << seed << " " << round;
          }
          if (!sent.empty() && n_come < sent.size()) {
            sent.back().target = clearances.of_latest();  // it waited for that
          }
          break;
        }
      }
    }
    (void)n_known;
  }
  (void)memory;
}

TEST(Clearing, says_again_what_was_not_heard) {
  Clearing clearing(kLeastCleared);
  Clearances clearances;
  std::array<std::byte, kClearToSendBytes> bytes{};
  const auto tell = [&] {
    FrameHeader header;
    const uint32_t length = clearing.tell(header, {}, bytes);
    auto frame = std::make_unique<ClearToSend>();
    EXPECT_TRUE(parse_clear_to_send(*parse_frame(std::span(bytes).first(length), length),
                                    std::span(bytes).subspan(kShortHeaderBytes), *frame));
    return frame;
  };
  ReceiveQueue queue;
  const auto post = [&](size_t capacity, std::optional<uint32_t> base) {
    Receive& receive = queue.next();
    receive.parts[0].capacity = capacity;
    queue.post(1);
    clearing.post(receive, nullptr, base);
  };
  post(8, 0);
  EXPECT_FALSE(clearing.has_something_to_tell()) << "a short one is not worth it";
  post(kLeastCleared, 0);
  post(8, std::nullopt);
  post(kLeastCleared, std::nullopt);
  ASSERT_TRUE(clearing.has_something_to_tell());
  const auto lost = tell();
  EXPECT_EQ(lost->n_receives, 3U) << "with the short one between";
  EXPECT_TRUE(lost->is_base);
  EXPECT_FALSE(clearing.has_something_to_tell());
  clearing.restart();
  const auto again = tell();
  EXPECT_EQ(again->first, 0U);
  EXPECT_TRUE(clearances.hear(*again));
  EXPECT_TRUE(clearances.hear(*lost));
  clearing.heard(static_cast<uint8_t>(clearances.next_clearance()));
  clearing.restart();
  EXPECT_FALSE(clearing.has_something_to_tell());
}

TEST(Clearing, has_so_many_frames_under_way) {
  Clearing clearing(kLeastCleared);
  ReceiveQueue queue;
  std::array<std::byte, kClearToSendBytes> bytes{};
  for (uint32_t i = 0; i < Clearing::kMostFrames; ++i) {
    Receive& receive = queue.next();
    receive.parts[0].capacity = kLeastCleared;
    queue.post(1);
    clearing.post(receive, nullptr, 0);
    ASSERT_TRUE(clearing.has_something_to_tell());
    (void)clearing.tell({}, {}, bytes);
  }
  Receive& receive = queue.next();
  receive.parts[0].capacity = kLeastCleared;
  queue.post(1);
  clearing.post(receive, nullptr, 0);
  EXPECT_FALSE(clearing.has_something_to_tell());
  clearing.heard(1);
  EXPECT_TRUE(clearing.has_something_to_tell());
}

TEST(ClearToSend, of_any_bytes_is_safe_and_comes_back) {
  std::array<std::byte, kClearToSendBytes> bytes{};
  const ClearToSend frame = frame_of(7, {cleared({1, 2}), cleared({3})}, true, 9);
  const uint32_t length = emit(FrameHeader{}, frame, bytes);
  const auto header = parse_frame(std::span(bytes).first(length), length);
  ASSERT_TRUE(header);
  ClearToSend back;
  ASSERT_TRUE(parse_clear_to_send(*header, std::span(bytes).subspan(kShortHeaderBytes), back));
  EXPECT_EQ(back.first, 7U);
  EXPECT_EQ(back.base_message, 9U);
  EXPECT_EQ(back.receives[0].parts, frame.receives[0].parts);
  EXPECT_EQ(back.receives[1].parts[0], frame.receives[1].parts[0]);
  std::mt19937 random(1);
  for (int round = 0; round < 20'000; ++round) {
    std::array<std::byte, kClearToSendBytes> broken = bytes;
    for (unsigned i = 0; i < 1 + random() % 4; ++i) {
      broken[random() % length] = static_cast<std::byte>(random());
    }
    if (const auto read = parse_frame(std::span(broken).first(length), length)) {
      (void)parse_clear_to_send(*read, std::span(broken).subspan(kShortHeaderBytes, length - kShortHeaderBytes), back);
    }
  }
  ClearToSend wrong = frame;
  wrong.receives[0].parts[0].capacity = UINT64_MAX;
  const uint32_t wrong_length = emit(FrameHeader{}, wrong, bytes);
  const auto read = parse_frame(std::span(bytes).first(wrong_length), wrong_length);
  EXPECT_FALSE(parse_clear_to_send(*read, std::span(bytes).subspan(kShortHeaderBytes), back))
      << "memory does not wrap around";
}

}  // namespace
}  // namespace ringbolt::circuit
