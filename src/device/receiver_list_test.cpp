#include "device/receiver_list.h"

#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <set>
#include <vector>

#include "device/queue_pair_places_test_support.h"
#include "device/wake_test_support.h"

namespace ringbolt::device {
namespace {

/// Queue pairs by their numbers, which are their places.
class ReceiverListTest : public testing::Test {
 protected:
  using Numbers = std::vector<size_t>;

  void add(size_t count) {
    for (size_t number = 0; number < count; ++number) {
      list_->all().make_room();
      ASSERT_EQ(list_->all().add(queue_pairs_.at(number)), number);
      list_->use_marks();
    }
  }
  /// Many, which all have been looked at.
  void add_many() {
    add(kMany);
    ASSERT_TRUE(list_->all().uses_marks());
    look();
  }
  size_t number_of(const QueuePair& qp) const { return queue_pairs_.number_of(qp); }
  /// A message comes: its sender marks the queue pair unless it is told not to.
  void send_to(uint32_t number) {
    has_.insert(number);
    peer_.mark(peer_.mode(), number);
  }
  /// Whether a peer that has something for it marks it.
  bool peer_marks(uint32_t number) {
    link::MarkSet& set = wakes_.table.set((peer_.mode() >> link::kWakeSetShift) - 1);
    set.clear(number);
    peer_.mark(peer_.mode(), number);
    const bool has = set.has(number);
    set.clear(number);
    return has;
  }
  /// One look, with room for so many: whom it brought on. Each has nothing more then, but those of `more_`.
  Numbers look(size_t room = SIZE_MAX) {
    Numbers seen;
    list_->progress_marked([&] { return seen.size() < room; },
                           [&](const QueuePair& qp) { return has_.contains(number_of(qp)); },
                           [&](QueuePair& qp) {
                             seen.push_back(number_of(qp));
                             if (!more_.contains(seen.back())) {
                               has_.erase(seen.back());
                             }
                           },
                           [&](const QueuePair& qp) { return more_.contains(number_of(qp)); });
    return seen;
  }
  /// Two messages in a row for this one alone: it is busy then.
  void make_busy(uint32_t number) {
    for (int i = 0; i < 2; ++i) {
      send_to(number);
      ASSERT_EQ(look(), Numbers{number});
    }
  }

