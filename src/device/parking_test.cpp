#include "device/parking.h"

#include <gtest/gtest.h>

#include <array>

namespace ringbolt::device {
namespace {

constexpr std::array<std::byte, 4> kBytes{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}};

bool park(Parking& parking, uint32_t length) {
  const bool begun = parking.begin(length);
  parking.append(0, {kBytes.data(), length});
  return parking.finish({}, IBV_WC_RECV, length) && begun;
}

TEST(Parking, gives_messages_back_in_their_order) {
  Parking parking({3, 100});
  EXPECT_TRUE(parking.is_empty());
  for (uint32_t length = 0; length < 3; ++length) {
    EXPECT_TRUE(park(parking, length));
  }
  for (uint32_t length = 0; length < 3; ++length) {
    const ParkedMessage message = parking.take();
    EXPECT_EQ(message.length, length);
    EXPECT_EQ(message.bytes, std::vector<std::byte>(kBytes.begin(), kBytes.begin() + length));
  }
  EXPECT_TRUE(parking.is_empty());
}

TEST(Parking, takes_as_many_messages_as_it_has_places_and_not_one_more) {
  Parking parking({2, 100});
  EXPECT_TRUE(park(parking, 1));
  EXPECT_TRUE(park(parking, 1));
  EXPECT_FALSE(park(parking, 1));
  parking.take();
  EXPECT_TRUE(park(parking, 1));
}

TEST(Parking, takes_as_many_bytes_as_it_has_room_for_and_not_one_more) {
  Parking parking({10, 5});
  EXPECT_TRUE(park(parking, 4));
  EXPECT_FALSE(park(parking, 2));
  EXPECT_TRUE(park(parking, 1));
  EXPECT_TRUE(park(parking, 0));
  EXPECT_FALSE(park(parking, 1));
  parking.clear();
  EXPECT_TRUE(park(parking, 4));
}

TEST(Parking, forgets_a_message_that_grows_beyond_its_room) {
  Parking parking({10, 5});
  ASSERT_TRUE(parking.begin(0));  // nobody knows how long it is
  parking.append(0, kBytes);
  parking.append(4, kBytes);
  EXPECT_FALSE(parking.finish({}, IBV_WC_RECV, 8));
  EXPECT_TRUE(park(parking, 4));
}

TEST(Parking, begins_anew_when_a_message_never_ended) {
  Parking parking({10, 5});
  ASSERT_TRUE(parking.begin(0));
  parking.append(0, kBytes);
  parking.append(0, {kBytes.data(), 2});
  ASSERT_TRUE(parking.finish({}, IBV_WC_RECV, 2));
  EXPECT_EQ(parking.take().bytes.size(), 2U);
}

TEST(Parking, without_places_takes_nothing) {
  Parking parking({0, 0});
  EXPECT_FALSE(park(parking, 0));
}

}  // namespace
}  // namespace ringbolt::device
