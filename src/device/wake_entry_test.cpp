// One event a request for notification, whoever raises it: docs/formats/wake-table.md.

#include "device/wake_entry.h"

#include <gtest/gtest.h>

#include <new>
#include <vector>

#include "device/wake_test_support.h"

namespace ringbolt::device {
namespace {

using link::Notify;

TEST_F(WakeEntryTest, waits_for_nothing_at_first) {
  EXPECT_EQ(entry_->notify(), Notify::nothing);
  EXPECT_FALSE(entry_->is_armed());
  EXPECT_EQ(peer_.mode(), 0U);
  EXPECT_EQ(peer_.wish(), Notify::nothing);
  EXPECT_EQ(entry_->channel_number(), channel_->number());
  EXPECT_EQ(entry_->channel_descriptor(), channel_->descriptor());
  EXPECT_EQ(entry_->sleepers(), channel_->waiters().get());
}

TEST_F(WakeEntryTest, peers_see_what_it_waits_for) {
  for (const Notify wish : {Notify::solicited, Notify::next}) {
    entry_->arm(wish);
    EXPECT_EQ(entry_->notify(), wish);
    EXPECT_TRUE(entry_->is_armed());
    EXPECT_EQ(peer_.wish(), wish);
  }
}

TEST_F(WakeEntryTest, peers_look_at_that_from_the_first_arming_on) {
  entry_->shown().mode.store(3U << link::kWakeSetShift);
  for (int i = 0; i < 2; ++i) {
    entry_->show_arming();
    EXPECT_EQ(peer_.mode(), (3U << link::kWakeSetShift) | link::kWakeIsArmed);
  }
}

TEST_F(WakeEntryTest, raises_one_event_an_arming) {
  EXPECT_FALSE(entry_->raise());
  for (const Notify wish : {Notify::solicited, Notify::next}) {
    entry_->arm(wish);
    EXPECT_TRUE(entry_->raise());
    EXPECT_FALSE(entry_->raise());
    EXPECT_EQ(entry_->notify(), Notify::nothing);
    EXPECT_EQ(events(), 1);
  }
}

TEST_F(WakeEntryTest, before_the_completion_is_seen_only_who_waits_for_any_is_woken) {
  EXPECT_FALSE(entry_->ring());
  entry_->arm(Notify::solicited);
  EXPECT_FALSE(entry_->ring());
  EXPECT_EQ(events(), 0);
  EXPECT_EQ(entry_->notify(), Notify::solicited);
  entry_->arm(Notify::next);
  EXPECT_TRUE(entry_->ring());
  EXPECT_FALSE(entry_->ring());
  EXPECT_EQ(entry_->notify(), Notify::raised);
  EXPECT_EQ(events(), 1);
}

TEST_F(WakeEntryTest, event_of_a_peer_is_given_to_the_program_once) {
  entry_->arm(Notify::next);
  EXPECT_TRUE(peer_.ring());
  EXPECT_EQ(entry_->notify(), Notify::rung);
  EXPECT_TRUE(is_readable());
  EXPECT_EQ(events(), 1);
  EXPECT_EQ(entry_->notify(), Notify::raised);
  EXPECT_FALSE(entry_->collect_ring());
}

TEST_F(WakeEntryTest, who_comes_first_raises_the_event) {
  entry_->arm(Notify::next);
  EXPECT_TRUE(peer_.ring());
  EXPECT_FALSE(entry_->raise());
  EXPECT_FALSE(entry_->ring());
  EXPECT_EQ(events(), 1);
  entry_->arm(Notify::next);
  EXPECT_TRUE(entry_->raise());
  peer_.ring();
  EXPECT_EQ(entry_->notify(), Notify::nothing);
  EXPECT_EQ(events(), 1);
}

TEST_F(WakeEntryTest, event_of_a_peer_is_not_lost_when_it_is_armed_again) {
  entry_->arm(Notify::next);
  peer_.ring();
  entry_->arm(Notify::next);
  EXPECT_TRUE(entry_->is_armed());
  EXPECT_EQ(events(), 1) << "of the first arming";
  EXPECT_TRUE(entry_->raise());
  EXPECT_EQ(events(), 1);
}

TEST_F(WakeEntryTest, event_of_a_peer_waits_with_the_others_when_it_is_looked_for) {
  entry_->announce_ring();
  EXPECT_EQ(events(), 0);
  entry_->arm(Notify::solicited);
  peer_.ring();
  entry_->announce_ring();
  entry_->announce_ring();
  EXPECT_EQ(entry_->notify(), Notify::raised);
  EXPECT_EQ(events(), 1);
}

TEST_F(WakeEntryTest, peer_that_dies_before_it_has_written_to_the_descriptor_is_made_up_for) {
  entry_->arm(Notify::next);
  link::WakeQueue& shown = wakes_.as_mapped().queues[entry_->name().index];
  shown.notify.store((entry_->name().generation << link::kNotifyBits) | static_cast<uint32_t>(Notify::rung));
  wakes_.as_mapped().channels[channel_->index()].rung.fetch_or(1);  // the channel's first user
  EXPECT_FALSE(is_readable());
  entry_->count_again();
  EXPECT_TRUE(is_readable());
  EXPECT_EQ(events(), 1);
  entry_->count_again();
  EXPECT_FALSE(is_readable());
}

TEST_F(WakeEntryTest, without_a_channel_it_can_be_armed_all_the_same) {
  WakeEntry bare(wakes_.table, nullptr, queue_.get());
  bare.join_channel(owner_);
  EXPECT_EQ(bare.channel_number(), 0U);
  EXPECT_EQ(bare.channel_descriptor(), -1);
  EXPECT_EQ(bare.sleepers(), nullptr);
  bare.make_room();
  bare.arm(Notify::next);
  EXPECT_TRUE(bare.raise());
  bare.arm(Notify::next);
  EXPECT_TRUE(bare.ring());
  bare.count_again();
  bare.retire();
  EXPECT_FALSE(bare.is_armed());
  EXPECT_EQ(events(), 0);
}

// --- Its end.

TEST_F(WakeEntryTest, retired_one_raises_nothing) {
  entry_->arm(Notify::next);
  entry_->retire();
  channel_.reset();  // who retired it may destroy the channel
  EXPECT_FALSE(entry_->is_armed());
  EXPECT_EQ(peer_.wish(), Notify::nothing);
  EXPECT_FALSE(entry_->raise());
  EXPECT_FALSE(entry_->ring());
  EXPECT_TRUE(peer_.ring()) << "there is nothing to do";
  EXPECT_FALSE(entry_->collect_ring());
}

TEST_F(WakeEntryTest, event_that_nobody_took_ends_with_it) {
  entry_->arm(Notify::next);
  peer_.ring();
  entry_->retire();
  EXPECT_FALSE(is_readable());
  EXPECT_FALSE(entry_->collect_ring());
  EXPECT_EQ(events(), 0);
}

TEST_F(WakeEntryTest, event_of_one_whose_owner_is_gone_is_given_to_nobody) {
  entry_->arm(Notify::next);
  peer_.ring();
  owner_.reset();
  EXPECT_EQ(events(), 0);
}

TEST_F(WakeEntryTest, next_one_takes_its_places_and_late_peers_do_not_know_it) {
  const link::WakeName name = entry_->name();
  entry_->retire();
  entry_ = nullptr;
  WakeEntry next(wakes_.table, channel_.get(), queue_.get());
  next.join_channel(owner_);
  EXPECT_EQ(next.name().index, name.index);
  EXPECT_NE(next.name().generation, name.generation);
  EXPECT_EQ(next.shown().place.load(), 0U);
  next.arm(Notify::next);
  EXPECT_EQ(peer_.wish(), Notify::nothing);
  peer_.ring();
  EXPECT_TRUE(next.is_armed());
  peer_of(next.name()).ring();
  EXPECT_EQ(events(), 1);
}

TEST_F(WakeEntryTest, one_that_was_given_to_nobody_gives_its_places_back) {
  uint32_t index = 0;
  {
    WakeEntry unused(wakes_.table, channel_.get(), queue_.get());
    index = unused.name().index;
    EXPECT_EQ(unused.shown().place.load(), 1U);
  }
  WakeEntry next(wakes_.table, channel_.get(), queue_.get());
  EXPECT_EQ(next.name().index, index);
  EXPECT_EQ(next.shown().place.load(), 1U);
}

TEST_F(WakeEntryTest, where_all_entries_are_taken_the_channel_has_its_place_back) {
  std::vector<link::WakeName> names;
  while (const auto name = wakes_.table.add_queue(link::kNoWakeChannel, 0)) {
    names.push_back(*name);
  }
  EXPECT_THROW(WakeEntry(wakes_.table, channel_.get(), queue_.get()), std::bad_alloc);
  wakes_.table.remove_queue(names.front());
  WakeEntry next(wakes_.table, channel_.get(), queue_.get());
  EXPECT_EQ(next.name().index, names.front().index);
  EXPECT_EQ(next.shown().place.load(), 1U);
}

}  // namespace
}  // namespace ringbolt::device
