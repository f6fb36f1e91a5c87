#include "shuffle/wish.h"

#include <gtest/gtest.h>

namespace ringbolt::shuffle {
namespace {

TEST(ShuffleWish, a_seed_alone_has_all_kinds) {
  const auto wish = parse_wish("7");
  ASSERT_TRUE(wish);
  EXPECT_EQ(*wish, (Wish{7, {}}));
  EXPECT_EQ(text_of(*wish), "7");
}

TEST(ShuffleWish, kinds_and_operations_are_read_as_they_are_written) {
  for (const char* text : {"7:late", "0:late,order", "18446744073709551615:order@17,acks@3-20", "7:rnr@2-"}) {
    const auto wish = parse_wish(text);
    ASSERT_TRUE(wish) << text;
    EXPECT_EQ(text_of(*wish), text);
  }
  const auto wish = parse_wish("7:acks@3-20");
  EXPECT_FALSE(wish->of(Kind::acks).has(2));
  EXPECT_TRUE(wish->of(Kind::acks).has(3));
  EXPECT_TRUE(wish->of(Kind::acks).has(20));
  EXPECT_FALSE(wish->of(Kind::acks).has(21));
  EXPECT_FALSE(wish->of(Kind::late).has(1));
}

TEST(ShuffleWish, seeds_are_one_or_a_range) {
  const auto seeds = parse_seeds("1-1000:order");
  ASSERT_TRUE(seeds);
  EXPECT_EQ(seeds->first, 1U);
  EXPECT_EQ(seeds->last, 1000U);
  EXPECT_EQ(text_of(seeds->wish), "1:order");
  EXPECT_EQ(parse_seeds("5")->last, 5U);
}

TEST(ShuffleWish, a_slip_is_named) {
  const auto problem = [](const char* text) { return parse_wish(text).error().problem; };
  EXPECT_EQ(problem("").find("\"\" is no seed"), 0U);
  EXPECT_EQ(problem("x7").find("\"x7\" is no seed"), 0U);
  EXPECT_EQ(problem("-7").find("\"-7\" is no seed"), 0U);
  EXPECT_EQ(problem("9-7").find("\"9-7\" is no seed"), 0U);
  EXPECT_EQ(problem("18446744073709551616").find("\"18446744073709551616\" is no seed"), 0U);
  EXPECT_EQ(problem("7:").find("no kind stands behind the colon"), 0U);
  EXPECT_EQ(problem("7:lat").find("\"lat\" is no kind: give some of late, events,"), 0U);
  EXPECT_EQ(problem("7:late@0").find("late@0: give the number of an operation"), 0U);
  EXPECT_EQ(problem("7:late@9-3").find("late@9-3: give"), 0U);
  EXPECT_EQ(problem("7:late@x").find("late@x: give"), 0U);
  EXPECT_EQ(problem("1-5").find("one seed at a time"), 0U);
}

}  // namespace
}  // namespace ringbolt::shuffle
