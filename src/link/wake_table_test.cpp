#include "link/wake_table.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <set>

#include "link/peer_queue.h"

namespace ringbolt::link {
namespace {

class WakeTableTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(table_.create()); }
  /// As a peer maps it.
  WakeMemory& memory() {
    if (!mapped_.is_mapped()) {
      mapped_ = std::move(*SharedSegment::map(base::UniqueFd(dup(table_.descriptor())), kWakeBytes, true));
    }
    return *reinterpret_cast<WakeMemory*>(mapped_.data());
  }
  static std::shared_ptr<const base::UniqueFd> event_descriptor() {
    return std::make_shared<const base::UniqueFd>(eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE | EFD_NONBLOCK));
  }
  static int count(int descriptor) {
    int count = 0;
    uint64_t one = 0;
    while (::read(descriptor, &one, sizeof one) == sizeof one) {
      ++count;
    }
    return count;
  }
  void arm(WakeName name, Notify wish) {
    table_.queue(name.index).notify.store((name.generation << kNotifyBits) | static_cast<uint32_t>(wish));
  }
  Notify state(WakeName name) { return notify_of(table_.queue(name.index).notify.load()); }

  WakeTable table_;
  SharedSegment mapped_;
};

TEST_F(WakeTableTest, a_place_given_anew_has_another_generation) {
  const auto first = table_.add_queue(kNoWakeChannel, 0);
  ASSERT_TRUE(first);
  EXPECT_NE(first->generation, 0U);
  table_.remove_queue(*first);
  const auto second = table_.add_queue(kNoWakeChannel, 0);
  EXPECT_EQ(second->index, first->index);
  EXPECT_NE(second->generation, first->generation);
}

TEST_F(WakeTableTest, every_place_is_given_once_and_then_refused) {
  std::set<uint32_t> places;
  for (uint32_t i = 0; i < kWakeQueues; ++i) {
    places.insert(table_.add_queue(kNoWakeChannel, 0)->index);
  }
  EXPECT_EQ(places.size(), kWakeQueues);
  EXPECT_EQ(table_.add_queue(kNoWakeChannel, 0).error().value, ENOMEM);
  uint32_t set = 0;
  for (uint32_t i = 0; i < kWakeSets; ++i) {
    ASSERT_TRUE(table_.add_set(set));
  }
  EXPECT_FALSE(table_.add_set(set));
  table_.remove_set(5);
  ASSERT_TRUE(table_.add_set(set));
  EXPECT_EQ(set, 5U);
  for (uint32_t i = 0; i < kWakeChannels; ++i) {
    ASSERT_NE(table_.add_channel(), kNoWakeChannel);
  }
  EXPECT_EQ(table_.add_channel(), kNoWakeChannel);
  table_.remove_channel(kNoWakeChannel);  // no effect
  table_.remove_channel(9);
  EXPECT_EQ(table_.add_channel(), 9U);
}

TEST_F(WakeTableTest, a_forked_child_gives_nothing_back) {
  const auto queue = table_.add_queue(kNoWakeChannel, 0);
  arm(*queue, Notify::next);
  table_.abandon_after_fork();
  table_.remove_queue(*queue);
  EXPECT_EQ(state(*queue), Notify::next);
}

TEST_F(WakeTableTest, nobodys_queue_is_never_told_of_anything) {
  const PeerQueue nobody;
  EXPECT_EQ(nobody.mode(), 0U);
  EXPECT_EQ(nobody.wish(), Notify::nothing);
  EXPECT_FALSE(nobody.ring());
  nobody.mark(0, 3);
  nobody.mark_for_service();
}

TEST_F(WakeTableTest, a_peer_marks_where_the_owner_wants_marks) {
  const auto name = table_.add_queue(kNoWakeChannel, 0);
  const PeerQueue queue(memory(), *name, nullptr);
  EXPECT_EQ(queue.mode(), 0U);
  uint32_t set = 0;
  ASSERT_TRUE(table_.add_set(set));
  table_.queue(name->index).mode.store((set + 1) << kWakeSetShift);
  queue.mark(queue.mode(), 300);
  EXPECT_TRUE(table_.set(set).has(300));
  queue.mark_for_service();
  EXPECT_TRUE(table_.service().has(name->index));
  queue.mark(~0U, 300);  // no set has such a number: nothing is written
}

TEST_F(WakeTableTest, who_rings_first_raises_the_event) {
  const auto channel = event_descriptor();
  const auto name = table_.add_queue(table_.add_channel(), 70);
  const PeerQueue one(memory(), *name, channel);
  const PeerQueue other(memory(), *name, channel);
  EXPECT_TRUE(one.ring()) << "it is not armed: nothing is to be done";
  EXPECT_EQ(count(channel->get()), 0);
  for (const Notify wish : {Notify::next, Notify::solicited}) {
    arm(*name, wish);
    EXPECT_EQ(one.wish(), wish);
    EXPECT_TRUE(one.ring());
    EXPECT_TRUE(other.ring());
    EXPECT_EQ(one.wish(), Notify::nothing);
    EXPECT_EQ(state(*name), Notify::rung);
    EXPECT_EQ(count(channel->get()), 1);
    EXPECT_EQ(table_.channel(table_.queue(name->index).channel.load()).rung.exchange(0), uint64_t{1} << (70 % 64));
  }
}

TEST_F(WakeTableTest, without_a_descriptor_nobody_is_rung) {
  const auto name = table_.add_queue(table_.add_channel(), 0);
  const PeerQueue queue(memory(), *name, nullptr);
  arm(*name, Notify::next);
  EXPECT_FALSE(queue.ring());
  EXPECT_EQ(state(*name), Notify::next) << "its service thread raises it";
}

TEST_F(WakeTableTest, a_late_peer_does_nothing_to_the_next_queue) {
  const auto channel = event_descriptor();
  const auto index = table_.add_channel();
  const auto first = table_.add_queue(index, 0);
  const PeerQueue late(memory(), *first, channel);
  arm(*first, Notify::next);
  table_.remove_queue(*first);
  const auto second = table_.add_queue(index, 0);
  arm(*second, Notify::next);
  EXPECT_EQ(late.wish(), Notify::nothing);
  EXPECT_TRUE(late.ring());
  EXPECT_EQ(state(*second), Notify::next);
  EXPECT_EQ(count(channel->get()), 0);
}

}  // namespace
}  // namespace ringbolt::link
