#include "device/ready_list.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <new>
#include <vector>

#include "device/queue_pair_places_test_support.h"

namespace ringbolt::device {
namespace {

using Places = std::vector<size_t>;

class ReadyListTest : public testing::Test {
 protected:
  QueuePair& qp(size_t number) { return queue_pairs_.at(number); }
  size_t number_of(const QueuePair& qp) const { return queue_pairs_.number_of(qp); }
  uint32_t add(size_t number) {
    list_.make_room();
    return list_.add(qp(number));
  }
  void add_up_to(size_t count) {
    for (size_t number = 0; number < count; ++number) {
      EXPECT_EQ(add(number), number);
    }
  }
  Places all() const {
    Places all;
    list_.each([&](const QueuePair& qp) { all.push_back(number_of(qp)); });
    return all;
  }
  Places marked() const {
    Places marked;
    list_.each_marked([&](const QueuePair& qp) { marked.push_back(number_of(qp)); });
    return marked;
  }
  Places in_turn() const {
    Places all;
    list_.in_turn([&](const QueuePair& qp) { all.push_back(number_of(qp)); });
    return all;
  }
  Places marked_in_turn() {
    Places all;
    list_.marked_in_turn([&](const QueuePair& qp) { all.push_back(number_of(qp)); });
    return all;
  }
  /// At most `most`; each of `has_more` stays marked.
  Places take(size_t most = SIZE_MAX, const Places& has_more = {}) {
    Places taken;
    list_.take_marked([&] { return taken.size() < most; },
                      [&](uint32_t place) {
                        taken.push_back(number_of(*list_.at(place)));
                        return std::find(has_more.begin(), has_more.end(), taken.back()) != has_more.end();
                      });
    return taken;
  }

  static constexpr size_t kMany = ReadyList::kFew + 2;
  QueuePairPlaces<kMany> queue_pairs_;
  std::unique_ptr<link::MarkSet> marks_ = std::make_unique<link::MarkSet>();
  ReadyList list_;
};

/// Memory is short, or the thread is cancelled.
TEST_F(ReadyListTest, those_that_an_exception_kept_from_being_looked_at_stay_marked) {
  add_up_to(kMany);
  list_.use(*marks_);
  EXPECT_EQ(take().size(), kMany);
  EXPECT_EQ(take(), Places{});
  list_.mark(2);
  list_.mark(5);
  EXPECT_THROW(list_.take_marked([] { return true; }, [](uint32_t) -> bool { throw std::bad_alloc(); }),
               std::bad_alloc);
  const Places taken = take();
  EXPECT_TRUE(std::ranges::includes(taken, Places{2, 5}));
}

TEST_F(ReadyListTest, few_are_all_looked_at) {
  add_up_to(ReadyList::kFew);
  EXPECT_FALSE(list_.wants_marks());
  list_.mark(3);  // nobody asks for that
  EXPECT_EQ(marked(), all());
  EXPECT_EQ(all().size(), ReadyList::kFew);
}

TEST_F(ReadyListTest, places_are_given_anew) {
  add_up_to(3);
  list_.remove(1);
  EXPECT_EQ(all(), (Places{0, 2}));
  EXPECT_EQ(add(7), 1U);
  EXPECT_EQ(all(), (Places{0, 7, 2}));
  for (uint32_t place = 0; place < 3; ++place) {
    EXPECT_FALSE(list_.is_empty());
    list_.remove(place);
  }
  EXPECT_TRUE(list_.is_empty());
}

TEST_F(ReadyListTest, place_of_a_suspended_one_is_kept) {
  add_up_to(2);
  list_.suspend(0);
  EXPECT_EQ(all(), Places{1});
  EXPECT_FALSE(list_.is_empty());
  EXPECT_EQ(add(5), 2U);
  list_.put(0, qp(0));
  EXPECT_EQ(all(), (Places{0, 1, 5}));
}

TEST_F(ReadyListTest, of_many_only_those_are_looked_at_that_are_marked) {
  add_up_to(kMany);
  ASSERT_TRUE(list_.wants_marks());
  list_.use(*marks_);
  EXPECT_FALSE(list_.wants_marks());
  EXPECT_EQ(take(), all()) << "each may have something from before";
  EXPECT_EQ(take(), Places{});
  list_.mark(4);
  list_.mark_unless_marked(4);
  list_.mark_unless_marked(7);
  EXPECT_EQ(marked(), (Places{4, 7}));
  EXPECT_EQ(take(SIZE_MAX, {4}), (Places{4, 7}));
  EXPECT_EQ(marked(), Places{4}) << "it said that it has more";
  list_.clear(4);
  EXPECT_EQ(marked(), Places{});
}

TEST_F(ReadyListTest, each_has_its_turn_when_there_is_little_room) {
  add_up_to(kMany);
  list_.use(*marks_);
  Places taken;
  for (size_t turn = 0; turn < kMany; ++turn) {
    const Places one = take(1, all());  // every one has more, always
    taken.insert(taken.end(), one.begin(), one.end());
  }
  EXPECT_EQ(taken, all());
}

TEST_F(ReadyListTest, begins_behind_the_one_that_began_where_no_room_was_left) {
  add_up_to(3);
  list_.suspend(1);
  EXPECT_EQ(in_turn(), (Places{0, 2}));
  EXPECT_EQ(in_turn(), (Places{0, 2})) << "there was room for all";
  list_.end_turn();
  EXPECT_EQ(in_turn(), (Places{2, 0}));
  list_.end_turn();
  EXPECT_EQ(in_turn(), (Places{2, 0}));
  list_.end_turn();
  EXPECT_EQ(in_turn(), (Places{0, 2}));
}

TEST_F(ReadyListTest, marked_ones_take_turns) {
  add_up_to(kMany);
  list_.use(*marks_);
  take();
  EXPECT_EQ(marked_in_turn(), Places{});
  for (const uint32_t place : {2U, 5U, 9U}) {
    list_.mark(place);
  }
  for (const Places& expected : {Places{2, 5, 9}, Places{5, 9, 2}, Places{9, 2, 5}, Places{2, 5, 9}}) {
    EXPECT_EQ(marked_in_turn(), expected);
    list_.end_turn();
  }
  EXPECT_EQ(marked(), (Places{2, 5, 9})) << "they stay marked";
}

TEST_F(ReadyListTest, marks_of_places_that_nobody_has_mean_nothing) {
  add_up_to(kMany);
  list_.use(*marks_);
  list_.remove(2);
  marks_->mark(kMany + 100);  // a peer wrote what it likes
  EXPECT_EQ(take().size(), kMany - 1);
  EXPECT_TRUE(marks_->is_empty());
}

}  // namespace
}  // namespace ringbolt::device
