#include "rsocket/target_table.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace ringbolt::rsocket {
namespace {

/// A table, and the peer that writes into it.
struct Table {
  explicit Table(uint32_t iomap_entries = 0)
      : memory(table_bytes(iomap_entries)), table(std::span(memory), iomap_entries) {}

  void write_target(uint32_t index, const RemoteBlock& block) {
    const auto bytes = emit_target(block, false);
    std::memcpy(memory.data() + index * kTargetBytes, bytes.data(), bytes.size());
    table.take_written();
  }
  void write_iomap(uint32_t index, uint64_t offset, const RemoteBlock& block) {
    const auto bytes = emit_iomap(offset, block, false);
    std::memcpy(memory.data() + kTargets * kTargetBytes + index * kIomapBytes, bytes.data(), bytes.size());
  }

  std::vector<std::byte> memory;
  TargetTable table;
};

TEST(TargetTable, fills_one_target_before_the_next) {
  Table t;
  t.table.begin({0x1000, 7, 100});
  t.write_target(1, {0x2000, 8, 50});
  EXPECT_EQ(*t.table.current(), (RemoteBlock{0x1000, 7, 100}));
  t.table.advance(30);
  EXPECT_EQ(*t.table.current(), (RemoteBlock{0x1000 + 30, 7, 70}));
  t.table.advance(70);
  EXPECT_EQ(*t.table.current(), (RemoteBlock{0x2000, 8, 50}));
  t.table.advance(50);
  EXPECT_EQ(t.table.current(), nullptr);
}

TEST(TargetTable, takes_the_entries_in_turn) {
  Table t;
  t.table.begin({0x1000, 7, 10});
  for (uint32_t round = 1; round < 20; ++round) {
    t.table.advance(10);
    EXPECT_EQ(t.table.current(), nullptr);
    t.write_target(round % 2, {0x1000 * round, round, 10});
    ASSERT_NE(t.table.current(), nullptr);
    EXPECT_EQ(t.table.current()->key, round);
  }
}

TEST(TargetTable, ignores_a_message_that_nothing_was_written_for) {
  Table t;
  t.table.begin({0x1000, 7, 10});
  t.table.take_written();
  t.table.advance(10);
  t.table.take_written();
  EXPECT_EQ(t.table.current(), nullptr);
}

TEST(TargetTable, leaves_alone_what_the_peer_is_writing_for_its_next_message) {
  Table t;
  t.table.begin({0x1000, 7, 10});
  t.table.advance(10);
  const auto half = emit_target({0, 9, 10}, false);  // its address is not there yet
  std::memcpy(t.memory.data(), half.data(), half.size());
  t.write_target(1, {0x2000, 8, 10});
  EXPECT_EQ(t.table.current()->key, 8U);
  t.table.advance(10);
  EXPECT_EQ(t.table.current(), nullptr);
  t.write_target(0, {0x3000, 9, 10});
  EXPECT_EQ(*t.table.current(), (RemoteBlock{0x3000, 9, 10}));
}

TEST(TargetTable, leaves_what_a_wrong_peer_writes_too_early) {
  Table t;
  t.table.begin({0x1000, 1, 10});
  t.write_target(1, {0x2000, 2, 10});
  t.write_target(0, {0x3000, 3, 10});
  t.write_target(1, {0x4000, 4, 10});
  t.table.advance(10);
  EXPECT_EQ(t.table.current()->key, 2U);
  t.table.take_written();
  t.table.advance(10);
  EXPECT_EQ(t.table.current()->key, 3U);
}

TEST(TargetTable, says_where_a_mapping_has_an_offset) {
  Table t(2);
  t.write_iomap(0, 0, {0x10000, 5, 100});
  t.write_iomap(1, 1000, {0x20000, 6, 10});
  EXPECT_EQ(t.table.find(0).value(), (RemoteBlock{0x10000, 5, 100}));
  EXPECT_EQ(t.table.find(99).value(), (RemoteBlock{0x10000 + 99, 5, 1}));
  EXPECT_EQ(t.table.find(100), std::nullopt);
  EXPECT_EQ(t.table.find(999), std::nullopt);
  EXPECT_EQ(t.table.find(1003).value(), (RemoteBlock{0x20003, 6, 7}));
  EXPECT_EQ(t.table.find(1010), std::nullopt);
  EXPECT_EQ(t.table.find(~0ULL), std::nullopt);
}

TEST(TargetTable, of_no_mappings_has_no_offset) { EXPECT_EQ(Table().table.find(0), std::nullopt); }

TEST(TargetEntry, can_be_written_for_the_other_byte_order) {
  const auto ours = emit_iomap(0x0102030405060708, {0x1112131415161718, 0x21222324, 0x31323334}, false);
  const auto theirs = emit_iomap(0x0102030405060708, {0x1112131415161718, 0x21222324, 0x31323334}, true);
  for (const auto& [at, bytes] : {std::pair{0, 8}, {8, 8}, {16, 4}, {20, 4}}) {
    for (int i = 0; i < bytes; ++i) {
      EXPECT_EQ(ours[static_cast<size_t>(at + i)], theirs[static_cast<size_t>(at + bytes - 1 - i)]);
    }
  }
}

}  // namespace
}  // namespace ringbolt::rsocket
