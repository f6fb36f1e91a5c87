#include "verbs/codes.h"

#include <gtest/gtest.h>

namespace ringbolt::verbs {
namespace {

TEST(VerbsCodes, mtu_goes_both_ways) {
  for (const uint32_t bytes : {256U, 512U, 1024U, 2048U, 4096U}) {
    EXPECT_EQ(mtu_bytes(mtu_code(bytes)), bytes);
    EXPECT_EQ(mtu_bytes(mtu_code(bytes + 1)), bytes);
  }
  EXPECT_EQ(mtu_code(0), IBV_MTU_256);
  EXPECT_EQ(mtu_code(1500), IBV_MTU_1024);
  EXPECT_EQ(mtu_code(65536), IBV_MTU_4096);
  EXPECT_EQ(mtu_bytes(static_cast<ibv_mtu>(0)), 0U);
  EXPECT_EQ(mtu_bytes(static_cast<ibv_mtu>(6)), 0U);
}

TEST(VerbsCodes, rate_is_lanes_times_speed) {
  EXPECT_EQ(rate_gbps(4, 4), 80);    // a Mac's: 8 lanes of 10
  EXPECT_EQ(rate_gbps(2, 64), 200);  // 4 lanes of 50
  EXPECT_EQ(rate_gbps(1, 1), 2.5);
  EXPECT_EQ(rate_gbps(3, 4), 0);
  EXPECT_EQ(rate_gbps(2, 0), 0);
}

}  // namespace
}  // namespace ringbolt::verbs
