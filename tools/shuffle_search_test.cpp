#include "shuffle_search.h"

#include <gtest/gtest.h>

namespace ringbolt::tools {
namespace {

using shuffle::Kind;
using shuffle::Wish;

Wish wish_of(const char* text) { return *shuffle::parse_wish(text); }

TEST(ShuffleSearch, finds_the_one_kind_and_the_one_operation) {
  for (const uint32_t number : {1U, 2U, 17U, 1000U}) {
    const auto fails = [&](const Wish& wish) { return wish.of(Kind::order).has(number); };
    EXPECT_EQ(text_of(shrunk(wish_of("7"), fails)), "7:order@" + std::to_string(number));
  }
}

TEST(ShuffleSearch, finds_the_stretch_that_is_needed) {
  const auto fails = [](const Wish& wish) { return wish.of(Kind::acks).has(5) && wish.of(Kind::acks).has(9); };
  EXPECT_EQ(text_of(shrunk(wish_of("7"), fails)), "7:acks@5-9");
}

TEST(ShuffleSearch, finds_two_kinds_that_need_each_other) {
  const auto fails = [](const Wish& wish) { return wish.of(Kind::late).has(3) && wish.of(Kind::async).has(2); };
  EXPECT_EQ(text_of(shrunk(wish_of("7"), fails)), "7:late@3,async@2");
}

TEST(ShuffleSearch, adds_nothing_to_what_was_wished_for) {
  const auto fails = [](const Wish& wish) { return wish.of(Kind::order).has(12); };
  EXPECT_EQ(text_of(shrunk(wish_of("7:order@10-20,late"), fails)), "7:order@12");
}

TEST(ShuffleSearch, leaves_what_does_not_fail_again) {
  EXPECT_EQ(shrunk(wish_of("7"), [](const Wish&) { return false; }), wish_of("7"));
}

TEST(ShuffleSearch, needs_few_runs) {
  int runs = 0;
  shrunk(wish_of("7"), [&](const Wish& wish) {
    ++runs;
    return wish.of(Kind::async).has(300);
  });
  EXPECT_LT(runs, 80);
}

TEST(ShuffleSearch, keeps_all_where_late_operations_are_the_ones) {
  const auto fails = [](const Wish& wish) { return wish.of(Kind::rnr).has(1U << 30U); };
  EXPECT_EQ(text_of(shrunk(wish_of("7"), fails)), "7:rnr");
}

}  // namespace
}  // namespace ringbolt::tools
