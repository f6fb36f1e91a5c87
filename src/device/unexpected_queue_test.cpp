#include "device/unexpected_queue.h"

#include <gtest/gtest.h>

#include <array>

namespace ringbolt::device {
namespace {

constexpr std::array<std::byte, 4> kBytes{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}};

ReceivedMessage message_of(uint32_t length) {
  ReceivedMessage message;
  message.length = length;
  return message;
}

bool add(UnexpectedQueue& queue, uint32_t length) {
  const bool begun = queue.begin(length);
  queue.append(0, {kBytes.data(), length});
  return queue.finish(message_of(length)) && begun;
}

TEST(UnexpectedQueue, gives_messages_back_in_their_order) {
  UnexpectedQueue queue({3, 100});
  EXPECT_TRUE(queue.is_empty());
  for (uint32_t length = 0; length < 3; ++length) {
    EXPECT_TRUE(add(queue, length));
  }
  for (uint32_t length = 0; length < 3; ++length) {
    const UnexpectedMessage message = queue.take();
    EXPECT_EQ(message.message.length, length);
    EXPECT_EQ(message.bytes, std::vector<std::byte>(kBytes.begin(), kBytes.begin() + length));
  }
  EXPECT_TRUE(queue.is_empty());
}

TEST(UnexpectedQueue, takes_as_many_messages_as_it_has_places_and_not_one_more) {
  UnexpectedQueue queue({2, 100});
  EXPECT_TRUE(add(queue, 1));
  EXPECT_TRUE(add(queue, 1));
  EXPECT_FALSE(add(queue, 1));
  queue.take();
  EXPECT_TRUE(add(queue, 1));
}

TEST(UnexpectedQueue, takes_as_many_bytes_as_it_has_room_for_and_not_one_more) {
  UnexpectedQueue queue({10, 5});
  EXPECT_TRUE(add(queue, 4));
  EXPECT_FALSE(add(queue, 2));
  EXPECT_TRUE(add(queue, 1));
  EXPECT_TRUE(add(queue, 0));
  EXPECT_FALSE(add(queue, 1));
  queue.clear();
  EXPECT_TRUE(add(queue, 4));
}

TEST(UnexpectedQueue, forgets_a_message_that_grows_beyond_its_room) {
  UnexpectedQueue queue({10, 5});
  ASSERT_TRUE(queue.begin(0));  // nobody knows how long it is
  queue.append(0, kBytes);
  queue.append(4, kBytes);
  EXPECT_FALSE(queue.finish(message_of(8)));
  EXPECT_TRUE(add(queue, 4));
}

TEST(UnexpectedQueue, begins_anew_when_a_message_never_ended) {
  UnexpectedQueue queue({10, 5});
  ASSERT_TRUE(queue.begin(0));
  queue.append(0, kBytes);
  queue.append(0, {kBytes.data(), 2});
  ASSERT_TRUE(queue.finish(message_of(2)));
  EXPECT_EQ(queue.take().bytes.size(), 2U);
}

TEST(UnexpectedQueue, without_places_takes_nothing) {
  UnexpectedQueue queue({0, 0});
  EXPECT_FALSE(add(queue, 0));
}

}  // namespace
}  // namespace ringbolt::device
