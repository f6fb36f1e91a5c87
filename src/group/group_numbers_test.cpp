#include "group/group_numbers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

namespace ringbolt::group {
namespace {

const std::vector<bool> kNothing(65536);

std::vector<bool> under_way(std::initializer_list<unsigned> groups) {
  std::vector<bool> some(65536);
  for (const unsigned group : groups) {
    some[group] = true;
  }
  return some;
}

uint16_t make_one(GroupNumbers& numbers, const std::vector<bool>& is_under_way = kNothing) {
  const std::vector<bool> free = numbers.free_for_split(is_under_way);
  const auto first = static_cast<uint16_t>(std::find(free.begin(), free.end(), true) - free.begin());
  EXPECT_LT(first, kFirstShrunkGroup);
  EXPECT_TRUE(numbers.reserve(std::array{first}, is_under_way));
  numbers.make(first);
  numbers.unreserve(first);
  return first;
}

/// That one. make_one() looks at all of them: sixteen thousand times that takes minutes where nothing is optimized.
void make(GroupNumbers& numbers, uint16_t number) {
  EXPECT_TRUE(numbers.reserve(std::array{number}, kNothing));
  numbers.make(number);
  numbers.unreserve(number);
}

TEST(GroupNumbers, are_given_again_when_their_group_has_ended) {
  GroupNumbers numbers;
  numbers.make(0);  // all ranks
  numbers.end(make_one(numbers));
  for (int round = 0; round < 2; ++round) {
    const std::vector<bool> free = numbers.free_for_split(kNothing);
    for (uint16_t number = 1; number < kFirstShrunkGroup; ++number) {
      EXPECT_TRUE(free[number]);
      make(numbers, number);
      EXPECT_FALSE(numbers.may_make(number));
      numbers.end(number);
      EXPECT_FALSE(numbers.may_come(number));  // what is late is of the old one
    }
  }
  EXPECT_FALSE(numbers.free_for_split(kNothing)[0]);
}

TEST(GroupNumbers, of_groups_that_are_there_run_out_and_come_back) {
  GroupNumbers numbers;
  EXPECT_EQ(make_one(numbers), 0);
  for (uint16_t i = 1; i + 1 < kFirstShrunkGroup; ++i) {
    EXPECT_EQ(numbers.next_split(), i);
    make(numbers, i);
  }
  EXPECT_EQ(make_one(numbers), kFirstShrunkGroup - 1);
  EXPECT_EQ(numbers.next_split(), kFirstShrunkGroup);
  const auto free = [&] {
    const std::vector<bool> all = numbers.free_for_split(kNothing);
    return std::count(all.begin(), all.end(), true);
  };
  EXPECT_EQ(free(), 0);
  numbers.end(77);
  EXPECT_EQ(free(), 1);
  EXPECT_EQ(make_one(numbers), 77);
}

TEST(GroupNumbers, rest_while_something_of_theirs_is_under_way) {
  GroupNumbers numbers;
  numbers.end(make_one(numbers));
  numbers.end(make_one(numbers, under_way({0})));
  EXPECT_EQ(make_one(numbers, under_way({0, 1U | kMessageGroup})), 2);
  EXPECT_FALSE(numbers.reserve(std::array{uint16_t{0}}, under_way({0})));
  EXPECT_TRUE(numbers.reserve(std::array{uint16_t{0}}, kNothing));
}

TEST(GroupNumbers, that_are_kept_may_come_and_are_nobody_elses) {
  GroupNumbers numbers;
  const std::array<uint16_t, 2> two = {5, 6};
  ASSERT_TRUE(numbers.reserve(two, kNothing));
  EXPECT_EQ(numbers.next_split(), 7);
  EXPECT_TRUE(numbers.may_come(5));
  EXPECT_FALSE(numbers.reserve(std::array{uint16_t{4}, uint16_t{5}}, kNothing));
  EXPECT_TRUE(numbers.reserve(std::array{uint16_t{4}}, kNothing));  // the refusal has kept nothing
  numbers.make(5);
  numbers.unreserve(5);
  numbers.unreserve(6);
  EXPECT_FALSE(numbers.may_come(6));
  EXPECT_FALSE(numbers.may_make(6));
  EXPECT_TRUE(numbers.reserve(std::array{uint16_t{6}}, kNothing));
  EXPECT_TRUE(numbers.may_come(6));
}

TEST(GroupNumbers, of_groups_that_were_shrunk_are_given_once) {
  GroupNumbers numbers;
  const uint16_t split = make_one(numbers);
  numbers.retire(split);
  numbers.end(split);
  EXPECT_FALSE(numbers.free_for_split(kNothing)[split]);
  numbers.make(kFirstShrunkGroup);
  numbers.end(kFirstShrunkGroup);
  EXPECT_FALSE(numbers.may_make(kFirstShrunkGroup));
  EXPECT_EQ(numbers.next_shrunk(), kFirstShrunkGroup + 1);
  EXPECT_EQ(numbers.free_for_split(kNothing).size(), kFirstShrunkGroup);
}

}  // namespace
}  // namespace ringbolt::group
