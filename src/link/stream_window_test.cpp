#include "link/stream_window.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "wire/bytes.h"

namespace ringbolt::link {
namespace {

constexpr uint32_t kWindowOfFour = 4;

uint64_t put_packet(StreamSendWindow& window, uint8_t value, size_t bytes = 10) {
  const auto place = window.reserve();
  EXPECT_GE(place.size(), bytes);
  std::memset(place.data(), value, bytes);
  window.commit(bytes);
  return value;
}

TEST(StreamSendWindow, keeps_packets_with_their_numbers_until_they_are_acknowledged) {
  StreamSendWindow window(kWindowOfFour);
  EXPECT_TRUE(window.is_empty());
  for (uint64_t number = 0; number < 10; ++number) {
    put_packet(window, static_cast<uint8_t>(number), 10 + number);
    ASSERT_EQ(window.first_waiting(), number);
    const auto message = window.message(number);
    ASSERT_EQ(message.size(), kStreamNumberBytes + 10 + number);
    EXPECT_EQ(wire::get_le<uint64_t>(message, 0), number);
    EXPECT_EQ(message.back(), static_cast<std::byte>(number));
    window.on_assigned(number);
    EXPECT_FALSE(window.first_waiting());
    window.on_acknowledged(number);
    EXPECT_TRUE(window.is_empty());
  }
}

TEST(StreamSendWindow, has_room_again_when_its_oldest_packet_is_acknowledged) {
  StreamSendWindow window(kWindowOfFour);
  for (uint8_t i = 0; i < kWindowOfFour; ++i) {
    window.on_assigned(put_packet(window, i));
  }
  EXPECT_TRUE(window.is_full());
  EXPECT_TRUE(window.reserve().empty());
  window.on_acknowledged(2);
  EXPECT_TRUE(window.is_full());
  window.on_acknowledged(0);
  EXPECT_FALSE(window.reserve().empty());
  window.on_acknowledged(1);  // and 2 goes with it
  put_packet(window, 4);
  put_packet(window, 5);
  put_packet(window, 6);
  EXPECT_TRUE(window.is_full());
}

TEST(StreamSendWindow, gives_what_a_rail_has_lost_to_another_one_first) {
  StreamSendWindow window(kWindowOfFour);
  for (uint8_t i = 0; i < 3; ++i) {
    window.on_assigned(put_packet(window, i));
  }
  put_packet(window, 3);
  window.on_returned(1);
  window.on_returned(0);
  EXPECT_EQ(window.returned_packets(), 2U);
  for (const uint64_t number : {0U, 1U, 3U}) {
    ASSERT_EQ(window.first_waiting(), number);
    window.on_assigned(number);
  }
  EXPECT_FALSE(window.first_waiting());
}

TEST(StreamSendWindow, counts_from_0_after_a_reset) {
  StreamSendWindow window(kWindowOfFour);
  window.on_assigned(put_packet(window, 0));
  put_packet(window, 1);
  window.reset();
  EXPECT_TRUE(window.is_empty());
  EXPECT_FALSE(window.first_waiting());
  put_packet(window, 9);
  EXPECT_EQ(wire::get_le<uint64_t>(window.message(0), 0), 0U);
}

class StreamOrderTest : public ::testing::Test {
 protected:
  using Verdict = StreamOrder::Verdict;
  Verdict offer(uint64_t number) {
    packet_.fill(static_cast<std::byte>(number + 1));
    return order_.offer(number, packet_);
  }
  /// Takes one that was kept.
  void expect_kept(uint64_t number) {
    const auto taken = order_.take();
    ASSERT_TRUE(taken);
    EXPECT_EQ(taken->size(), packet_.size());
    EXPECT_EQ(taken->front(), static_cast<std::byte>(number + 1));
  }
  StreamOrder order_{kWindowOfFour};
  std::array<std::byte, 100> packet_{};
};

TEST_F(StreamOrderTest, hands_over_at_once_what_comes_in_order) {
  for (uint64_t number = 0; number < 10; ++number) {
    EXPECT_EQ(offer(number), Verdict::next);
    EXPECT_FALSE(order_.take());
  }
}

TEST_F(StreamOrderTest, keeps_what_comes_early) {
  EXPECT_EQ(offer(2), Verdict::kept);
  EXPECT_EQ(offer(1), Verdict::kept);
  EXPECT_EQ(order_.kept_packets(), 2U);
  EXPECT_FALSE(order_.take());
  EXPECT_EQ(offer(0), Verdict::next);
  expect_kept(1);
  expect_kept(2);
  EXPECT_FALSE(order_.take());
  EXPECT_EQ(order_.kept_packets(), 0U);
  EXPECT_EQ(offer(3), Verdict::next);
}

TEST_F(StreamOrderTest, leaves_out_what_came_before) {
  EXPECT_EQ(offer(0), Verdict::next);
  EXPECT_EQ(offer(0), Verdict::duplicate);
  EXPECT_EQ(offer(2), Verdict::kept);
  EXPECT_EQ(offer(2), Verdict::duplicate);
}

TEST_F(StreamOrderTest, refuses_what_no_window_reaches) {
  EXPECT_EQ(offer(kWindowOfFour), Verdict::beyond);
  EXPECT_EQ(offer(UINT64_MAX), Verdict::beyond);
  EXPECT_EQ(offer(kWindowOfFour - 1), Verdict::kept);
}

TEST_F(StreamOrderTest, forgets_everything_in_a_reset) {
  EXPECT_EQ(offer(0), Verdict::next);
  EXPECT_EQ(offer(2), Verdict::kept);
  order_.reset();
  EXPECT_EQ(order_.kept_packets(), 0U);
  EXPECT_EQ(offer(1), Verdict::kept);
  EXPECT_EQ(offer(0), Verdict::next);
  expect_kept(1);
  EXPECT_FALSE(order_.take());
}

}  // namespace
}  // namespace ringbolt::link
