#include "rsocket/peer_tables.h"

#include <gtest/gtest.h>

namespace ringbolt::rsocket {
namespace {

using Place = PeerTables::Place;

ConnectionData peer_with(uint32_t targets, uint32_t iomap_entries) {
  ConnectionData data;
  data.targets = {0x10000, 0xabcd, targets};
  data.iomap_entries = iomap_entries;
  return data;
}

/// An entry of a target has 16 bytes. The first one stands in our connection data.
TEST(PeerTables, take_targets_in_turn_from_the_second_on) {
  PeerTables tables(peer_with(2, 0));
  EXPECT_EQ(tables.take_target(), (Place{0x10010, 0xabcd}));
  EXPECT_EQ(tables.take_target(), (Place{0x10000, 0xabcd}));
  EXPECT_EQ(tables.take_target(), (Place{0x10010, 0xabcd}));
}

TEST(PeerTables, of_any_length_come_round) {
  PeerTables one(peer_with(1, 0));
  EXPECT_EQ(one.take_target(), (Place{0x10000, 0xabcd}));
  EXPECT_EQ(one.take_target(), (Place{0x10000, 0xabcd}));
  PeerTables three(peer_with(3, 0));
  for (const uint64_t expected : {0x10010U, 0x10020U, 0x10000U, 0x10010U}) {
    EXPECT_EQ(three.take_target().address, expected);
  }
}

/// The iomap lies behind the targets; an entry has 24 bytes.
TEST(PeerTables, have_the_mappings_behind_the_targets) {
  const PeerTables tables(peer_with(2, 4));
  EXPECT_EQ(tables.iomap_entries(), 4U);
  EXPECT_EQ(tables.iomap_entry(0), (Place{0x10020, 0xabcd}));
  EXPECT_EQ(tables.iomap_entry(3), (Place{0x10020 + 72, 0xabcd}));
}

TEST(PeerTables, without_an_iomap_keep_no_mapping) {
  ConnectionData data = peer_with(2, 4);
  data.has_iomap = false;
  EXPECT_EQ(PeerTables(data).iomap_entries(), 0U);
  EXPECT_EQ(PeerTables().iomap_entries(), 0U);
}

TEST(PeerTables, of_a_peer_with_the_other_byte_order_are_swapped) {
  ConnectionData data = peer_with(2, 0);
  EXPECT_FALSE(PeerTables(data).is_swapped());
  data.is_big_endian = !kIsBigEndian;
  EXPECT_TRUE(PeerTables(data).is_swapped());
}

/// A peer may say what it likes of its own memory.
TEST(PeerTables, of_a_nonsensical_length_lead_nowhere_but_to_the_peer) {
  PeerTables tables(peer_with(0xffffffff, 2));
  EXPECT_EQ(tables.take_target().address, 0x10010U);
  EXPECT_EQ(tables.iomap_entry(1).address, 0x10000U + 0xffffffffULL * 16 + 24);
}

}  // namespace
}  // namespace ringbolt::rsocket
