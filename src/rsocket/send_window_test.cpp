#include "rsocket/send_window.h"

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <vector>

namespace ringbolt::rsocket {
namespace {

constexpr uint64_t kPeer = 0x100000;  ///< where the peer's ring begins
constexpr uint32_t kHalf = 1000;

/// A window on a table that the test writes as the peer would.
class SendWindowTest : public testing::Test {
 protected:
  static Settings settings() {
    Settings settings;
    settings.send_bytes = 4096;
    settings.send_depth = 16;  // twelve for data
    settings.inline_bytes = 64;
    settings.iomap_entries = 2;
    return settings;
  }
  static ConnectionData peer(uint16_t credits) {
    ConnectionData data;
    data.credits = credits;
    data.ring = {kPeer, 0x77, kHalf};
    return data;
  }
  SendWindow window(uint16_t credits) {
    SendWindow out(settings(), TargetTable(memory_, 2));
    out.open(peer(credits));
    return out;
  }
  /// The peer offers a target: entry 1 first.
  void offer(uint32_t entry, const RemoteBlock& block) {
    const auto bytes = emit_target(block, false);
    std::memcpy(memory_.data() + entry * kTargetBytes, bytes.data(), bytes.size());
  }
  void map(uint32_t entry, uint64_t offset, const RemoteBlock& block) {
    const auto bytes = emit_iomap(offset, block, false);
    std::memcpy(memory_.data() + table_bytes(entry), bytes.data(), bytes.size());
  }

