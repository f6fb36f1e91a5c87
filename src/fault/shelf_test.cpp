#include "fault/shelf.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace ringbolt::fault {
namespace {

std::string take_all(Shelf<char>& shelf, uint64_t now_ns) {
  std::string taken;
  while (const auto frame = shelf.take(now_ns)) {
    taken += *frame;
  }
  return taken;
}

TEST(Shelf, empty_has_nothing) {
  Shelf<char> shelf;
  EXPECT_EQ(take_all(shelf, UINT64_MAX), "");
  EXPECT_EQ(shelf.next_due_ns(), UINT64_MAX);
}

TEST(Shelf, frame_comes_after_so_many_others) {
  Shelf<char> shelf;
  shelf.put('a', 3, 1000);
  for (int passed = 0; passed < 3; ++passed) {
    EXPECT_EQ(take_all(shelf, 0), "") << passed;
    shelf.count_passing();
  }
  EXPECT_EQ(shelf.next_due_ns(), 0U);
  EXPECT_EQ(take_all(shelf, 0), "a");
  EXPECT_TRUE(shelf.is_empty());
}

TEST(Shelf, frame_comes_at_its_time_when_no_other_does) {
  Shelf<char> shelf;
  shelf.put('a', 3, 1000);
  EXPECT_EQ(shelf.next_due_ns(), 1000U);
  EXPECT_EQ(take_all(shelf, 999), "");
  EXPECT_EQ(take_all(shelf, 1000), "a");
}

TEST(Shelf, equal_times_keep_the_order_and_other_times_make_it) {
  Shelf<char> shelf;
  shelf.put('a', 0, 500);
  shelf.put('b', 0, 500);
  shelf.put('c', 0, 400);
  for (int i = 0; i < 100; ++i) {
    shelf.count_passing();  // means nothing to those that wait for a time
  }
  EXPECT_EQ(take_all(shelf, 399), "");
  EXPECT_EQ(take_all(shelf, 450), "c");
  EXPECT_EQ(take_all(shelf, 500), "ab");
}

TEST(Shelf, releasing_empties_it_once) {
  Shelf<char> shelf;
  shelf.put('a', 5, 1000);
  shelf.put('b', 0, 2000);
  shelf.release_all();
  EXPECT_EQ(shelf.next_due_ns(), 0U);
  EXPECT_EQ(take_all(shelf, 0), "ab");
  shelf.put('c', 0, 1000);
  EXPECT_EQ(take_all(shelf, 0), "");
}

TEST(Shelf, releasing_an_empty_one_means_nothing_to_what_comes_later) {
  Shelf<char> shelf;
  shelf.release_all();
  shelf.put('a', 0, 1000);
  EXPECT_EQ(take_all(shelf, 0), "");
}

TEST(Shelf, is_full_at_its_bound) {
  Shelf<int> shelf;
  for (size_t i = 0; i < Shelf<int>::kMaxFrames; ++i) {
    EXPECT_FALSE(shelf.is_full());
    shelf.put(static_cast<int>(i), 1, 1000);
  }
  EXPECT_TRUE(shelf.is_full());
  shelf.count_passing();
  for (size_t i = 0; i < Shelf<int>::kMaxFrames; ++i) {
    EXPECT_EQ(shelf.take(0), static_cast<int>(i));
  }
  EXPECT_TRUE(shelf.is_empty());
}

}  // namespace
}  // namespace ringbolt::fault
