#include "rate.h"

#include <gtest/gtest.h>

#include <string>

namespace ringbolt::tools {
namespace {

TEST(Rate, reads_numbers_with_units) {
  EXPECT_EQ(parse_rate_mbps("1Gbit"), 1000U);
  EXPECT_EQ(parse_rate_mbps("2.5gbit"), 2500U);
  EXPECT_EQ(parse_rate_mbps("2.5Gb/s"), 2500U);
  EXPECT_EQ(parse_rate_mbps("100mbit"), 100U);
  EXPECT_EQ(parse_rate_mbps("1Mbps"), 1U);
  EXPECT_EQ(parse_rate_mbps("10000Gbit"), 10'000'000U);
}

TEST(Rate, refuses_the_rest) {
  for (const char* text : {"", "Gbit", "1", "1 Gbit", "1Gbyte", "0Gbit", "0.1mbit", "-1Gbit", "1e3Gbit", "nanGbit",
                           "infGbit", "10001Gbit", "1Gbit ", "999999999999999999999999999999999Gbit"}) {
    EXPECT_EQ(parse_rate_mbps(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace ringbolt::tools
