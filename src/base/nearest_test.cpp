#include "base/nearest.h"

#include <array>

#include <gtest/gtest.h>

namespace ringbolt::base {
namespace {

TEST(Nearest, counts_changes_additions_omissions_and_swaps) {
  EXPECT_EQ(edit_distance("", ""), 0U);
  EXPECT_EQ(edit_distance("", "run"), 3U);
  EXPECT_EQ(edit_distance("run", "run"), 0U);
  EXPECT_EQ(edit_distance("rn", "run"), 1U);
  EXPECT_EQ(edit_distance("rune", "run"), 1U);
  EXPECT_EQ(edit_distance("rum", "run"), 1U);
  EXPECT_EQ(edit_distance("urn", "run"), 1U);
  EXPECT_EQ(edit_distance("martix", "matrix"), 1U);
  EXPECT_EQ(edit_distance("abc", "xyz"), 3U);
}

TEST(Nearest, finds_what_was_meant_and_nothing_else) {
  const std::array<std::string, 6> known{"run", "status", "matrix", "--iters", "--interval", "up"};
  EXPECT_EQ(nearest("rn", known), "run");
  EXPECT_EQ(nearest("stat", known), "status");
  EXPECT_EQ(nearest("martix", known), "matrix");
  EXPECT_EQ(nearest("--itres", known), "--iters");
  EXPECT_EQ(nearest("pu", known), "up");
  EXPECT_EQ(nearest("fly", known), "");
  EXPECT_EQ(nearest("", known), "");
  EXPECT_EQ(nearest("x", known), "");
  EXPECT_EQ(nearest(std::string(1'000'000, 'r'), known), "");
}

}  // namespace
}  // namespace ringbolt::base
