#include "device/completion_ring.h"

#include <gtest/gtest.h>

#include <deque>
#include <vector>

namespace ringbolt::device {
namespace {

using Ids = std::vector<uint64_t>;

void put(CompletionRing& ring, uint64_t id, uint32_t qpn = 1, bool is_solicited = false,
         ibv_wc_status status = IBV_WC_SUCCESS) {
  ibv_wc& wc = ring.next();
  wc = {};
  wc.wr_id = id;
  wc.qp_num = qpn;
  wc.status = status;
  ring.commit(is_solicited);
}

void put_all(CompletionRing& ring, const Ids& ids) {
  for (const uint64_t id : ids) {
    put(ring, id);
  }
}

Ids taken_from(CompletionRing& ring, int most = 100) {
  std::vector<ibv_wc> all(100);
  const int taken = ring.take(most, all.data());
  Ids ids;
  for (int i = 0; i < taken; ++i) {
    ids.push_back(all[static_cast<size_t>(i)].wr_id);
  }
  return ids;
}

/// An empty one becomes one whose next entry is the last of its array, so that those behind lie around its end.
void bring_to_its_end(CompletionRing& ring) {
  for (uint32_t i = 0; i + 1 < ring.capacity(); ++i) {
    put(ring, 999);
    taken_from(ring);
  }
}

TEST(CompletionRing, is_empty_at_first) {
  CompletionRing ring(2);
  EXPECT_TRUE(ring.is_empty());
  EXPECT_FALSE(ring.is_full());
  EXPECT_EQ(ring.capacity(), 2U);
  EXPECT_EQ(ring.committed(), 0U);
  EXPECT_EQ(ring.taken(), 0U);
  EXPECT_EQ(ring.last_solicited(), 0U);
  EXPECT_EQ(taken_from(ring), Ids{});
}

TEST(CompletionRing, gives_the_oldest_first_and_no_more_than_is_asked_for) {
  CompletionRing ring(4);
  put_all(ring, {1, 2, 3});
  EXPECT_EQ(taken_from(ring, 2), (Ids{1, 2}));
  EXPECT_EQ(ring.count(), 1U);
  EXPECT_EQ(taken_from(ring, 2), (Ids{3}));
  EXPECT_TRUE(ring.is_empty());
}

TEST(CompletionRing, nobody_takes_none_or_less) {
  CompletionRing ring(2);
  put(ring, 1);
  EXPECT_EQ(ring.take(0, nullptr), 0);
  EXPECT_EQ(ring.take(-1, nullptr), 0);
  EXPECT_EQ(ring.count(), 1U);
}

TEST(CompletionRing, of_one_entry_is_full_with_one) {
  CompletionRing ring(1);
  for (const uint64_t id : {7U, 8U, 9U}) {
    put(ring, id);
    EXPECT_TRUE(ring.is_full());
    EXPECT_EQ(taken_from(ring), (Ids{id}));
  }
}

TEST(CompletionRing, keeps_the_order_around_its_end) {
  CompletionRing ring(3);
  bring_to_its_end(ring);
  put_all(ring, {1, 2, 3});
  EXPECT_TRUE(ring.is_full());
  EXPECT_EQ(taken_from(ring, 2), (Ids{1, 2}));
  put_all(ring, {4, 5});
  EXPECT_EQ(taken_from(ring), (Ids{3, 4, 5}));
}

TEST(CompletionRing, one_too_many_harms_none_that_has_room_and_is_told_once) {
  CompletionRing ring(2);
  put_all(ring, {1, 2});
  ring.next().wr_id = 3;
  EXPECT_FALSE(ring.has_overflowed());
  EXPECT_TRUE(ring.note_overflow());
  EXPECT_FALSE(ring.note_overflow());
  EXPECT_TRUE(ring.has_overflowed());
  EXPECT_EQ(ring.committed(), 2U);
  EXPECT_EQ(taken_from(ring), (Ids{1, 2}));
}

// --- Numbers.

TEST(CompletionRing, numbers_completions_from_1) {
  CompletionRing ring(2);
  put(ring, 70);
  put(ring, 71, 1, true);
  EXPECT_EQ(ring.committed(), 2U);
  EXPECT_EQ(ring.last_solicited(), 2U);
  taken_from(ring, 1);
  EXPECT_EQ(ring.taken(), 1U);
  put(ring, 72);
  EXPECT_EQ(ring.committed(), 3U);
  EXPECT_EQ(ring.last_solicited(), 2U);
  taken_from(ring);
  EXPECT_EQ(ring.taken(), 3U);
}

TEST(CompletionRing, what_it_holds_and_what_is_to_come_fill_it_to_the_last_entry) {
  CompletionRing ring(4);
  EXPECT_FALSE(ring.may_overflow_with(4));
  EXPECT_TRUE(ring.may_overflow_with(5));
  put_all(ring, {1, 2, 3});
  EXPECT_FALSE(ring.may_overflow_with(1));
  EXPECT_TRUE(ring.may_overflow_with(2));
  taken_from(ring, 1);
  EXPECT_FALSE(ring.may_overflow_with(2));
  ring.resize(3);
  EXPECT_TRUE(ring.may_overflow_with(2));
  ring.forget(1);
  EXPECT_FALSE(ring.may_overflow_with(3));
}

// --- Size.

TEST(CompletionRing, grows_with_what_lies_around_its_end) {
  CompletionRing ring(3);
  bring_to_its_end(ring);
  put_all(ring, {1, 2, 3});
  ring.resize(5);
  EXPECT_EQ(ring.capacity(), 5U);
  put_all(ring, {4, 5});
  EXPECT_TRUE(ring.is_full());
  EXPECT_EQ(taken_from(ring), (Ids{1, 2, 3, 4, 5}));
}

TEST(CompletionRing, shrinks_to_what_it_holds) {
  CompletionRing ring(8);
  bring_to_its_end(ring);
  put_all(ring, {1, 2});
  ring.resize(2);
  EXPECT_TRUE(ring.is_full());
  EXPECT_EQ(taken_from(ring, 1), (Ids{1}));
  put(ring, 3);  // in its first place again
  EXPECT_EQ(taken_from(ring), (Ids{2, 3}));
}

TEST(CompletionRing, size_changes_no_number) {
  CompletionRing ring(2);
  put(ring, 1, 1, true);
  put(ring, 2);
  taken_from(ring, 1);
  ring.resize(7);
  EXPECT_EQ(ring.committed(), 2U);
  EXPECT_EQ(ring.taken(), 1U);
  EXPECT_EQ(ring.last_solicited(), 1U);
}

// --- Queue pairs that go.

TEST(CompletionRing, forgets_those_of_one_queue_pair_wherever_they_lie) {
  for (const uint32_t gone : {7U, 8U, 9U}) {
    CompletionRing ring(4);
    bring_to_its_end(ring);
    put(ring, 1, 7);
    put(ring, 2, 8);
    put(ring, 3, 8);
    put(ring, 4, 9);
    ring.forget(gone);
    const Ids kept = gone == 7 ? Ids{2, 3, 4} : gone == 8 ? Ids{1, 4} : Ids{1, 2, 3};
    EXPECT_EQ(ring.count(), kept.size());
    put(ring, 5, 7);
    Ids all = kept;
    all.push_back(5);
    EXPECT_EQ(taken_from(ring), all) << gone;
  }
}

TEST(CompletionRing, forgets_all_or_none) {
  CompletionRing ring(3);
  ring.forget(7);
  put(ring, 1, 7);
  put(ring, 2, 7);
  ring.forget(8);
  EXPECT_EQ(ring.count(), 2U);
  ring.forget(7);
  EXPECT_TRUE(ring.is_empty());
  EXPECT_EQ(ring.taken(), ring.committed());
}

TEST(CompletionRing, who_is_armed_for_solicited_ones_hears_of_one_that_stays) {
  CompletionRing ring(4);
  put(ring, 1, 7, true);
  put(ring, 2, 8);
  ring.forget(8);
  EXPECT_GT(ring.last_solicited(), ring.taken());
}

TEST(CompletionRing, no_solicited_one_is_made_up_when_some_are_forgotten) {
  CompletionRing ring(4);
  put(ring, 1, 7, true);
  taken_from(ring);
  put(ring, 2, 7);
  put(ring, 3, 8);
  ring.forget(8);
  EXPECT_LE(ring.last_solicited(), ring.taken());
  ring.forget(7);
  EXPECT_LE(ring.last_solicited(), ring.taken());
}

TEST(CompletionRing, forgetting_none_leaves_the_solicited_one_what_it_is) {
  CompletionRing ring(4);
  put(ring, 1, 7, true);
  put(ring, 2, 7);
  ring.forget(8);
  taken_from(ring, 1);
  EXPECT_LE(ring.last_solicited(), ring.taken()) << "it was polled";
}

TEST(CompletionRing, knows_whose_good_ones_it_holds) {
  CompletionRing ring(3);
  bring_to_its_end(ring);
  put(ring, 1, 7, true, IBV_WC_WR_FLUSH_ERR);
  put(ring, 2, 8);
  EXPECT_FALSE(ring.holds_success_of(7));
  EXPECT_TRUE(ring.holds_success_of(8));
  taken_from(ring, 2);
  EXPECT_FALSE(ring.holds_success_of(8)) << "its bytes are still in the array";
}

/// All of it against a list, in an order that a generator of numbers gives.
TEST(CompletionRing, does_what_a_list_does) {
  CompletionRing ring(1);
  std::deque<std::pair<uint64_t, uint32_t>> list;  // id, queue pair
  uint32_t state = 1;
  const auto draw = [&state](uint32_t below) {
    state = state * 1664525U + 1013904223U;  // Numerical Recipes, 7.1
    return (state >> 16U) % below;
  };
  uint64_t id = 0;
  for (int step = 0; step < 20'000; ++step) {
    switch (draw(8)) {
      case 0: {
        const uint32_t capacity = 1 + draw(9);
        if (capacity >= list.size()) {
          ring.resize(capacity);
        }
        break;
      }
      case 1: {
        const uint32_t qpn = draw(4);
        ring.forget(qpn);
        std::erase_if(list, [qpn](const auto& one) { return one.second == qpn; });
        break;
      }
      case 2:
      case 3:
      case 4: {
        const size_t most = draw(4);
        Ids expected;
        while (expected.size() < most && !list.empty()) {
          expected.push_back(list.front().first);
          list.pop_front();
        }
        ASSERT_EQ(taken_from(ring, static_cast<int>(most)), expected) << step;
        break;
      }
      default:
        if (list.size() < ring.capacity()) {
          ASSERT_FALSE(ring.is_full()) << step;
          const uint32_t qpn = draw(4);
          put(ring, ++id, qpn);
          list.emplace_back(id, qpn);
        }
    }
    ASSERT_EQ(ring.count(), list.size()) << step;
    ASSERT_EQ(ring.is_full(), list.size() == ring.capacity()) << step;
    ASSERT_EQ(ring.committed(), id);
  }
}

}  // namespace
}  // namespace ringbolt::device
