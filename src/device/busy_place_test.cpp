#include "device/busy_place.h"

#include <gtest/gtest.h>

#include <memory>

#include "link/peer_queue.h"

namespace ringbolt::device {
namespace {

class BusyPlaceTest : public testing::Test {
 protected:
  bool find_twice(uint32_t place) { return busy_.note_found(place) || busy_.note_found(place); }
  std::optional<uint32_t> age(int n_polls) {
    std::optional<uint32_t> struck;
    for (int i = 0; i < n_polls; ++i) {
      if (const std::optional<uint32_t> one = busy_.age()) {
        struck = one;
      }
    }
    return struck;
  }
  /// Whether a peer that has something for that place marks it.
  bool peer_marks(uint32_t place) {
    peer_.mark(1U << link::kWakeSetShift, place);
    const bool has = memory_->sets[0].has(place);
    memory_->sets[0].clear(place);
    return has;
  }

  static constexpr int kLong = 256;
  std::unique_ptr<link::WakeMemory> memory_ = std::make_unique<link::WakeMemory>();
  link::PeerQueue peer_{*memory_, {0, 1}, nullptr};
  BusyPlace busy_{memory_->queues[0]};
};

TEST_F(BusyPlaceTest, peers_leave_out_the_marks_of_the_one_that_is_found_again) {
  EXPECT_FALSE(busy_.note_found(7));
  EXPECT_EQ(busy_.get(), std::nullopt);
  EXPECT_TRUE(peer_marks(7));
  EXPECT_TRUE(busy_.note_found(7));
  EXPECT_EQ(busy_.get(), 7U);
  EXPECT_FALSE(peer_marks(7));
  EXPECT_TRUE(peer_marks(8));
  EXPECT_FALSE(find_twice(8)) << "there is one";
  EXPECT_TRUE(busy_.note_found(7)) << "its peer had not seen it";
}

TEST_F(BusyPlaceTest, place_0_is_like_the_others) {
  EXPECT_TRUE(peer_marks(0));
  EXPECT_TRUE(find_twice(0));
  EXPECT_FALSE(peer_marks(0));
}

TEST_F(BusyPlaceTest, those_that_take_turns_are_not_busy) {
  for (uint32_t round = 0; round < 9; ++round) {
    EXPECT_FALSE(busy_.note_found(round % 2));
  }
}

TEST_F(BusyPlaceTest, who_has_nothing_for_long_is_struck_and_marked_again) {
  EXPECT_EQ(age(3 * kLong), std::nullopt);
  find_twice(3);
  EXPECT_EQ(age(kLong), std::nullopt) << "it was just found";
  busy_.note_use();
  EXPECT_EQ(age(kLong), std::nullopt);
  EXPECT_EQ(age(kLong), 3U);
  EXPECT_EQ(busy_.get(), std::nullopt);
  EXPECT_TRUE(peer_marks(3));
  EXPECT_FALSE(busy_.note_found(3)) << "for the second time in a row only";
  EXPECT_TRUE(find_twice(4));
}

TEST_F(BusyPlaceTest, is_struck_at_once) {
  EXPECT_EQ(busy_.strike(), std::nullopt);
  find_twice(1);
  EXPECT_EQ(busy_.strike(), 1U);
  EXPECT_EQ(busy_.get(), std::nullopt);
  EXPECT_TRUE(peer_marks(1));
}

TEST_F(BusyPlaceTest, what_peers_write_there_is_not_believed) {
  find_twice(1);
  memory_->queues[0].busy.store(99);
  EXPECT_EQ(busy_.get(), 1U);
  EXPECT_EQ(busy_.strike(), 1U);
  EXPECT_TRUE(find_twice(2));
  EXPECT_FALSE(peer_marks(2));
}

}  // namespace
}  // namespace ringbolt::device
