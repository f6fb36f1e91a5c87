// What processes of different builds share must keep its layout, or change its version: docs/formats/lane.md and
// region-table.md tell these offsets to people.

#include <gtest/gtest.h>

#include <cstddef>

#include "link/lane.h"
#include "link/region_table.h"
#include "link/wake_table.h"

namespace ringbolt::link {
namespace {

TEST(SharedLayout, lane_is_as_documented) {
  EXPECT_EQ(offsetof(LaneMemory, announced_key), 0U);
  EXPECT_EQ(offsetof(LaneMemory, producer_waits), 128U);
  EXPECT_EQ(offsetof(LaneMemory, consumed), 256U);
  EXPECT_EQ(offsetof(LaneMemory, refusal), 260U);
  EXPECT_EQ(offsetof(LaneMemory, waits_for_receive), 264U);
  EXPECT_EQ(offsetof(LaneMemory, consumer_fences), 384U);
  EXPECT_EQ(offsetof(LaneMemory, access), 388U);
  EXPECT_EQ(offsetof(LaneMemory, rnr_timer_us), 392U);
  EXPECT_EQ(offsetof(LaneMemory, is_closed), 396U);
  EXPECT_EQ(offsetof(LaneMemory, pulls), 400U);
  EXPECT_EQ(offsetof(LaneMemory, responses), 512U);
  EXPECT_EQ(offsetof(LaneMemory, read_buffer), 4096U);
  EXPECT_EQ(offsetof(LaneMemory, slots), 12288U);
  EXPECT_EQ(offsetof(LaneMemory, data), 28672U);
  EXPECT_EQ(sizeof(LaneMemory), 258048U);
}

TEST(SharedLayout, wake_table_is_as_documented) {
  EXPECT_EQ(sizeof(MarkSet), 2176U);
  EXPECT_EQ(offsetof(WakeMemory, sets), 2176U);
  EXPECT_EQ(offsetof(WakeMemory, queues), 2230400U);
  EXPECT_EQ(offsetof(WakeMemory, channels), 10619008U);
  EXPECT_EQ(sizeof(WakeMemory), 11667584U);
  EXPECT_EQ(sizeof(WakeQueue), 128U);
  EXPECT_EQ(offsetof(WakeQueue, mode), 0U);
  EXPECT_EQ(offsetof(WakeQueue, notify), 4U);
  EXPECT_EQ(offsetof(WakeQueue, channel), 8U);
  EXPECT_EQ(offsetof(WakeQueue, place), 12U);
  EXPECT_EQ(sizeof(WakeChannel), 64U);
  EXPECT_EQ(static_cast<int>(Notify::raised), 4);
}

TEST(SharedLayout, slot_is_as_documented) {
  EXPECT_EQ(sizeof(Slot), 64U);
  EXPECT_EQ(offsetof(Slot, sequence), 0U);
  EXPECT_EQ(offsetof(Slot, header), 4U);
  EXPECT_EQ(offsetof(SlotHeader, kind), 0U);
  EXPECT_EQ(offsetof(SlotHeader, flags), 2U);
  EXPECT_EQ(offsetof(SlotHeader, length), 4U);
  EXPECT_EQ(offsetof(SlotHeader, immediate), 8U);
  EXPECT_EQ(offsetof(SlotHeader, consumed), 12U);
  EXPECT_EQ(offsetof(SlotHeader, data_at), 16U);
  EXPECT_EQ(offsetof(Slot, body), 24U);
  EXPECT_EQ(static_cast<int>(SlotKind::send), 1);
  EXPECT_EQ(static_cast<int>(SlotKind::refused), 8);
  EXPECT_EQ(static_cast<int>(SlotKind::send_private), 9);
}

TEST(SharedLayout, region_table_is_as_documented) {
  EXPECT_EQ(sizeof(RegionTableHeader), 64U);
  EXPECT_EQ(sizeof(RegionEntry), 64U);
  EXPECT_EQ(offsetof(RegionEntry, key), 0U);
  EXPECT_EQ(offsetof(RegionEntry, access), 4U);
  EXPECT_EQ(offsetof(RegionEntry, first), 8U);
  EXPECT_EQ(offsetof(RegionEntry, length), 16U);
  EXPECT_EQ(offsetof(RegionEntry, host_first), 24U);
  EXPECT_EQ(offsetof(RegionEntry, arena_offset), 32U);
  EXPECT_EQ(offsetof(RegionEntry, arena_id), 40U);
  EXPECT_EQ(offsetof(RegionEntry, pd_key), 44U);
  EXPECT_EQ(offsetof(RegionEntry, bound_qpn), 48U);
  EXPECT_EQ(kRegionTableBytes, 16777280U);
}

}  // namespace
}  // namespace ringbolt::link
