// Lanes are made, offered, taken and ended.

#include "device/lanes.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <thread>

#include "device/lanes_test_support.h"
#include "wire/syndrome.h"

namespace ringbolt::device {
namespace {

TEST_F(LanesTest, offer_after_connect_gives_the_way_to_the_peer) {
  begin();
  ASSERT_EQ(connect(), 0);
  EXPECT_FALSE(connection_->sender.has_value());
  ASSERT_TRUE(give(offer_from(kPeer)));
  ASSERT_TRUE(connection_->sender.has_value());
  EXPECT_EQ(connection_->remote, remote_);
  EXPECT_EQ(connection_->remote_pd_key, 0x99U);
  EXPECT_EQ(connection_->remote_nonce, 77U);
}

TEST_F(LanesTest, offer_after_connect_starts_what_is_queued) {
  begin();
  ASSERT_EQ(connect(), 0);
  own_->transport.room = 0;
  ibv_send_wr wr = End::request(IBV_WR_SEND, 1, nullptr);
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(queue_->post(&wr, &bad), 0);
  own_->transport.room = 1;
  ASSERT_TRUE(give(offer_from(kPeer)));
  EXPECT_EQ(own_->transport.ids(), std::vector<uint64_t>{1});
}

TEST_F(LanesTest, offer_before_connect_is_kept) {
  begin();
  ASSERT_TRUE(give(offer_from(kPeer)));
  ASSERT_TRUE(give(offer_from(kPeer + 1)));
  ASSERT_EQ(connect(), 0);
  ASSERT_TRUE(connection_->sender.has_value());
  EXPECT_EQ(connection_->remote, remote_);
}

TEST_F(LanesTest, offer_is_used_once) {
  begin();
  ASSERT_TRUE(give(offer_from(kPeer)));
  ASSERT_EQ(connect(), 0);
  disconnect();
  ASSERT_EQ(connect(), 0);
  EXPECT_FALSE(connection_->sender.has_value());
}

TEST_F(LanesTest, newer_offer_takes_the_place_of_the_one_that_is_kept) {
  begin();
  ASSERT_TRUE(give(offer_from(kPeer, 1)));
  ASSERT_TRUE(give(offer_from(kPeer, 2)));
  ASSERT_EQ(connect(), 0);
  EXPECT_EQ(connection_->remote_nonce, 2U);
}

TEST_F(LanesTest, keeps_so_many_offers_and_no_more) {
  constexpr uint32_t kMost = 64;
  begin();
  for (uint32_t i = 1; i <= kMost; ++i) {
    ASSERT_TRUE(give(offer_from(kPeer + i)));
  }
  ASSERT_TRUE(give(offer_from(kPeer)));  // one too many: it is lost, as if it had not come yet
  ASSERT_TRUE(give(offer_from(kPeer + kMost, 99)));
  ASSERT_EQ(connect(), 0);
  EXPECT_FALSE(connection_->sender.has_value());
  disconnect();
  own_->core.attributes.dest_qp_num = kPeer + kMost;
  ASSERT_EQ(connect(), 0);
  EXPECT_EQ(connection_->remote_nonce, 99U);
}

TEST_F(LanesTest, withdrawn_offer_is_not_used) {
  begin();
  ASSERT_TRUE(give(offer_from(kPeer, 1)));
  lanes_->on_withdraw({kPeer, CoreUnderTest::kQpn, 2});  // another one's
  lanes_->on_withdraw({kPeer, CoreUnderTest::kQpn, 1});
  ASSERT_EQ(connect(), 0);
  EXPECT_FALSE(connection_->sender.has_value());
}

TEST_F(LanesTest, offers_of_a_peer_that_is_gone_are_not_used) {
  begin();
  ASSERT_TRUE(give(offer_from(kPeer)));
  lanes_->on_peer_gone(*peer_, true);
  ASSERT_EQ(connect(), 0);
  EXPECT_FALSE(connection_->sender.has_value());
}

TEST_F(LanesTest, refuses_offers_that_are_not_meant_for_it) {
  begin(IBV_QPT_RC);
  ASSERT_EQ(connect(), 0);
  link::Offer other_type = offer_from(kPeer);
  other_type.qp_type = IBV_QPT_UC;
  EXPECT_FALSE(give(other_type));
  link::Offer other_port = offer_from(kPeer);
  other_port.target_gid[15] ^= 1;
  EXPECT_FALSE(give(other_port));
  link::Offer out_of_reach = offer_from(kPeer);
  out_of_reach.source_gid[15] ^= 1;
  EXPECT_FALSE(give(out_of_reach));
  EXPECT_FALSE(connection_->sender.has_value());
}

TEST_F(LanesTest, second_offer_waits_while_the_first_is_in_use) {
  begin();
  ASSERT_EQ(connect(), 0);
  ASSERT_TRUE(give(offer_from(kPeer, 1)));
  ASSERT_TRUE(give(offer_from(kPeer, 2)));
  EXPECT_EQ(connection_->remote_nonce, 1U);
  disconnect();
  ASSERT_EQ(connect(), 0);
  EXPECT_EQ(connection_->remote_nonce, 2U);
}

TEST_F(LanesTest, offer_takes_the_place_of_one_that_was_withdrawn_or_closed) {
  begin();
  ASSERT_EQ(connect(), 0);
  ASSERT_TRUE(give(offer_from(kPeer, 1)));
  lanes_->on_withdraw({kPeer, CoreUnderTest::kQpn, 1});
  EXPECT_EQ(connection_->peer_state.load(), PeerState::withdrawn);
  ASSERT_TRUE(give(offer_from(kPeer, 2)));
  EXPECT_EQ(connection_->remote_nonce, 2U);
  EXPECT_EQ(connection_->peer_state.load(), PeerState::present);
  given_->is_closed.store(1);
  ASSERT_TRUE(give(offer_from(kPeer, 3)));
  EXPECT_EQ(connection_->remote_nonce, 3U);
}

TEST_F(LanesTest, what_has_begun_on_one_lane_does_not_go_on_on_another_one) {
  begin();
  ASSERT_EQ(connect(), 0);
  ASSERT_TRUE(give(offer_from(kPeer, 1)));
  own_->transport.completes_all = false;
  ibv_send_wr wr = End::request(IBV_WR_SEND, 1, nullptr);
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(queue_->post(&wr, &bad), 0);
  lanes_->on_withdraw({kPeer, CoreUnderTest::kQpn, 1});
  ASSERT_TRUE(give(offer_from(kPeer, 2)));
  EXPECT_EQ(connection_->remote_nonce, 1U);
}

TEST_F(LanesTest, queue_pair_in_error_keeps_offers_for_its_next_life) {
  begin();
  ASSERT_EQ(connect(), 0);
  own_->core.set_state(IBV_QPS_ERR);
  ASSERT_TRUE(give(offer_from(kPeer)));
  EXPECT_FALSE(connection_->sender.has_value());
  disconnect();
  own_->core.set_state(IBV_QPS_INIT);
  ASSERT_EQ(connect(), 0);
  EXPECT_TRUE(connection_->sender.has_value());
}

TEST_F(LanesTest, uc_has_no_use_for_a_lane_that_is_closed_already) {
  const auto give_closed = [this] {
    auto lane = link::SharedSegment::create("lane of a test", link::kLaneBytes);
    reinterpret_cast<link::LaneMemory*>(lane->data())->is_closed.store(1);
    return lanes_->on_offer(remote_, offer_from(kPeer), {std::move(*lane), {}, {}});
  };
  begin(IBV_QPT_UC);
  ASSERT_EQ(connect(), 0);
  EXPECT_FALSE(give_closed());
  begin(IBV_QPT_RC);
  ASSERT_EQ(connect(), 0);
  EXPECT_TRUE(give_closed());  // RC learns from it that nobody answers
  EXPECT_TRUE(connection_->sender.has_value());
}

// --- Memory that can't be had.

TEST_F(LanesTest, lane_that_can_not_be_mapped_ends_the_queue_pair) {
  begin();
  ASSERT_EQ(connect(), 0);
  EXPECT_TRUE(give_none(offer_from(kPeer), EMFILE));
  EXPECT_EQ(own_->core.state(), IBV_QPS_ERR);
  EXPECT_EQ(own_->core.first_flush_status.load(), IBV_WC_LOC_QP_OP_ERR);
  EXPECT_EQ(device_.next_event(), IBV_EVENT_QP_FATAL);
}

TEST_F(LanesTest, lane_that_could_not_be_mapped_before_refuses_the_connect) {
  begin();
  EXPECT_TRUE(give_none(offer_from(kPeer), EMFILE));
  EXPECT_EQ(connect(), EMFILE);
  EXPECT_EQ(count(), 0U);
}

TEST_F(LanesTest, peer_that_can_not_map_our_lane_ends_the_queue_pair) {
  begin();
  ASSERT_EQ(connect(), 0);
  const uint64_t nonce = connection_->own_nonce;
  EXPECT_FALSE(lanes_->on_refuse({kPeer, CoreUnderTest::kQpn, nonce + 1, EMFILE}));  // of a life before
  EXPECT_FALSE(lanes_->on_refuse({kPeer + 1, CoreUnderTest::kQpn, nonce, EMFILE}));
  EXPECT_EQ(own_->core.state(), IBV_QPS_RTS);
  EXPECT_TRUE(lanes_->on_refuse({kPeer, CoreUnderTest::kQpn, nonce, EMFILE}));
  EXPECT_EQ(own_->core.state(), IBV_QPS_ERR);
  EXPECT_EQ(own_->core.first_flush_status.load(), IBV_WC_REM_OP_ERR);
  EXPECT_EQ(device_.next_event(), IBV_EVENT_QP_FATAL);
}

// --- Ends.

TEST_F(LanesTest, withdrawal_of_another_life_changes_nothing) {
  begin();
  ASSERT_EQ(connect(), 0);
  ASSERT_TRUE(give(offer_from(kPeer, 1)));
  lanes_->on_withdraw({kPeer, CoreUnderTest::kQpn, 2});
  lanes_->on_withdraw({kPeer + 1, CoreUnderTest::kQpn, 1});
  EXPECT_EQ(connection_->peer_state.load(), PeerState::present);
}

TEST_F(LanesTest, learns_how_its_peer_went) {
  for (const bool was_orderly : {true, false}) {
    begin();
    ASSERT_EQ(connect(), 0);
    ASSERT_TRUE(give(offer_from(kPeer)));
    FakePeer stranger;
    lanes_->on_peer_gone(stranger, false);
    EXPECT_EQ(connection_->peer_state.load(), PeerState::present);
    lanes_->on_peer_gone(*peer_, was_orderly);
    EXPECT_EQ(connection_->peer_state.load(), was_orderly ? PeerState::left : PeerState::died);
    EXPECT_TRUE(own_->core.receive_attention.load());
  }
}

TEST_F(LanesTest, peer_that_is_gone_is_heard_to_its_last_word) {
  begin();
  ASSERT_EQ(connect(), 0);
  ASSERT_TRUE(give(offer_from(kPeer)));
  const SendGuard guard(own_->core.locks);
  connection_->publish(link::SlotKind::send, 0, 0, 0);
  link::LaneProducer its_side(own_lane());
  its_side.publish({link::SlotKind::send, 0, 0, 0, 0, 1, 0}, false);  // "I took one of yours"
  connection_->take_last_word();
  EXPECT_EQ(connection_->sender->consumed(), 1U);
}

TEST_F(LanesTest, disconnect_closes_ends_and_tells_the_peer) {
  begin();
  ASSERT_EQ(connect(), 0);
  ASSERT_TRUE(give(offer_from(kPeer)));
  const uint64_t nonce = connection_->own_nonce;
  disconnect();
  EXPECT_EQ(count(), 0U);
  ASSERT_EQ(peer_->sent.size(), 1U);
  const auto* withdraw = std::get_if<link::Withdraw>(&peer_->sent[0]);
  ASSERT_NE(withdraw, nullptr);
  EXPECT_EQ(*withdraw, (link::Withdraw{CoreUnderTest::kQpn, kPeer, nonce}));
}

TEST_F(LanesTest, each_life_has_a_nonce_of_its_own) {
  begin();
  ASSERT_EQ(connect(), 0);
  const uint64_t first = connection_->own_nonce;
  disconnect();
  ASSERT_EQ(connect(), 0);
  EXPECT_NE(connection_->own_nonce, first);
  EXPECT_NE(connection_->own_nonce, link::kNoNonce);
}

TEST_F(LanesTest, closed_lane_says_so_to_its_producer) {
  begin();
  ASSERT_EQ(connect(), 0);
  EXPECT_EQ(own_lane().is_closed.load(), 0U);
  lanes_->close();
  EXPECT_EQ(own_lane().is_closed.load(), 1U);
}

TEST_F(LanesTest, retired_queue_pair_takes_nothing) {
  begin();
  ASSERT_EQ(connect(), 0);
  {
    const SendGuard guard(own_->core.locks);
    lanes_->retire();
  }
  EXPECT_FALSE(give(offer_from(kPeer)));
  EXPECT_FALSE(lanes_->on_refuse({kPeer, CoreUnderTest::kQpn, connection_->own_nonce, EMFILE}));
  EXPECT_EQ(own_->core.state(), IBV_QPS_RTS);
}

// --- What the peer may see and do.

TEST_F(LanesTest, publishes_what_the_queue_pair_allows) {
  begin();
  own_->core.attributes.qp_access_flags = IBV_ACCESS_REMOTE_READ;
  ASSERT_EQ(connect(), 0);
  EXPECT_EQ(own_lane().access.load(), static_cast<uint32_t>(IBV_ACCESS_REMOTE_READ));
  EXPECT_EQ(own_lane().rnr_timer_us.load(), wire::rnr_timer_us(12));
  own_->core.attributes.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
  own_->core.attributes.min_rnr_timer = 1;
  {
    const SendGuard send_guard(own_->core.locks);
    const ReceiveGuard receive_guard(own_->core.locks);
    lanes_->publish_attributes();
  }
  EXPECT_EQ(own_lane().access.load(), static_cast<uint32_t>(IBV_ACCESS_REMOTE_WRITE));
  EXPECT_EQ(own_lane().rnr_timer_us.load(), wire::rnr_timer_us(1));
}

TEST_F(LanesTest, peers_learn_that_the_service_thread_waits_for_room) {
  begin();
  ASSERT_EQ(connect(), 0);
  lanes_->wait_for_room(true);  // there is no lane yet
  ASSERT_TRUE(give(offer_from(kPeer)));
  EXPECT_EQ(given_->producer_waits.load(), 0U);
  lanes_->wait_for_room(true);
  EXPECT_EQ(given_->producer_waits.load(), 1U);
  lanes_->wait_for_room(false);
  EXPECT_EQ(given_->producer_waits.load(), 0U);
}

TEST_F(LanesTest, what_a_peer_waits_for_is_told_once_its_offer_has_come) {
  begin();
  ASSERT_EQ(connect(), 0);
  ASSERT_EQ(remote_->open_wakes(), 0);
  const auto queue = *CompletionQueue::create(device_.context(), 4, nullptr);
  queue->request_notification(false);
  connection_->owed = link::kSlotSignaled;
  connection_->tell();  // it has sent to us, but nobody knows yet where it completes that
  peer_->rings = 0;
  auto lane = link::SharedSegment::create("lane of a test", link::kLaneBytes);
  ASSERT_TRUE(
      lanes_->on_offer(remote_, offer_from(kPeer), {std::move(*lane), {}, remote_->queue(queue->wake_name(), 0, {})}));
  EXPECT_EQ(peer_->rings, 1);
  EXPECT_TRUE(device_.process().wakes().service().has(queue->wake_name().index));
  device_.process().remove(*queue);
}

TEST_F(LanesTest, peer_is_told_through_the_queues_that_it_named) {
  begin();
  ASSERT_EQ(connect(), 0);
  ASSERT_EQ(remote_->open_wakes(), 0);
  link::Offer offer = offer_from(kPeer);
  offer.mark = 11;
  uint32_t set = 0;
  ASSERT_TRUE(device_.process().wakes().add_set(set));
  const auto queue = *CompletionQueue::create(device_.context(), 4, nullptr);
  const link::WakeName name = queue->wake_name();
  device_.process().wakes().queue(name.index).mode.store((set + 1) << link::kWakeSetShift);
  auto lane = link::SharedSegment::create("lane of a test", link::kLaneBytes);
  ASSERT_TRUE(lanes_->on_offer(remote_, offer, {std::move(*lane), remote_->queue(name, 0, {}), {}}));
  {
    const SendGuard guard(own_->core.locks);
    connection_->publish(link::SlotKind::send, link::kSlotFirst | link::kSlotLast, 0, 0);
    connection_->ring();
  }
  EXPECT_TRUE(device_.process().wakes().set(set).has(11));
  device_.process().wakes().queue(name.index).mode.store(0);
  device_.process().wakes().remove_set(set);
  device_.process().remove(*queue);
}

TEST_F(LanesTest, region_is_accessed_as_long_as_a_peer_that_is_there_says_so) {
  begin();
  ASSERT_EQ(connect(), 0);
  ASSERT_TRUE(give(offer_from(kPeer)));
  EXPECT_FALSE(lanes_->is_accessed(0x123));
  own_lane().announced_key.store(0x123);
  EXPECT_TRUE(lanes_->is_accessed(0x123));
  EXPECT_FALSE(lanes_->is_accessed(0x124));
  lanes_->on_peer_gone(*peer_, false);  // in the middle of its copy
  EXPECT_FALSE(lanes_->is_accessed(0x123));
}

TEST_F(LanesTest, end_of_accesses_waits_for_the_copy_that_is_under_way) {
  begin();
  ASSERT_EQ(connect(), 0);
  ASSERT_TRUE(give(offer_from(kPeer)));
  own_lane().announced_key.store(0x123);
  std::atomic<bool> has_ended{false};
  const uint64_t began = base::now_ns();
  std::thread waiter([&] {
    lanes_->end_accesses();
    has_ended = true;
  });
  while (own_lane().is_closed.load() == 0) {
    std::this_thread::yield();
  }
  const bool had_ended = has_ended.load();
  if (base::now_ns() - began < kAccessDrainNs) {  // so long it waits at most
    EXPECT_FALSE(had_ended);
  }
  own_lane().announced_key.store(0);
  waiter.join();
  EXPECT_TRUE(has_ended.load());
}

TEST_F(LanesTest, end_of_accesses_waits_for_no_peer_that_is_gone) {
  begin();
  ASSERT_EQ(connect(), 0);
  ASSERT_TRUE(give(offer_from(kPeer)));
  own_lane().announced_key.store(0x123);
  peer_->gone = true;
  const uint64_t began = base::now_ns();
  lanes_->end_accesses();
  EXPECT_LT(base::now_ns() - began, kAccessDrainNs);
}

}  // namespace
}  // namespace ringbolt::device