  alignas(8) std::array<std::byte, kTargets * kTargetBytes + 2 * kIomapBytes> memory_{};
};

TEST_F(SendWindowTest, sends_nothing_before_the_peer_has_told_of_itself) {
  const SendWindow out(settings(), TargetTable(memory_, 2));
  EXPECT_FALSE(out.has_room_for_message(1));
  EXPECT_FALSE(out.has_room_for_mapping());
}

TEST_F(SendWindowTest, fills_the_peers_target_from_front_to_back) {
  SendWindow out = window(100);
  EXPECT_EQ(out.take_message(300), (RemoteBlock{kPeer, 0x77, 300}));
  EXPECT_EQ(out.take_message(600), (RemoteBlock{kPeer + 300, 0x77, 600}));
  EXPECT_EQ(out.take_message(600), (RemoteBlock{kPeer + 900, 0x77, 100})) << "as much as is left there";
  EXPECT_FALSE(out.has_room_for_message(1));
}

TEST_F(SendWindowTest, goes_on_in_the_next_target_that_the_peer_grants) {
  SendWindow out = window(100);
  offer(1, {0x200000, 0x78, 50});
  out.take_message(kHalf);
  ASSERT_FALSE(out.has_room_for_message(1)) << "written, and not told yet";
  out.take_grant(101, true);
  ASSERT_TRUE(out.has_room_for_message(1));
  EXPECT_EQ(out.take_message(60), (RemoteBlock{0x200000, 0x78, 50}));
}

TEST_F(SendWindowTest, needs_a_credit_for_each_message) {
  SendWindow out = window(2);
  out.take_message(1);
  out.take_message(1);
  EXPECT_FALSE(out.has_room_for_message(1));
  EXPECT_FALSE(out.has_room_for_mapping()) << "which is a message";
  EXPECT_TRUE(out.has_room_for(1)) << "a WRITE without one goes";
  out.take_grant(3, false);
  EXPECT_TRUE(out.has_room_for_message(1));
  EXPECT_TRUE(out.has_room_for_mapping());
}

TEST_F(SendWindowTest, needs_an_entry_of_the_send_queue) {
  SendWindow out = window(100);
  for (int i = 0; i < 12; ++i) {
    ASSERT_TRUE(out.has_room_for_message(1)) << i;
    out.take_message(1);
  }
  EXPECT_FALSE(out.has_room_for_message(1));
  EXPECT_FALSE(out.has_room_for(1));
  EXPECT_FALSE(out.has_room_for_mapping());
  EXPECT_TRUE(out.has_control()) << "these have entries of their own";
  out.give_back({WorkKind::data, 0});
  EXPECT_TRUE(out.has_room_for_message(1));
}

TEST_F(SendWindowTest, takes_no_more_than_a_quarter_of_the_buffer_at_a_time) {
  SendWindow out = window(100);
  ConnectionData large = peer(100);
  large.ring.length = 100'000;
  out.open(large);
  EXPECT_EQ(out.take_message(100'000).length, 1024U);
}

/// 4096 bytes of buffer hold four quarters; a fifth waits for the first.
TEST_F(SendWindowTest, needs_a_place_in_the_buffer) {
  SendWindow out = window(100);
  ConnectionData large = peer(100);
  large.ring.length = 100'000;
  out.open(large);
  std::deque<SendWindow::Place> places;
  for (uint32_t i = 0; i < 4; ++i) {
    ASSERT_TRUE(out.has_room_for_message(1024)) << i;
    places.push_back(out.take_place(out.take_message(1024).length));
    EXPECT_EQ(places.back().offset, i * 1024);
    EXPECT_EQ(places.back().cost_bytes, 1024U);
  }
  EXPECT_FALSE(out.has_room_for_message(1));
  EXPECT_TRUE(out.has_room_for_mapping()) << "which goes inline";
  out.give_back({WorkKind::data, 1024});
  EXPECT_TRUE(out.has_room_for_message(1024));
  EXPECT_EQ(out.take_place(1024).offset, 0U);
}

TEST_F(SendWindowTest, gives_back_with_a_place_what_was_passed_over_before_it) {
  SendWindow out = window(100);
  EXPECT_EQ(out.take_place(1000).offset, 0U);
  for (uint32_t i = 1; i < 4; ++i) {
    EXPECT_EQ(out.take_place(1000).offset, i * 1000);
  }
  out.take_message(1);
  out.give_back({WorkKind::data, 1000});
  const auto place = out.take_place(500);  // 96 bytes are left before the end
  EXPECT_EQ(place.offset, 0U);
  EXPECT_EQ(place.cost_bytes, 596U);
}

TEST_F(SendWindowTest, waits_for_room_for_all_that_is_wanted) {
  SendWindow out = window(100);
  out.take_place(4000);
  EXPECT_TRUE(out.has_room_for(96));
  EXPECT_FALSE(out.has_room_for(97));
  EXPECT_FALSE(out.has_room_for_message(97));
}

TEST_F(SendWindowTest, needs_no_more_room_than_the_peer_takes) {
  SendWindow out = window(100);
  out.take_message(kHalf - 10);
  out.take_place(4000);
  EXPECT_TRUE(out.has_room_for_message(5000)) << "ten bytes go";
}

TEST_F(SendWindowTest, writes_into_a_mapping_of_the_peer) {
  SendWindow out = window(0);
  map(1, 0x5000, {0x300000, 0x99, 400});
  ASSERT_TRUE(out.has_room_for(100));
  EXPECT_EQ(out.take_direct(0x5000, 100), (RemoteBlock{0x300000, 0x99, 100}));
  EXPECT_EQ(out.take_direct(0x5000 + 350, 100), (RemoteBlock{0x300000 + 350, 0x99, 50})) << "to its end";
  EXPECT_EQ(out.take_direct(0x5000 + 400, 1), std::nullopt);
  EXPECT_EQ(out.take_direct(0x4fff, 1), std::nullopt);
  out.give_back({WorkKind::data, 0});
  EXPECT_FALSE(out.is_idle());
  out.give_back({WorkKind::data, 0});
  EXPECT_TRUE(out.is_idle()) << "what was refused took no entry";
}

TEST_F(SendWindowTest, knows_what_goes_inline) {
  const SendWindow out = window(1);
  EXPECT_TRUE(out.is_inline(64));
  EXPECT_FALSE(out.is_inline(65));
}

TEST_F(SendWindowTest, of_a_device_without_inline_sends_mappings_from_the_buffer) {
  Settings none = settings();
  none.inline_bytes = 0;
  SendWindow out(none, TargetTable(memory_, 2));
  out.open(peer(10));
  EXPECT_TRUE(out.has_room_for_mapping());
  out.take_place(4096 - 23);
  EXPECT_FALSE(out.has_room_for_mapping());
}

TEST_F(SendWindowTest, is_idle_when_all_entries_are_back) {
  SendWindow out = window(10);
  EXPECT_TRUE(out.is_idle());
  out.take_message(10);
  out.take_control();
  EXPECT_FALSE(out.is_idle());
  out.give_back({WorkKind::data, 0});
  EXPECT_FALSE(out.is_idle());
  out.give_back({WorkKind::control, 0});
  EXPECT_TRUE(out.is_idle());
}

TEST_F(SendWindowTest, has_four_entries_for_control_messages) {
  SendWindow out = window(10);
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(out.has_control());
    out.take_control();
  }
  EXPECT_FALSE(out.has_control());
  EXPECT_TRUE(out.has_room_for_message(1));
  out.give_back({WorkKind::control, 0});
  EXPECT_TRUE(out.has_control());
}

}  // namespace
}  // namespace ringbolt::rsocket
