// Long SENDs of private memory that the receiver reads itself (docs/formats/lane.md, kind 9).

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdint>

#include "device/lane_test_support.h"

namespace ringbolt::device {
namespace {

constexpr uint32_t kPulledBytes = 64U << 10U;

class PullTest : public LanePairOfTypesTest {
 protected:
  void SetUp() override {
    if (!peer_->reachable) {
      GTEST_SKIP() << "skip: process_vm_readv is not to be had";
    }
    LanePairOfTypesTest::SetUp();
  }
  /// b pulls all that is long enough.
  void pull_all() { b_->connection.receiver.set_pulls(UINT32_MAX); }
  uint32_t slots() const { return a_->connection.sender->published(); }
  static pid_t dead_process() {
    const pid_t child = fork();
    if (child == 0) {
      _exit(0);
    }
    waitpid(child, nullptr, 0);
    return child;
  }
};
INSTANTIATE_TEST_SUITE_P(Types, PullTest, testing::Values(IBV_QPT_RC, IBV_QPT_UC), name_of_type);

TEST_P(PullTest, brings_long_messages_whole_in_one_slot) {
  pull_all();
  uint32_t sent = 0;
  for (const uint32_t length : {SendWays::kLeastBytes, kPulledBytes + 1, 1U << 20U}) {
    from_.fill(static_cast<uint8_t>(length + 3));
    to_.fill(0);
    ASSERT_EQ(b_->receive(length, {to_.piece(3, length)}), 0);
    ASSERT_EQ(a_->send(length + 1, from_.piece(5, length)), 0);
    EXPECT_EQ(slots(), ++sent);
    EXPECT_TRUE(a_->sent().empty());
    const ibv_wc wc = b_->received_one();
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.opcode, IBV_WC_RECV);
    EXPECT_EQ(wc.byte_len, length);
    EXPECT_TRUE(are_equal(from_, 5, to_, 3, length)) << length;
    EXPECT_EQ(to_.data()[length + 3], static_cast<std::byte>((length + 3) * 31)) << "the byte behind it";
    pump();
    EXPECT_EQ(a_->sent(), (Ends{{length + 1, IBV_WC_SUCCESS}}));
  }
}

TEST_P(PullTest, scatters_them_and_brings_their_immediate_data) {
  pull_all();
  from_.fill(8);
  ibv_sge piece = from_.piece(0, kPulledBytes);
  ibv_send_wr wr = End::request(IBV_WR_SEND_WITH_IMM, 1, &piece);
  wr.imm_data = 0x1234;
  ASSERT_EQ(b_->receive(2, {to_.piece(0, 10'000), to_.piece(200'000, 0), to_.piece(100'000, kPulledBytes)}), 0);
  ASSERT_EQ(a_->post(wr), 0);
  const ibv_wc wc = b_->received_one();
  EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  EXPECT_EQ(wc.imm_data, 0x1234U);
  EXPECT_TRUE(are_equal(from_, 0, to_, 0, 10'000));
  EXPECT_TRUE(are_equal(from_, 10'000, to_, 100'000, kPulledBytes - 10'000));
}

TEST_P(PullTest, leaves_short_messages_and_those_of_several_pieces_to_the_lane) {
  pull_all();
  ASSERT_EQ(a_->send(1, from_.piece(0, SendWays::kLeastBytes - 1)), 0);
  EXPECT_EQ(slots(), 2U);
  std::array<ibv_sge, 2> pieces{from_.piece(0, kPulledBytes / 2), from_.piece(kPulledBytes, kPulledBytes / 2)};
  ibv_send_wr wr = End::request(IBV_WR_SEND, 2, pieces.data());
  wr.num_sge = 2;
  ASSERT_EQ(a_->post(wr), 0);
  EXPECT_EQ(slots(), 2U + 8U);
}

TEST_P(PullTest, waits_for_a_receive) {
  pull_all();
  ASSERT_EQ(a_->send(1, from_.piece(0, kPulledBytes)), 0);
  pump();
  EXPECT_TRUE(b_->received().empty());
  EXPECT_TRUE(a_->sent().empty());
  ASSERT_EQ(b_->receive(2, {to_.piece(0, kPulledBytes)}), 0);
  pump();
  EXPECT_EQ(b_->received(), (Ends{{2, IBV_WC_SUCCESS}}));
}

TEST_P(PullTest, of_memory_whose_region_has_gone_ends_both_queue_pairs) {
  pull_all();
  auto gone = std::make_unique<Memory>(device_.pd(), kPulledBytes, Memory::kAll);
  ASSERT_EQ(a_->send(1, gone->piece(0, kPulledBytes)), 0);
  gone.reset();
  ASSERT_EQ(b_->receive(2, {to_.piece(0, kPulledBytes)}), 0);
  pump();
  EXPECT_EQ(b_->received(), (Ends{{2, IBV_WC_LOC_QP_OP_ERR}}));
  EXPECT_EQ(a_->sent(), (Ends{{1, IBV_WC_REM_OP_ERR}}));
}

TEST_P(PullTest, from_a_process_that_has_ended_brings_nothing) {
  pull_all();
  peer_->process = dead_process();
  ASSERT_EQ(b_->receive(1, {to_.piece(0, kPulledBytes)}), 0);
  ASSERT_EQ(b_->receive(2, {to_.piece(0, kPulledBytes)}), 0);
  ASSERT_EQ(a_->send(3, from_.piece(0, kPulledBytes)), 0);
  ASSERT_EQ(a_->send(4, from_.piece(0, 8)), 0);  // it is in the lane, but behind one that never came
  EXPECT_TRUE(b_->received().empty());
  EXPECT_FALSE(b_->connection.receiver.has_slot());
  EXPECT_EQ(b_->state(), IBV_QPS_RTS);
  b_->connection.peer_state.store(PeerState::died);
  b_->take_arrived();
  if (is_reliable()) {
    EXPECT_EQ(b_->received(), (Ends{{1, IBV_WC_WR_FLUSH_ERR}, {2, IBV_WC_WR_FLUSH_ERR}}));
  }
}

TEST_P(PullTest, from_a_peer_that_has_flushed_its_sends_brings_nothing_either) {
  pull_all();
  auto gone = std::make_unique<Memory>(device_.pd(), kPulledBytes, Memory::kAll);
  ASSERT_EQ(a_->send(1, gone->piece(0, kPulledBytes)), 0);
  ASSERT_EQ(a_->send(2, from_.piece(0, 8)), 0);
  a_->fail();
  pump(1);
  gone.reset();
  ASSERT_EQ(b_->receive(3, {to_.piece(0, kPulledBytes)}), 0);
  EXPECT_TRUE(b_->received().empty());
  EXPECT_EQ(b_->state(), IBV_QPS_RTS);
}

TEST_P(PullTest, keeps_a_program_from_ending_until_it_is_read) {
  const auto is_being_read = [&] {
    const SendGuard guard(a_->core.locks);
    return a_->transport.is_being_read();
  };
  EXPECT_FALSE(is_being_read());
  pull_all();
  ASSERT_EQ(a_->send(1, from_.piece(0, kPulledBytes)), 0);
  const int rings = peer_->rings;
  EXPECT_TRUE(is_being_read());
  EXPECT_TRUE(is_being_read());
  EXPECT_EQ(peer_->rings, rings + 1);  // so that its service thread looks
  ASSERT_EQ(b_->receive(2, {to_.piece(0, kPulledBytes)}), 0);
  pump();
  EXPECT_EQ(b_->received(), (Ends{{2, IBV_WC_SUCCESS}}));
  EXPECT_FALSE(is_being_read());
}

TEST_P(PullTest, keeps_nobody_whose_peer_has_ended) {
  pull_all();
  ASSERT_EQ(a_->send(1, from_.piece(0, kPulledBytes)), 0);
  a_->connection.peer_state.store(PeerState::died);
  const SendGuard guard(a_->core.locks);
  EXPECT_FALSE(a_->transport.is_being_read());
}

TEST_P(PullTest, too_long_for_the_receive_is_refused) {
  pull_all();
  ASSERT_EQ(a_->send(1, from_.piece(0, kPulledBytes)), 0);
  ASSERT_EQ(b_->receive(2, {to_.piece(0, kPulledBytes - 1)}), 0);
  pump();
  EXPECT_EQ(b_->received(), (Ends{{2, IBV_WC_LOC_LEN_ERR}}));
}

TEST_P(PullTest, is_tried_by_whoever_receives_long_messages) {
  int pulled = 0;
  for (uint64_t id = 0; id < 600; ++id) {
    const uint32_t before = slots();
    ASSERT_EQ(b_->receive(id, {to_.piece(0, kPulledBytes)}), 0);
    ASSERT_EQ(a_->send(id, from_.piece(0, kPulledBytes)), 0);
    pulled += slots() == before + 1 ? 1 : 0;
    pump(1);
    ASSERT_EQ(b_->received().size() + a_->sent().size(), 2U) << id;
  }
  EXPECT_GE(pulled, 4);
  EXPECT_LT(pulled, 600 - 4);
}

TEST_P(PullTest, is_not_wished_for_before_the_peers_own_offer_has_come) {
  b_->connection.sender.reset();
  b_->connection.remote_pd_key = 0;
  for (uint64_t id = 0; id < 40; ++id) {
    ASSERT_EQ(b_->receive(id, {to_.piece(0, kPulledBytes)}), 0);
    ASSERT_EQ(a_->send(id, from_.piece(0, kPulledBytes)), 0);
    EXPECT_EQ(b_->received(), (Ends{{id, IBV_WC_SUCCESS}})) << id;
    pump(4);
    EXPECT_EQ(a_->connection.sender->pulls(), 0U);
  }
}

TEST_P(PullTest, is_not_wished_for_where_the_memory_can_not_be_reached) {
  hide_memory();
  for (uint64_t id = 0; id < 20; ++id) {
    ASSERT_EQ(b_->receive(id, {to_.piece(0, kPulledBytes)}), 0);
    ASSERT_EQ(a_->send(id, from_.piece(0, kPulledBytes)), 0);
    pump(4);
    EXPECT_EQ(a_->connection.sender->pulls(), 0U);
  }
}

}  // namespace
}  // namespace ringbolt::device
