// Lanes of UD: one for each queue pair that it talks to.

#include <gtest/gtest.h>

#include <cerrno>

#include "device/lanes_test_support.h"

namespace ringbolt::device {
namespace {

TEST_F(LanesTest, reach_makes_one_lane_for_each_peer) {
  begin(IBV_QPT_UD);
  Connection* const first = reach(kPeer);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->remote, nullptr);  // nobody owns the number
  EXPECT_EQ(reach(kPeer), first);
  EXPECT_NE(reach(kPeer + 1), first);
  EXPECT_EQ(count(), 2U);
}

TEST_F(LanesTest, offer_to_a_datagram_queue_pair_makes_the_lane_back) {
  begin(IBV_QPT_UD);
  ASSERT_TRUE(give(offer_from(kPeer)));
  EXPECT_EQ(count(), 1U);
  EXPECT_TRUE(reach(kPeer)->sender.has_value());
}

TEST_F(LanesTest, datagram_peer_that_was_withdrawn_is_reached_anew) {
  begin(IBV_QPT_UD);
  ASSERT_TRUE(give(offer_from(kPeer, 1)));
  const uint64_t nonce = reach(kPeer)->own_nonce;
  lanes_->on_withdraw({kPeer, CoreUnderTest::kQpn, 1});
  EXPECT_NE(reach(kPeer)->own_nonce, nonce);
  EXPECT_FALSE(reach(kPeer)->sender.has_value());
  EXPECT_EQ(count(), 1U);
  ASSERT_EQ(peer_->sent.size(), 1U);
  EXPECT_NE(std::get_if<link::Withdraw>(&peer_->sent[0]), nullptr);
}

TEST_F(LanesTest, datagram_peer_that_there_is_not_is_refused) {
  begin(IBV_QPT_UD);
  Connection* const made = reach(kPeer);
  EXPECT_FALSE(made->is_refused);
  lanes_->on_withdraw({kPeer, CoreUnderTest::kQpn, link::kNoNonce});
  EXPECT_TRUE(made->is_refused);
  ASSERT_TRUE(give(offer_from(kPeer)));  // now there is one
  EXPECT_FALSE(made->is_refused);
}

TEST_F(LanesTest, lane_that_can_not_be_mapped_loses_datagrams_and_nothing_else) {
  begin(IBV_QPT_UD);
  EXPECT_TRUE(give_none(offer_from(kPeer), EMFILE));
  EXPECT_TRUE(reach(kPeer)->is_refused);
  EXPECT_EQ(own_->core.state(), IBV_QPS_RTS);
}

TEST_F(LanesTest, datagram_peers_that_are_over_are_cleared_away) {
  constexpr uint32_t kMany = 200;
  begin(IBV_QPT_UD);
  for (uint32_t i = 0; i < kMany; ++i) {
    ASSERT_TRUE(give(offer_from(kPeer + i, i + 1)));
    lanes_->on_withdraw({kPeer + i, CoreUnderTest::kQpn, i + 1});
  }
  EXPECT_LE(count(), 65U);
}

TEST_F(LanesTest, datagram_peers_that_are_there_stay) {
  constexpr uint32_t kMany = 200;
  begin(IBV_QPT_UD);
  for (uint32_t i = 0; i < kMany; ++i) {
    ASSERT_NE(reach(kPeer + i), nullptr);
  }
  EXPECT_EQ(count(), kMany);
}

}  // namespace
}  // namespace ringbolt::device
