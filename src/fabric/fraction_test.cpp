#include "fabric/fraction.h"

#include <limits>

#include <gtest/gtest.h>

#include "base/error.h"

namespace ringbolt::fabric {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

TEST(Fraction, is_kept_in_lowest_terms) {
  EXPECT_EQ(Fraction(6, 4), Fraction(3, 2));
  EXPECT_EQ(Fraction(6, -4), Fraction(-3, 2));
  EXPECT_EQ(Fraction(0, -7), Fraction(0));
  EXPECT_EQ(Fraction(-6, -4).text(), "3/2");
  EXPECT_EQ(Fraction(8, 4).text(), "2");
  EXPECT_EQ(Fraction(-1, 3).text(), "-1/3");
}

TEST(Fraction, computes_exactly) {
  EXPECT_EQ(Fraction(1, 3) + Fraction(1, 6), Fraction(1, 2));
  EXPECT_EQ(Fraction(1, 3) - Fraction(1, 2), Fraction(-1, 6));
  EXPECT_EQ(Fraction(2, 3) * Fraction(9, 4), Fraction(3, 2));
  EXPECT_EQ(Fraction(2, 3) / Fraction(-4, 9), Fraction(-3, 2));
  EXPECT_EQ(Fraction(kMost, 3) * Fraction(3, kMost), Fraction(1));
}

TEST(Fraction, compares_across_denominators) {
  EXPECT_LT(Fraction(1, 3), Fraction(34, 100));
  EXPECT_GT(Fraction(-1, 3), Fraction(-1, 2));
  EXPECT_LT(Fraction(kMost - 1, kMost), Fraction(1));
  EXPECT_EQ(Fraction(7U), 7);
}

TEST(Fraction, floors_towards_minus_infinity) {
  EXPECT_EQ(Fraction(7, 2).floor(), 3);
  EXPECT_EQ(Fraction(-7, 2).floor(), -4);
  EXPECT_EQ(Fraction(-4, 2).floor(), -2);
}

TEST(Fraction, refuses_what_does_not_fit) {
  EXPECT_THROW(Fraction(kMost) + Fraction(1), base::Error);
  EXPECT_THROW(Fraction(kMost) * Fraction(2), base::Error);
  EXPECT_THROW(Fraction(1, kMost) * Fraction(1, 2), base::Error);
  EXPECT_THROW(Fraction{std::numeric_limits<uint64_t>::max()}, base::Error);
  EXPECT_THROW(checked_product(kMost, -2), base::Error);
  EXPECT_EQ(least_common_multiple(6, 4), 12);
}

}  // namespace
}  // namespace ringbolt::fabric
