#include "link/mark_set.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <set>
#include <thread>
#include <vector>

namespace ringbolt::link {
namespace {

using Numbers = std::vector<uint32_t>;

class MarkSetTest : public ::testing::Test {
 protected:
  /// All that is marked, from the cursor on.
  Numbers take() {
    Numbers taken;
    marks_->take(cursor_, [&](uint32_t number) {
      taken.push_back(number);
      return true;
    });
    return taken;
  }
  /// At most `most` of it.
  Numbers take(size_t most) {
    Numbers taken;
    marks_->take(cursor_, [&](uint32_t number) {
      if (taken.size() == most) {
        return false;
      }
      taken.push_back(number);
      return true;
    });
    return taken;
  }
  Numbers all() const {
    Numbers all;
    marks_->each([&](uint32_t number) { all.push_back(number); });
    return all;
  }
  Numbers all_from(uint32_t first) const {
    Numbers all;
    marks_->each(first, [&](uint32_t number) { all.push_back(number); });
    return all;
  }
  std::unique_ptr<MarkSet> marks_ = std::make_unique<MarkSet>();
  uint32_t cursor_ = 0;
};

TEST_F(MarkSetTest, gives_each_number_once) {
  EXPECT_TRUE(marks_->is_empty());
  for (const uint32_t number : {kMarks - 1, 0U, 63U, 64U, 4096U, 64U}) {
    marks_->mark(number);
    EXPECT_TRUE(marks_->has(number));
  }
  EXPECT_FALSE(marks_->is_empty());
  EXPECT_FALSE(marks_->has(1));
  EXPECT_EQ(all(), (Numbers{0, 63, 64, 4096, kMarks - 1}));
  EXPECT_EQ(all_from(64), (Numbers{64, 4096, kMarks - 1, 0, 63}));
  EXPECT_EQ(all_from(65), (Numbers{4096, kMarks - 1, 0, 63, 64}));
  EXPECT_EQ(take(), (Numbers{0, 63, 64, 4096, kMarks - 1}));
  EXPECT_TRUE(marks_->is_empty());
  EXPECT_EQ(take(), Numbers{});
}

TEST_F(MarkSetTest, a_mark_whose_maker_was_killed_half_way_is_not_found) {
  constexpr size_t kLeavesAt = 128;  // bytes; see docs/formats/wake-table.md
  reinterpret_cast<std::atomic<uint64_t>*>(marks_.get())[kLeavesAt / sizeof(uint64_t)].store(1U << 7U);
  EXPECT_TRUE(marks_->has(7));
  EXPECT_FALSE(marks_->is_found(7));
  marks_->mark(7);
  EXPECT_TRUE(marks_->is_found(7));
  EXPECT_EQ(take(), Numbers{7});
  EXPECT_FALSE(marks_->is_found(7));
}

TEST_F(MarkSetTest, goes_on_where_there_was_no_room) {
  for (const uint32_t number : {1U, 2U, 3U, 70U, 5000U}) {
    marks_->mark(number);
  }
  EXPECT_EQ(take(2), (Numbers{1, 2}));
  EXPECT_EQ(all(), (Numbers{3, 70, 5000}));
  marks_->mark(1);  // it was served: the others come first
  EXPECT_EQ(take(2), (Numbers{3, 70}));
  EXPECT_EQ(take(2), (Numbers{5000, 1}));
  EXPECT_TRUE(marks_->is_empty());
}

TEST_F(MarkSetTest, a_round_that_begins_within_a_leaf_ends_there) {
  for (uint32_t number = 128; number < 192; ++number) {
    marks_->mark(number);
  }
  cursor_ = 150;
  const Numbers taken = take();
  EXPECT_EQ(taken.size(), 64U);
  EXPECT_EQ(taken.front(), 150U);
  EXPECT_EQ(taken.back(), 149U);
  EXPECT_TRUE(marks_->is_empty());
}

TEST_F(MarkSetTest, what_is_marked_while_it_is_taken_stays) {
  marks_->mark(7);
  marks_->take(cursor_, [&](uint32_t number) {
    marks_->mark(number);
    return true;
  });
  EXPECT_EQ(all(), Numbers{7});
}

TEST_F(MarkSetTest, clears_one_and_leaves_its_neighbours) {
  marks_->mark(8);
  marks_->mark(9);
  marks_->clear(8);
  marks_->clear(10);
  EXPECT_EQ(all(), Numbers{9});
  marks_->clear(9);
  EXPECT_TRUE(marks_->is_empty());
}

// Two threads mark, one takes: whatever was stored before a mark is found with it, or the mark is still there.
TEST_F(MarkSetTest, loses_nothing_between_threads) {
  constexpr uint32_t kRounds = 20'000;
  constexpr uint32_t kNumbers[] = {0, 1, 64, 8191};  // of one leaf, of two, of two roots
  std::atomic<uint32_t> stored[4] = {};
  std::atomic<int> running{2};
  std::vector<std::thread> markers;
  for (uint32_t half = 0; half < 2; ++half) {
    markers.emplace_back([&, half] {
      for (uint32_t round = 1; round <= kRounds; ++round) {
        for (const uint32_t i : {half, half + 2}) {
          stored[i].store(round, std::memory_order_relaxed);
          marks_->mark(kNumbers[i]);
        }
      }
      --running;
    });
  }
  uint32_t seen[4] = {};
  do {
    marks_->take(cursor_, [&](uint32_t number) {
      for (uint32_t i = 0; i < 4; ++i) {
        seen[i] = kNumbers[i] == number ? stored[i].load(std::memory_order_relaxed) : seen[i];
      }
      return true;
    });
  } while (running != 0 || !marks_->is_empty());
  for (std::thread& marker : markers) {
    marker.join();
  }
  for (const uint32_t last : seen) {
    EXPECT_EQ(last, kRounds);
  }
}

}  // namespace
}  // namespace ringbolt::link
