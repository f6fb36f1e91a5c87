#include "engine/slots.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <set>
#include <vector>

#include "engine/chunk_slots.h"

namespace ringbolt::engine {
namespace {

TEST(FreeSlots, gives_each_once_until_it_is_given_back) {
  FreeSlots free(3);
  EXPECT_EQ(free.size(), 3U);
  std::set<uint32_t> taken;
  for (int i = 0; i < 3; ++i) {
    taken.insert(free.take());
  }
  EXPECT_EQ(taken, (std::set<uint32_t>{0, 1, 2}));
  EXPECT_EQ(free.size(), 0U);
  free.give(1);
  EXPECT_EQ(free.size(), 1U);
  EXPECT_EQ(free.take(), 1U);
}

// As a device might that completes a send twice.
TEST(FreeSlots, one_that_is_given_back_twice_is_free_once) {
  FreeSlots free(3);
  free.give(0);  // all are free
  EXPECT_EQ(free.size(), 3U);
  const std::set<uint32_t> taken{free.take(), free.take(), free.take()};
  EXPECT_EQ(taken, (std::set<uint32_t>{0, 1, 2}));
  free.give(2);
  free.give(2);  // others are in use
  EXPECT_EQ(free.size(), 1U);
  EXPECT_EQ(free.take(), 2U);
}

// What was sent before may be read where it is until then, though the repetition that waits in a queue ends earlier.
TEST(ChunkSlots, one_that_rests_is_free_at_its_time_whatever_becomes_of_its_repetition) {
  SlabLayout layout;
  const auto rows = ChunkSlots::make_rows(layout);
  std::vector<std::byte> slab(layout.used_bytes());
  ChunkSlots slots(rows, slab);
  std::set<uint32_t> taken;
  while (const auto slot = slots.take(kLargePayloadBytes, 0)) {
    taken.insert(slot->id);
  }
  ASSERT_EQ(taken.size(), ChunkSlots::kLarge);
  const uint32_t slot = *taken.begin();
  slots.note_queued(slot);
  slots.retire_at(slot, 100);
  EXPECT_TRUE(slots.is_needless(slot));
  slots.note_unqueued(slot);
  slots.retire(slot);
  slots.wake_resting(99);
  slots.free_retired();
  EXPECT_FALSE(slots.take(kLargePayloadBytes, 0));
  slots.wake_resting(100);
  const auto again = slots.take(kLargePayloadBytes, 0);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->id, slot);
}

TEST(ChunkSlots, one_that_rests_stays_until_its_repetition_has_left_the_queue) {
  SlabLayout layout;
  const auto rows = ChunkSlots::make_rows(layout);
  std::vector<std::byte> slab(layout.used_bytes());
  ChunkSlots slots(rows, slab);
  uint32_t slot = 0;
  while (const auto taken = slots.take(kLargePayloadBytes, 0)) {
    slot = taken->id;
  }
  slots.note_queued(slot);
  slots.retire_at(slot, 100);
  slots.wake_resting(100);
  EXPECT_FALSE(slots.take(kLargePayloadBytes, 0));
  slots.note_unqueued(slot);
  slots.retire(slot);
  EXPECT_TRUE(slots.take(kLargePayloadBytes, 0));
}

}  // namespace
}  // namespace ringbolt::engine