  static constexpr size_t kMany = ReadyList::kFew + 2;
  static constexpr int kLooksUntilStruck = 2 * 256;  // BusyPlace: from time to time, if it had nothing since the last
  WakeTableUnderTest wakes_;
  QueuePairPlaces<kMany> queue_pairs_;
  // Without a channel there is nowhere to announce its queue.
  std::unique_ptr<WakeEntry> entry_ = std::make_unique<WakeEntry>(wakes_.table, nullptr, nullptr);
  std::unique_ptr<ReceiverList> list_ = std::make_unique<ReceiverList>(wakes_.table, *entry_);
  link::PeerQueue peer_{wakes_.as_mapped(), entry_->name(), nullptr};
  std::set<size_t> has_;
  std::set<size_t> more_;  ///< has more than one look takes
};

TEST_F(ReceiverListTest, peers_need_not_mark_a_few) {
  add(ReadyList::kFew);
  EXPECT_FALSE(list_->all().uses_marks());
  EXPECT_EQ(peer_.mode(), 0U);
}

TEST_F(ReceiverListTest, many_are_all_looked_at_once_and_then_those_that_are_marked) {
  add(kMany);
  EXPECT_NE(peer_.mode() >> link::kWakeSetShift, 0U);
  Numbers all(ReadyList::kFew + 1);  // those that there were when marks came into use
  std::iota(all.begin(), all.end(), 0U);
  EXPECT_EQ(look(), all);
  EXPECT_EQ(look(), Numbers{});
  send_to(9);
  send_to(4);
  EXPECT_EQ(look(), (Numbers{4, 9}));
  EXPECT_EQ(look(), Numbers{});
}

TEST_F(ReceiverListTest, bit_of_the_arming_stays_when_marks_come_into_use) {
  entry_->show_arming();
  add(kMany);
  EXPECT_NE(peer_.mode() & link::kWakeIsArmed, 0U);
}

TEST_F(ReceiverListTest, where_no_set_is_left_all_are_looked_at) {
  uint32_t set = 0;
  while (wakes_.table.add_set(set)) {
  }
  add(kMany);
  EXPECT_FALSE(list_->all().uses_marks());
  EXPECT_EQ(peer_.mode(), 0U);
  list_.reset();
  EXPECT_FALSE(wakes_.table.add_set(set)) << "what was not taken is not given back";
}

TEST_F(ReceiverListTest, its_set_is_given_back) {
  add(kMany);
  const uint32_t own = (peer_.mode() >> link::kWakeSetShift) - 1;
  list_.reset();
  uint32_t set = 0;
  ASSERT_TRUE(wakes_.table.add_set(set));
  EXPECT_EQ(set, own);
}

TEST_F(ReceiverListTest, who_has_more_is_looked_at_again) {
  add_many();
  more_ = {3};
  send_to(3);
  send_to(5);
  EXPECT_EQ(look(), (Numbers{3, 5}));
  more_.clear();
  EXPECT_EQ(look(), Numbers{3});
  EXPECT_EQ(look(), Numbers{});
}

TEST_F(ReceiverListTest, look_without_room_left_goes_on_there_the_next_time) {
  add_many();
  more_ = {1, 2, 6};
  for (const uint32_t number : {1U, 2U, 6U}) {
    send_to(number);
  }
  EXPECT_EQ(look(1), Numbers{1});
  EXPECT_EQ(look(1), Numbers{2});
  EXPECT_EQ(look(1), Numbers{6});
  EXPECT_EQ(look(1), Numbers{1});
  EXPECT_EQ(look(0), Numbers{});
}

TEST_F(ReceiverListTest, one_that_is_found_again_is_looked_at_without_marks) {
  add_many();
  make_busy(4);
  EXPECT_FALSE(peer_marks(4));
  EXPECT_TRUE(peer_marks(5));
  has_.insert(4);
  EXPECT_EQ(look(), Numbers{4});
  EXPECT_EQ(look(), Numbers{}) << "it has nothing";
}

TEST_F(ReceiverListTest, what_the_busy_one_has_left_needs_no_mark_of_its_own) {
  add_many();
  more_ = {4};
  send_to(4);
  ASSERT_EQ(look(), Numbers{4});
  ASSERT_EQ(look(), Numbers{4});
  EXPECT_FALSE(list_->all().has_marked());
  EXPECT_EQ(look(), Numbers{4});
}

TEST_F(ReceiverListTest, those_that_take_turns_are_not_busy) {
  add_many();
  for (int round = 0; round < 4; ++round) {
    send_to(2);
    EXPECT_EQ(look(), Numbers{2});
    send_to(3);
    EXPECT_EQ(look(), Numbers{3});
  }
  EXPECT_TRUE(peer_marks(2));
  EXPECT_TRUE(peer_marks(3));
  send_to(2);
  send_to(3);
  EXPECT_EQ(look(), (Numbers{2, 3})) << "two at a time";
  send_to(2);
  send_to(3);
  EXPECT_EQ(look(), (Numbers{2, 3}));
  EXPECT_TRUE(peer_marks(2));
}

TEST_F(ReceiverListTest, busy_one_that_has_nothing_for_long_is_looked_at_once_more_and_marked_again) {
  add_many();
  make_busy(4);
  int looks = 0;
  Numbers seen;
  while (seen.empty() && looks < kLooksUntilStruck) {
    seen = look();
    ++looks;
  }
  EXPECT_EQ(seen, Numbers{4}) << "what came without a mark would be found";
  EXPECT_TRUE(peer_marks(4));
  has_.insert(4);
  EXPECT_EQ(look(), Numbers{});
}

TEST_F(ReceiverListTest, busy_one_that_has_something_again_and_again_stays_busy) {
  add_many();
  make_busy(4);
  for (int i = 0; i < 2 * kLooksUntilStruck; ++i) {
    has_.insert(4);
    ASSERT_EQ(look(), Numbers{4}) << i;
  }
}

TEST_F(ReceiverListTest, busy_one_takes_its_turn_when_others_find_no_room) {
  add_many();
  make_busy(4);
  more_ = {4};
  has_.insert(4);
  send_to(6);
  EXPECT_EQ(look(1), Numbers{4}) << "and leaves no room for the other";
  EXPECT_TRUE(list_->all().has_marked());
  EXPECT_EQ(look(1), Numbers{6}) << "it is marked like the others, and its turn is over";
  EXPECT_EQ(look(1), Numbers{4});
}

TEST_F(ReceiverListTest, place_of_a_busy_one_that_is_gone_is_not_busy) {
  add_many();
  make_busy(4);
  has_.insert(4);
  list_->remove(4);
  EXPECT_EQ(look(), Numbers{});
  list_->all().make_room();
  ASSERT_EQ(list_->all().add(queue_pairs_.at(4)), 4U);
  EXPECT_EQ(look(), Numbers{}) << "nobody has marked it";
  EXPECT_TRUE(peer_marks(4));
}

TEST_F(ReceiverListTest, mark_of_one_that_is_gone_is_nobodys) {
  add_many();
  send_to(4);
  list_->remove(4);
  EXPECT_EQ(look(), Numbers{});
  peer_.mark(peer_.mode(), 4);  // by a late peer
  peer_.mark(peer_.mode(), 5000);
  EXPECT_EQ(look(), Numbers{});
}

TEST_F(ReceiverListTest, suspended_one_keeps_its_place_and_is_not_looked_at) {
  add_many();
  make_busy(4);
  list_->all().suspend(4);
  has_.insert(4);
  EXPECT_EQ(look(), Numbers{});
  list_->all().put(4, queue_pairs_.at(4));
  EXPECT_EQ(look(), Numbers{4});
}

}  // namespace
}  // namespace ringbolt::device
