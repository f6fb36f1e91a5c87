// Messages through lanes: InfiniBand Architecture Specification 1.4, 9.7 (RC) and 9.8.2 (UC).

#include "device/lane_transport.h"

#include <gtest/gtest.h>

#include <array>

#include "device/lane_test_support.h"

namespace ringbolt::device {
namespace {

class LaneSendTest : public LanePairOfTypesTest {};
INSTANTIATE_TEST_SUITE_P(Types, LaneSendTest, testing::Values(IBV_QPT_RC, IBV_QPT_UC), name_of_type);

TEST_P(LaneSendTest, carries_private_memory_of_every_length) {
  for (const uint32_t length : {0U, 1U, 40U, 41U, 8191U, 8192U, 8193U, 128U << 10U, (128U << 10U) + 1, 1U << 20U}) {
    from_.fill(static_cast<uint8_t>(length + 1));
    to_.fill(0);
    ASSERT_EQ(b_->receive(length, {to_.piece(3, length)}), 0);
    ASSERT_EQ(a_->send(length + 1, from_.piece(5, length)), 0);
    pump();
    const ibv_wc wc = b_->received_one();
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS) << length;
    EXPECT_EQ(wc.byte_len, length);
    EXPECT_EQ(wc.wr_id, length);
    EXPECT_EQ(wc.src_qp, kFirst);
    EXPECT_EQ(wc.qp_num, kSecond);
    EXPECT_EQ(a_->sent(), (Ends{{length + 1, IBV_WC_SUCCESS}}));
    EXPECT_TRUE(are_equal(from_, 5, to_, 3, length)) << length;
    EXPECT_EQ(to_.data()[length + 3], static_cast<std::byte>((length + 3) * 31)) << "the byte behind it";
  }
}

TEST_P(LaneSendTest, carries_shareable_memory_of_every_length) {
  Shareable from(device_, 1 << 20);
  introduce_arenas();
  for (const uint32_t length : {1U, 40U, 2047U, 2048U, 2049U, 100'000U}) {
    for (uint32_t i = 0; i < length; ++i) {
      from.data()[i + 7] = static_cast<std::byte>(i * 13 + length);
    }
    ASSERT_EQ(b_->receive(1, {to_.piece(0, length)}), 0);
    ASSERT_EQ(a_->send(2, from.piece(7, length)), 0);
    pump();
    EXPECT_EQ(b_->received(), (Ends{{1, IBV_WC_SUCCESS}})) << length;
    EXPECT_EQ(a_->sent(), (Ends{{2, IBV_WC_SUCCESS}}));
    EXPECT_TRUE(are_equal(from, 7, to_, 0, length)) << length;
  }
}

TEST_P(LaneSendTest, message_in_shareable_memory_takes_one_slot_whatever_its_length) {
  Shareable from(device_, 1 << 20);
  introduce_arenas();
  ASSERT_EQ(a_->send(1, from.piece(0, 1 << 20)), 0);
  EXPECT_EQ(a_->connection.sender->published(), 1U);
  ASSERT_EQ(a_->send(2, from_.piece(0, 64 << 10)), 0);
  EXPECT_GT(a_->connection.sender->published(), 2U);
}

TEST_P(LaneSendTest, gathers_pieces_and_scatters_them) {
  from_.fill(9);
  std::array<ibv_sge, 3> pieces{from_.piece(0, 10'000), from_.piece(20'000, 0), from_.piece(30'000, 5000)};
  ibv_send_wr wr = End::request(IBV_WR_SEND, 1, pieces.data());
  wr.num_sge = 3;
  ASSERT_EQ(b_->receive(2, {to_.piece(0, 1), to_.piece(100, 9000), to_.piece(20'000, 5999)}), 0);
  ASSERT_EQ(a_->post(wr), 0);
  pump();
  EXPECT_EQ(b_->received(), (Ends{{2, IBV_WC_SUCCESS}}));
  EXPECT_TRUE(are_equal(from_, 0, to_, 0, 1));
  EXPECT_TRUE(are_equal(from_, 1, to_, 100, 9000));
  EXPECT_TRUE(are_equal(from_, 9001, to_, 20'000, 999));
  EXPECT_TRUE(are_equal(from_, 30'000, to_, 20'999, 5000));
}

TEST_P(LaneSendTest, send_is_complete_when_the_receiver_is_done_with_it) {
  ASSERT_EQ(a_->send(1, from_.piece(0, 8)), 0);
  EXPECT_TRUE(a_->sent().empty());
  b_->take_arrived();
  EXPECT_TRUE(a_->sent().empty());  // it waits for a receive
  ASSERT_EQ(b_->receive(2, {to_.piece(0, 8)}), 0);
  EXPECT_EQ(b_->received(), (Ends{{2, IBV_WC_SUCCESS}}));
  EXPECT_EQ(a_->sent(), (Ends{{1, IBV_WC_SUCCESS}}));
}

TEST_P(LaneSendTest, message_that_finds_no_receive_waits_for_one) {
  from_.fill(3);
  for (uint64_t id = 1; id <= 3; ++id) {
    ASSERT_EQ(a_->send(id, from_.piece(id, 8)), 0);
  }
  EXPECT_TRUE(b_->received().empty());
  EXPECT_TRUE(b_->received().empty());
  ASSERT_EQ(b_->receive(11, {to_.piece(0, 8)}), 0);
  EXPECT_EQ(b_->received(), (Ends{{11, IBV_WC_SUCCESS}}));
  EXPECT_TRUE(are_equal(from_, 1, to_, 0, 8));
  ASSERT_EQ(b_->receive(12, {to_.piece(0, 8)}), 0);
  ASSERT_EQ(b_->receive(13, {to_.piece(8, 8)}), 0);
  EXPECT_EQ(b_->received(), (Ends{{12, IBV_WC_SUCCESS}, {13, IBV_WC_SUCCESS}}));
  EXPECT_TRUE(are_equal(from_, 3, to_, 8, 8));
}

TEST_P(LaneSendTest, wait_for_a_receive_is_counted_once_as_rnr_of_rc) {
  ASSERT_EQ(a_->send(1, from_.piece(0, 8)), 0);
  for (int looks = 0; looks < 3; ++looks) {
    b_->take_arrived();
  }
  const uint64_t expected = is_reliable() ? 1 : 0;
  EXPECT_EQ(counter(device_, "send_rnr_err"), expected);
  EXPECT_EQ(counter(device_, "out_of_buffer"), expected);
}

TEST_P(LaneSendTest, more_than_the_lane_holds_waits_in_the_queue_and_arrives_in_order) {
  constexpr uint64_t kCount = link::kLaneSlots + 100;
  for (uint64_t id = 0; id < kCount; ++id) {
    from_.data()[id] = static_cast<std::byte>(id);
    ASSERT_EQ(a_->send(id, from_.piece(id, 1)), 0);
    ASSERT_EQ(b_->receive(id, {to_.piece(id, 1)}), 0);
  }
  EXPECT_TRUE(a_->core.sends.has_queued());
  uint64_t received = 0;
  uint64_t sent = 0;
  for (int turns = 0; turns < 1000 && (received < kCount || sent < kCount); ++turns) {
    for (const auto& [id, status] : b_->received()) {
      ASSERT_EQ(id, received++);
      ASSERT_EQ(status, IBV_WC_SUCCESS);
    }
    for (const auto& [id, status] : a_->sent()) {
      ASSERT_EQ(id, sent++);
      ASSERT_EQ(status, IBV_WC_SUCCESS);
    }
  }
  EXPECT_EQ(received, kCount);
  EXPECT_EQ(sent, kCount);
  EXPECT_TRUE(are_equal(from_, 0, to_, 0, kCount));
}

TEST_P(LaneSendTest, message_longer_than_the_lane_goes_through_while_both_look) {
  constexpr uint32_t kLong = 1U << 20U;
  from_.fill(17);
  ASSERT_EQ(b_->receive(1, {to_.piece(0, kLong)}), 0);
  ASSERT_EQ(a_->send(2, from_.piece(0, kLong)), 0);
  ASSERT_EQ(a_->send(3, from_.piece(0, 1)), 0);  // behind it
  EXPECT_TRUE(b_->received().empty());
  ASSERT_EQ(b_->receive(4, {to_.piece(kLong, 1)}), 0);
  pump();
  EXPECT_EQ(b_->received(), (Ends{{1, IBV_WC_SUCCESS}, {4, IBV_WC_SUCCESS}}));
  EXPECT_EQ(a_->sent(), (Ends{{2, IBV_WC_SUCCESS}, {3, IBV_WC_SUCCESS}}));
  EXPECT_TRUE(are_equal(from_, 0, to_, 0, kLong));
}

TEST_P(LaneSendTest, immediate_and_solicited_flag_arrive) {
  ASSERT_EQ(b_->receive(1, {to_.piece(0, 8)}), 0);
  ibv_sge piece = from_.piece(0, 8);
  ibv_send_wr wr = End::request(IBV_WR_SEND_WITH_IMM, 2, &piece, IBV_SEND_SOLICITED);
  wr.imm_data = 0xdeadbeef;
  ASSERT_EQ(a_->post(wr), 0);
  const ibv_wc wc = b_->received_one();
  EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  EXPECT_EQ(wc.wc_flags, static_cast<unsigned>(IBV_WC_WITH_IMM));
  EXPECT_EQ(wc.imm_data, 0xdeadbeefU);
}

TEST_P(LaneSendTest, inline_data_needs_no_key) {
  std::string text = "inline";
  ASSERT_EQ(b_->receive(1, {to_.piece(0, 8)}), 0);
  ASSERT_EQ(a_->send(2, {reinterpret_cast<uint64_t>(text.data()), 6, 0}, IBV_SEND_INLINE), 0);
  EXPECT_EQ(b_->received(), (Ends{{1, IBV_WC_SUCCESS}}));
  EXPECT_EQ(std::memcmp(to_.data(), "inline", 6), 0);
}

TEST_P(LaneSendTest, answer_carries_the_word_that_a_message_was_taken) {
  ASSERT_EQ(a_->receive(1, {from_.piece(0, 8)}), 0);
  ASSERT_EQ(b_->receive(2, {to_.piece(0, 8)}), 0);
  ASSERT_EQ(a_->send(3, from_.piece(0, 8)), 0);
  b_->take_arrived();
  ASSERT_EQ(b_->send(4, to_.piece(0, 8)), 0);
  a_->take_arrived();
  EXPECT_EQ(a_->sent(), (Ends{{3, IBV_WC_SUCCESS}}));
}

TEST_P(LaneSendTest, peer_that_wants_to_be_woken_is_rung_once_a_post) {
  b_->parts.receives->request_notification(false);
  std::array<ibv_sge, 1> piece{from_.piece(0, 8)};
  std::array<ibv_send_wr, 2> list{End::request(IBV_WR_SEND, 1, piece.data()),
                                  End::request(IBV_WR_SEND, 2, piece.data())};
  list[0].next = &list[1];
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(a_->sends.post(list.data(), &bad), 0);
  EXPECT_EQ(peer_->rings, 1);
  EXPECT_TRUE(device_.process().wakes().service().has(b_->parts.receives->wake_name().index));
  ASSERT_EQ(b_->receive(1, {to_.piece(0, 8)}), 0);
  b_->take_arrived();  // what it waited for
  ASSERT_EQ(a_->send(3, piece[0]), 0);
  EXPECT_EQ(peer_->rings, 1);
}

TEST_P(LaneSendTest, peer_that_waits_for_a_solicited_message_raises_no_event_for_another_one) {
  b_->parts.receives->request_notification(true);
  ASSERT_EQ(b_->receive(1, {to_.piece(0, 8)}), 0);
  ASSERT_EQ(b_->receive(2, {to_.piece(0, 8)}), 0);
  ASSERT_EQ(a_->send(1, from_.piece(0, 8)), 0);
  EXPECT_EQ(peer_->rings, 1) << "its service thread takes it, for the sender waits for that";
  EXPECT_EQ(b_->received(), (Ends{{1, IBV_WC_SUCCESS}}));
  EXPECT_TRUE(b_->parts.receives->is_armed());
  ASSERT_EQ(a_->send(2, from_.piece(0, 8), IBV_SEND_SOLICITED), 0);
  EXPECT_EQ(b_->received(), (Ends{{2, IBV_WC_SUCCESS}}));
  EXPECT_FALSE(b_->parts.receives->is_armed());
}

TEST_P(LaneSendTest, sender_that_wants_to_be_woken_is_rung_when_its_message_was_taken) {
  for (const bool waits_for_room : {false, true}) {
    if (waits_for_room) {
      a_->connection.sender->wait_for_room(true);
    } else {
      a_->parts.sends->request_notification(false);
    }
    peer_->rings = 0;
    ASSERT_EQ(b_->receive(1, {to_.piece(0, 8)}), 0);
    ASSERT_EQ(a_->send(2, from_.piece(0, 8)), 0);
    EXPECT_EQ(peer_->rings, 0);
    b_->take_arrived();
    EXPECT_EQ(peer_->rings, 1);
    EXPECT_TRUE(device_.process().wakes().service().has(a_->parts.sends->wake_name().index));
    EXPECT_EQ(a_->sent(), (Ends{{2, IBV_WC_SUCCESS}}));
  }
}

TEST_P(LaneSendTest, sleeper_is_not_woken_for_a_send_that_tells_nobody) {
  a_->parts.sends->request_notification(false);
  ASSERT_EQ(b_->receive(1, {to_.piece(0, 8)}), 0);
  {
    const SendGuard guard(a_->core.locks);
    a_->connection.publish(link::SlotKind::send, link::kSlotFirst | link::kSlotLast, 0, 0);
  }
  b_->take_arrived();
  EXPECT_EQ(peer_->rings, 0);
}

TEST_P(LaneSendTest, receives_as_many_as_its_completion_queue_has_room_for) {
  for (uint64_t id = 0; id < 2 * LaneEnd::kDepth; ++id) {  // its room
    const base::LockGuard guard(b_->parts.receives->lock);
    b_->parts.receives->next() = {};
    b_->parts.receives->commit(IBV_WC_SUCCESS, false);
  }
  ASSERT_EQ(b_->receive(1, {to_.piece(0, 8)}), 0);
  ASSERT_EQ(a_->send(2, from_.piece(0, 8)), 0);
  b_->take_arrived();
  EXPECT_EQ(b_->state(), IBV_QPS_RTS);
  EXPECT_TRUE(a_->sent().empty());
  ibv_wc taken;
  ASSERT_EQ(b_->parts.receives->poll(1, &taken), 1);
  b_->take_arrived();
  EXPECT_EQ(a_->sent(), (Ends{{2, IBV_WC_SUCCESS}}));
}

// --- What goes wrong: 9.9.

TEST_P(LaneSendTest, wrong_local_key_fails_the_send_alone) {
  ibv_sge piece = from_.piece(0, 8);
  piece.lkey ^= 1;
  ASSERT_EQ(a_->send(1, piece), 0);
  EXPECT_EQ(a_->sent(), (Ends{{1, IBV_WC_LOC_PROT_ERR}}));
  EXPECT_EQ(a_->state(), is_reliable() ? IBV_QPS_ERR : IBV_QPS_SQE);
  ASSERT_EQ(b_->receive(2, {to_.piece(0, 8)}), 0);
  EXPECT_TRUE(b_->received().empty());
}

TEST_P(LaneSendTest, message_beyond_a_gibibyte_fails_locally) {
  std::array<ibv_sge, 2> pieces{from_.piece(0, 8), from_.piece(0, 8)};
  pieces[0].length = 1U << 30U;
  pieces[1].length = 1;
  ibv_send_wr wr = End::request(IBV_WR_SEND, 1, pieces.data());
  wr.num_sge = 2;
  ASSERT_EQ(a_->post(wr), 0);
  EXPECT_EQ(a_->sent(), (Ends{{1, IBV_WC_LOC_LEN_ERR}}));
}

TEST_P(LaneSendTest, message_too_long_for_its_receive_fails_both_of_rc_and_the_receiver_of_uc) {
  ASSERT_EQ(b_->receive(1, {to_.piece(0, 7)}), 0);
  ASSERT_EQ(b_->receive(2, {to_.piece(0, 7)}), 0);
  ASSERT_EQ(a_->send(3, from_.piece(0, 8)), 0);
  ASSERT_EQ(a_->send(4, from_.piece(0, 1)), 0);
  EXPECT_EQ(b_->received(), (Ends{{1, IBV_WC_LOC_LEN_ERR}}));
  EXPECT_EQ(b_->state(), IBV_QPS_ERR);
  EXPECT_EQ(b_->received(), (Ends{{2, IBV_WC_WR_FLUSH_ERR}}));
  if (is_reliable()) {
    EXPECT_EQ(a_->sent(), (Ends{{3, IBV_WC_REM_INV_REQ_ERR}, {4, IBV_WC_WR_FLUSH_ERR}}));
  }
}

TEST_P(LaneSendTest, receive_with_a_wrong_key_fails_both_of_rc) {
  ibv_sge piece = to_.piece(0, 8);
  piece.lkey ^= 1;
  ASSERT_EQ(b_->receive(1, {piece}), 0);
  ASSERT_EQ(a_->send(2, from_.piece(0, 8)), 0);
  EXPECT_EQ(b_->received(), (Ends{{1, IBV_WC_LOC_PROT_ERR}}));
  if (is_reliable()) {
    EXPECT_EQ(a_->sent(), (Ends{{2, IBV_WC_REM_OP_ERR}}));
    EXPECT_EQ(counter(device_, "resp_cqe_error"), 1U);
  }
}

TEST_P(LaneSendTest, refusal_does_not_fail_what_was_taken_before_it) {
  ASSERT_EQ(b_->receive(1, {to_.piece(0, 8)}), 0);
  ASSERT_EQ(b_->receive(2, {to_.piece(0, 7)}), 0);
  ASSERT_EQ(a_->send(3, from_.piece(0, 8)), 0);
  ASSERT_EQ(a_->send(4, from_.piece(0, 8)), 0);
  b_->take_arrived();
  const Ends ends = a_->sent();
  ASSERT_FALSE(ends.empty());
  EXPECT_EQ(ends[0], (std::pair<uint64_t, ibv_wc_status>{3, IBV_WC_SUCCESS}));
  if (is_reliable()) {
    EXPECT_EQ(ends[1].second, IBV_WC_REM_INV_REQ_ERR);
  }
}

TEST_P(LaneSendTest, unknown_arena_is_awaited) {
  Shareable from(device_, 4096);
  ASSERT_EQ(b_->receive(1, {to_.piece(0, 4096)}), 0);
  ASSERT_EQ(a_->send(2, from.piece(0, 4096)), 0);
  EXPECT_TRUE(b_->received().empty());
  introduce_arenas();
  EXPECT_EQ(b_->received(), (Ends{{1, IBV_WC_SUCCESS}}));
}

TEST_P(LaneSendTest, arena_that_can_not_be_mapped_ends_both_of_uc_too) {
  Shareable from(device_, 4096);
  const auto made = device_.process().arenas().all().front();
  EXPECT_NE(remote_->arenas().add(made.arena_id, made.segment->length_bytes(), base::UniqueFd()), 0);
  ASSERT_EQ(b_->receive(1, {to_.piece(0, 4096)}), 0);
  ASSERT_EQ(a_->send(2, from.piece(0, 4096)), 0);
  EXPECT_EQ(b_->received(), (Ends{{1, IBV_WC_LOC_QP_OP_ERR}}));
  EXPECT_EQ(a_->sent(), (Ends{{2, IBV_WC_REM_OP_ERR}}));
  EXPECT_EQ(a_->state(), IBV_QPS_ERR);
  EXPECT_EQ(b_->state(), IBV_QPS_ERR);
}

TEST_F(LanePairTest, invalidation_of_an_unknown_key_fails_both) {
  begin(IBV_QPT_RC);
  ASSERT_EQ(b_->receive(1, {to_.piece(0, 8)}), 0);
  ibv_sge piece = from_.piece(0, 8);
  ibv_send_wr wr = End::request(IBV_WR_SEND_WITH_INV, 2, &piece);
  wr.invalidate_rkey = to_.key();  // a region's, not a window's
  ASSERT_EQ(a_->post(wr), 0);
  EXPECT_EQ(b_->received(), (Ends{{1, IBV_WC_LOC_ACCESS_ERR}}));
  EXPECT_EQ(a_->sent(), (Ends{{2, IBV_WC_REM_ACCESS_ERR}}));
  EXPECT_EQ(device_.next_event(), IBV_EVENT_QP_ACCESS_ERR);
}

// --- A sender that has flushed: what lay there for a receive may still be taken, what came too early is lost.

TEST_P(LaneSendTest, flushed_messages_take_the_receives_that_were_there) {
  ASSERT_EQ(b_->receive(1, {to_.piece(0, 8)}), 0);
  ASSERT_EQ(a_->send(11, from_.piece(0, 8)), 0);
  ASSERT_EQ(a_->send(12, from_.piece(0, 8)), 0);
  a_->fail();
  EXPECT_EQ(a_->sent(), (Ends{{11, IBV_WC_WR_FLUSH_ERR}, {12, IBV_WC_WR_FLUSH_ERR}}));
  ASSERT_EQ(b_->receive(2, {to_.piece(0, 8)}), 0);
  EXPECT_EQ(b_->received(), (Ends{{1, IBV_WC_SUCCESS}}));
  EXPECT_TRUE(b_->received().empty());
  EXPECT_EQ(b_->state(), IBV_QPS_RTS);
}

TEST_P(LaneSendTest, flushed_message_without_a_receive_is_dropped) {
  ASSERT_EQ(a_->send(11, from_.piece(0, 8)), 0);
  a_->fail();
  a_->push_sends();
  EXPECT_TRUE(b_->received().empty());
  EXPECT_FALSE(b_->connection.receiver.has_slot());
  ASSERT_EQ(b_->receive(2, {to_.piece(0, 8)}), 0);
  EXPECT_TRUE(b_->received().empty());
  EXPECT_EQ(counter(device_, "out_of_buffer"), is_reliable() ? 0U : 1U);
}

// --- What is known of the peer.

TEST_P(LaneSendTest, peer_that_died_ends_sends_of_rc_and_loses_those_of_uc) {
  ASSERT_EQ(a_->send(1, from_.piece(0, 8)), 0);
  a_->connection.peer_state.store(PeerState::died);
  EXPECT_EQ(a_->sent(), (Ends{{1, if_reliable(IBV_WC_RETRY_EXC_ERR)}}));
  ASSERT_EQ(a_->send(2, from_.piece(0, 8)), 0);
  EXPECT_EQ(a_->sent(), (Ends{{2, if_reliable(IBV_WC_WR_FLUSH_ERR)}}));
}

TEST_P(LaneSendTest, peer_that_left_in_order_ends_nothing_of_rc_at_once) {
  ASSERT_EQ(a_->send(1, from_.piece(0, 8)), 0);
  for (const auto state : {PeerState::left, PeerState::withdrawn}) {
    a_->connection.peer_state.store(state);
    EXPECT_EQ(a_->sent(), is_reliable() ? Ends{} : state == PeerState::left ? (Ends{{1, IBV_WC_SUCCESS}}) : Ends{});
    EXPECT_EQ(a_->state(), IBV_QPS_RTS);
  }
}

TEST_P(LaneSendTest, receiver_takes_all_before_it_fails_for_a_dead_peer) {
  ASSERT_EQ(b_->receive(1, {to_.piece(0, 8)}), 0);
  ASSERT_EQ(b_->receive(2, {to_.piece(0, 8)}), 0);
  ASSERT_EQ(a_->send(3, from_.piece(0, 8)), 0);
  b_->connection.peer_state.store(PeerState::died);
  EXPECT_EQ(b_->received(), (Ends{{1, IBV_WC_SUCCESS}}));
  EXPECT_EQ(b_->state(), is_reliable() ? IBV_QPS_ERR : IBV_QPS_RTS);
  EXPECT_EQ(b_->received(), is_reliable() ? (Ends{{2, IBV_WC_WR_FLUSH_ERR}}) : Ends{});
}

TEST_P(LaneSendTest, waits_for_its_lane) {
  a_->connection.sender.reset();
  ASSERT_EQ(a_->send(1, from_.piece(0, 8)), 0);
  EXPECT_TRUE(a_->sent().empty());
  ASSERT_EQ(b_->receive(2, {to_.piece(0, 8)}), 0);
  a_->join(*b_, remote_);
  a_->push_sends();
  EXPECT_EQ(b_->received(), (Ends{{2, IBV_WC_SUCCESS}}));
  EXPECT_EQ(a_->sent(), (Ends{{1, IBV_WC_SUCCESS}}));
}

TEST_P(LaneSendTest, sends_nothing_into_a_lane_that_is_closed) {
  b_->fail();
  ASSERT_EQ(a_->send(1, from_.piece(0, 8)), 0);
  EXPECT_EQ(a_->connection.sender->published(), 0U);
  EXPECT_TRUE(a_->sent().empty());
}

TEST_P(LaneSendTest, delivery_is_known_once_the_message_lies_in_the_lane) {
  using Delivery = QueuePairTransport::Delivery;
  const auto delivery = [this](uint32_t index) {
    const SendGuard guard(a_->core.locks);
    return a_->transport.delivery(a_->sends, index);
  };
  ASSERT_EQ(a_->send(1, from_.piece(0, 8)), 0);
  EXPECT_EQ(delivery(0), Delivery::delivered);
  EXPECT_EQ(delivery(1), Delivery::underway);  // not executed yet
  b_->take_arrived();                          // it finds no receive
  EXPECT_EQ(delivery(1), Delivery::stuck);
  ASSERT_EQ(b_->receive(1, {to_.piece(0, 8)}), 0);
  EXPECT_EQ(delivery(1), Delivery::underway);
  a_->connection.peer_state.store(PeerState::left);
  EXPECT_EQ(delivery(1), Delivery::stuck);
  EXPECT_EQ(delivery(0), Delivery::delivered);
}

TEST_P(LaneSendTest, first_message_in_rtr_is_announced) {
  b_->core.set_state(IBV_QPS_RTR);
  b_->take_arrived();
  EXPECT_EQ(device_.next_event(), IBV_EVENT_CLIENT_REREGISTER);
  ASSERT_EQ(a_->send(1, from_.piece(0, 8)), 0);
  b_->take_arrived();
  EXPECT_EQ(device_.next_event(), IBV_EVENT_COMM_EST);
}

// --- Counters (docs/metrics.md): a message through memory counts as the packets that it would have been.

TEST_P(LaneSendTest, counts_messages_packets_and_words_of_both_ends) {
  ASSERT_EQ(b_->receive(1, {to_.piece(0, 4096)}), 0);
  ASSERT_EQ(b_->receive(2, {to_.piece(0, 4096)}), 0);
  ASSERT_EQ(a_->send(3, from_.piece(0, 2049)), 0);  // three packets at a path MTU of 1024
  ibv_sge piece = from_.piece(0, 1);
  ASSERT_EQ(a_->post(End::request(IBV_WR_SEND_WITH_IMM, 4, &piece)), 0);
  pump();
  EXPECT_EQ(counter(device_, "rdma_sends"), 2U);
  EXPECT_EQ(counter(device_, "rdma_recvs"), 2U);
  EXPECT_EQ(counter(device_, "port_xmit_packets"), 4U);
  EXPECT_EQ(counter(device_, "port_rcv_packets"), 4U);
  // 12 bytes of BTH and 4 of ICRC each, payload padded to words, 4 bytes of immediate data.
  const uint64_t words = 3 * 4 + 513 + 4 + 1 + 1;
  EXPECT_EQ(counter(device_, "port_xmit_data"), words);
  EXPECT_EQ(counter(device_, "port_rcv_data"), words);
}

}  // namespace
}  // namespace ringbolt::device
