#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <string>

namespace {

TEST(Names, cover_every_value_and_nothing_else) {
  EXPECT_STREQ(ibv_wc_status_str(IBV_WC_SUCCESS), "success");
  EXPECT_STREQ(ibv_wc_status_str(IBV_WC_RETRY_EXC_ERR), "transport retry counter exceeded");
  EXPECT_STREQ(ibv_wc_status_str(static_cast<ibv_wc_status>(IBV_WC_TM_RNDV_INCOMPLETE + 1)), "unknown");
  EXPECT_STREQ(ibv_event_type_str(IBV_EVENT_CQ_ERR), "CQ error");
  EXPECT_STREQ(ibv_event_type_str(static_cast<ibv_event_type>(IBV_EVENT_WQ_FATAL + 1)), "unknown");
  EXPECT_STREQ(ibv_port_state_str(IBV_PORT_ACTIVE), "active");
  EXPECT_STREQ(ibv_node_type_str(IBV_NODE_CA), "InfiniBand channel adapter");
  EXPECT_STREQ(ibv_node_type_str(IBV_NODE_UNKNOWN), "unknown");
}

TEST(Rates, convert_both_ways) {
  for (int rate = 0; rate < 32; ++rate) {
    const int mbps = ibv_rate_to_mbps(static_cast<ibv_rate>(rate));
    if (mbps > 0) {
      EXPECT_EQ(mbps_to_ibv_rate(mbps), static_cast<ibv_rate>(rate));
    }
    const int multiple = ibv_rate_to_mult(static_cast<ibv_rate>(rate));
    if (multiple > 0) {
      EXPECT_EQ(mult_to_ibv_rate(multiple), static_cast<ibv_rate>(rate));
    }
  }
  EXPECT_EQ(ibv_rate_to_mbps(IBV_RATE_40_GBPS), 40000);
  EXPECT_EQ(ibv_rate_to_mult(IBV_RATE_40_GBPS), 16);
}

TEST(Rates, unknown_ones_are_refused) {
  EXPECT_EQ(ibv_rate_to_mbps(IBV_RATE_MAX), -1);
  EXPECT_EQ(ibv_rate_to_mult(IBV_RATE_MAX), -1);
  EXPECT_EQ(mult_to_ibv_rate(0), IBV_RATE_MAX);
  EXPECT_EQ(mbps_to_ibv_rate(1), IBV_RATE_MAX);
}

}  // namespace
