// UD: InfiniBand Architecture Specification 1.4, 9.8.3, and 10.2.5 (Q_Keys). Datagrams between queue pairs of one
// process.

#include "device/datagram_transport.h"

#include <gtest/gtest.h>

#include "device/address_handle.h"
#include "device/gids.h"
#include "device/part_test_support.h"

namespace ringbolt::device {
namespace {

class DatagramTest : public testing::Test {
 protected:
  DatagramTest() {
    for (End* end : {&a_, &b_}) {
      EXPECT_EQ(end->to_init(), 0);
      EXPECT_EQ(end->to_rtr(0), 0);
      EXPECT_EQ(end->to_rts(), 0);
    }
    target_.gid = target_.source_gid = address_of(device_.port().known_gids.front());
    target_.is_loopback = true;
  }
  int send(uint64_t id, size_t length, uint32_t qpn, uint32_t qkey = End::kQkey, unsigned flags = 0) {
    ibv_sge piece = from_.piece(0, length);
    ibv_send_wr wr = End::request(IBV_WR_SEND, id, &piece, flags);
    wr.wr.ud = {&target_.c, qpn, qkey};
    return a_.post(wr);
  }
  int send(uint64_t id, size_t length) { return send(id, length, b_.qpn()); }
  /// Until a counter has gone up to a value.
  bool reaches(const char* name, uint64_t value) {
    const uint64_t deadline = base::now_ns() + 20'000'000'000;
    while (counter(device_, name) < value && base::now_ns() < deadline) {
      b_.poll_receive();
    }
    return counter(device_, name) == value;
  }

  static constexpr size_t kGrh = 40;
  DeviceUnderTest device_;
  End a_{device_, IBV_QPT_UD};
  End b_{device_, IBV_QPT_UD};
  Memory from_{device_.pd(), 8192, IBV_ACCESS_LOCAL_WRITE};
  Memory to_{device_.pd(), 8192, IBV_ACCESS_LOCAL_WRITE};
  AddressHandle target_;
};

TEST_F(DatagramTest, arrives_behind_forty_bytes_whatever_its_length) {
  for (const uint32_t length : {0U, 1U, 32U, 33U, 40U, 41U, 4096U}) {
    from_.fill(static_cast<uint8_t>(length));
    to_.fill(1);
    ASSERT_EQ(b_.receive(length, to_.piece(0, kGrh + length)), 0);
    ASSERT_EQ(send(length + 1, length), 0);
    const ibv_wc wc = b_.await_receive();
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS) << length;
    EXPECT_EQ(wc.byte_len, kGrh + length);
    EXPECT_EQ(wc.src_qp, a_.qpn());
    EXPECT_EQ(wc.wr_id, length);
    EXPECT_EQ(wc.wc_flags, static_cast<unsigned>(IBV_WC_GRH));
    EXPECT_EQ(std::memcmp(to_.data() + kGrh, from_.data(), length), 0) << length;
    EXPECT_EQ(to_.data()[kGrh + length], static_cast<std::byte>((kGrh + length) * 31 + 1));
    EXPECT_EQ(a_.await_send().status, IBV_WC_SUCCESS);
  }
}

// 8.3: version 6, then where it comes from and goes to.
TEST_F(DatagramTest, route_header_names_both_ends) {
  ASSERT_EQ(b_.receive(1, to_.piece(0, 100)), 0);
  ASSERT_EQ(send(2, 8), 0);
  ASSERT_EQ(b_.await_receive().status, IBV_WC_SUCCESS);
  EXPECT_EQ(to_.data()[0], std::byte{0x60});
  EXPECT_EQ(std::memcmp(to_.data() + 8, target_.source_gid.data(), 16), 0);
  EXPECT_EQ(std::memcmp(to_.data() + 24, target_.gid.data(), 16), 0);
}

TEST_F(DatagramTest, arrive_in_the_order_in_which_they_were_sent) {
  constexpr uint64_t kCount = 16;
  for (uint64_t id = 0; id < kCount; ++id) {
    ASSERT_EQ(b_.receive(id, to_.piece(id * 64, 64)), 0);
  }
  for (uint64_t id = 0; id < kCount; ++id) {
    from_.data()[0] = static_cast<std::byte>(id);
    ASSERT_EQ(send(id, 1, b_.qpn(), End::kQkey, IBV_SEND_INLINE), 0);
  }
  for (uint64_t id = 0; id < kCount; ++id) {
    ASSERT_EQ(b_.await_receive().wr_id, id);
    EXPECT_EQ(to_.data()[id * 64 + kGrh], static_cast<std::byte>(id));
  }
}

TEST_F(DatagramTest, immediate_arrives) {
  ASSERT_EQ(b_.receive(1, to_.piece(0, 100)), 0);
  ibv_sge piece = from_.piece(0, 8);
  ibv_send_wr wr = End::request(IBV_WR_SEND_WITH_IMM, 2, &piece);
  wr.imm_data = 0x12345678;
  wr.wr.ud = {&target_.c, b_.qpn(), End::kQkey};
  ASSERT_EQ(a_.post(wr), 0);
  const ibv_wc wc = b_.await_receive();
  EXPECT_EQ(wc.wc_flags, static_cast<unsigned>(IBV_WC_GRH | IBV_WC_WITH_IMM));
  EXPECT_EQ(wc.imm_data, 0x12345678U);
}

TEST_F(DatagramTest, reaches_the_own_queue_pair) {
  ASSERT_EQ(a_.receive(1, to_.piece(0, 100)), 0);
  ASSERT_EQ(send(2, 8, a_.qpn()), 0);
  EXPECT_EQ(a_.await_receive().src_qp, a_.qpn());
}

TEST_F(DatagramTest, goes_to_many_from_one) {
  End c(device_, IBV_QPT_UD);
  ASSERT_EQ(c.to_init(), 0);
  ASSERT_EQ(c.to_rtr(0), 0);
  ASSERT_EQ(b_.receive(1, to_.piece(0, 100)), 0);
  ASSERT_EQ(c.receive(2, to_.piece(100, 100)), 0);
  ASSERT_EQ(send(3, 8, c.qpn()), 0);
  ASSERT_EQ(send(4, 8, b_.qpn()), 0);
  EXPECT_EQ(c.await_receive().wr_id, 2U);
  EXPECT_EQ(b_.await_receive().wr_id, 1U);
}

TEST_F(DatagramTest, foreign_qkey_is_dropped_and_takes_no_receive) {
  ASSERT_EQ(b_.receive(1, to_.piece(0, 100)), 0);
  ASSERT_EQ(send(2, 8, b_.qpn(), End::kQkey + 1), 0);
  EXPECT_TRUE(reaches("rx_drops", 1));
  EXPECT_EQ(counter(device_, "out_of_buffer"), 0U);
  EXPECT_EQ(a_.await_send().status, IBV_WC_SUCCESS);
  ASSERT_EQ(send(3, 8), 0);
  EXPECT_EQ(b_.await_receive().wr_id, 1U);
}

TEST_F(DatagramTest, finds_no_receive_and_is_dropped) {
  ASSERT_EQ(send(1, 8), 0);
  EXPECT_TRUE(reaches("out_of_buffer", 1));
  EXPECT_EQ(a_.await_send().status, IBV_WC_SUCCESS);
  ASSERT_EQ(b_.receive(2, to_.piece(0, 100)), 0);
  for (int polls = 0; polls < 100; ++polls) {
    ASSERT_EQ(b_.poll_receive().status, End::kNothing);
  }
}

TEST_F(DatagramTest, longer_than_the_path_mtu_fails_locally) {
  ASSERT_EQ(send(1, 4097), 0);
  EXPECT_EQ(a_.await_send().status, IBV_WC_LOC_LEN_ERR);
  EXPECT_EQ(a_.state(), IBV_QPS_SQE);
}

TEST_F(DatagramTest, wrong_local_key_fails_locally) {
  ibv_sge piece = from_.piece(0, 8);
  piece.lkey ^= 1;
  ibv_send_wr wr = End::request(IBV_WR_SEND, 1, &piece);
  wr.wr.ud = {&target_.c, b_.qpn(), End::kQkey};
  ASSERT_EQ(a_.post(wr), 0);
  EXPECT_EQ(a_.await_send().status, IBV_WC_LOC_PROT_ERR);
}

TEST_F(DatagramTest, receive_needs_room_for_the_forty_bytes_too) {
  ASSERT_EQ(b_.receive(1, to_.piece(0, kGrh + 7)), 0);
  ASSERT_EQ(b_.receive(2, to_.piece(0, kGrh + 8)), 0);
  ASSERT_EQ(send(3, 8), 0);
  EXPECT_EQ(b_.await_receive().status, IBV_WC_LOC_LEN_ERR);
  EXPECT_EQ(b_.state(), IBV_QPS_ERR);
  EXPECT_EQ(b_.await_receive().status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(a_.await_send().status, IBV_WC_SUCCESS);  // who sends learns nothing of it
}

TEST_F(DatagramTest, receive_with_a_wrong_key_fails_the_receiver) {
  ibv_sge piece = to_.piece(0, 100);
  piece.lkey ^= 1;
  ASSERT_EQ(b_.receive(1, piece), 0);
  ASSERT_EQ(send(2, 8), 0);
  EXPECT_EQ(b_.await_receive().status, IBV_WC_LOC_PROT_ERR);
  EXPECT_EQ(b_.state(), IBV_QPS_ERR);
}

TEST_F(DatagramTest, to_a_number_that_nobody_has_is_lost) {
  ASSERT_EQ(send(1, 8, 900U << kQpnIndexBits), 0);  // no such process
  EXPECT_EQ(a_.await_send().status, IBV_WC_SUCCESS);
  EXPECT_EQ(counter(device_, "port_xmit_discards"), 1U);
  ASSERT_EQ(send(2, 8, b_.qpn() + 1000), 0);  // of this process, but no queue pair
  EXPECT_EQ(a_.await_send().status, IBV_WC_SUCCESS);
  EXPECT_EQ(counter(device_, "port_xmit_discards"), 2U);
}

TEST_F(DatagramTest, to_a_queue_pair_that_is_not_ready_is_lost) {
  End c(device_, IBV_QPT_UD);
  ASSERT_EQ(c.to_init(), 0);
  ASSERT_EQ(c.receive(1, to_.piece(0, 100)), 0);
  ASSERT_EQ(send(2, 8, c.qpn()), 0);
  EXPECT_EQ(a_.await_send().status, IBV_WC_SUCCESS);
  EXPECT_EQ(c.poll_receive().status, End::kNothing);
}

TEST_F(DatagramTest, counts_one_packet_each) {
  ASSERT_EQ(b_.receive(1, to_.piece(0, 5000)), 0);
  ASSERT_EQ(send(2, 4096), 0);
  ASSERT_EQ(b_.await_receive().status, IBV_WC_SUCCESS);
  EXPECT_EQ(counter(device_, "port_xmit_packets"), 1U);
  EXPECT_EQ(counter(device_, "port_rcv_packets"), 1U);
  EXPECT_EQ(counter(device_, "port_xmit_data"), (12U + 8 + 4096 + 4) / 4);  // BTH, DETH, payload, ICRC
}

TEST_F(DatagramTest, queue_pair_that_was_reset_is_reached_again) {
  ASSERT_EQ(b_.receive(1, to_.piece(0, 100)), 0);
  ASSERT_EQ(send(2, 8), 0);
  ASSERT_EQ(b_.await_receive().status, IBV_WC_SUCCESS);
  ASSERT_EQ(a_.await_send().status, IBV_WC_SUCCESS);
  ASSERT_EQ(b_.to(IBV_QPS_RESET), 0);
  ASSERT_EQ(b_.to_init(), 0);
  ASSERT_EQ(b_.to_rtr(0), 0);
  ASSERT_EQ(b_.receive(3, to_.piece(0, 100)), 0);
  // A datagram may be lost while the news is under way: more are sent until one arrives.
  ibv_wc wc{};
  wc.status = End::kNothing;
  const uint64_t deadline = base::now_ns() + 20'000'000'000;
  while (wc.status == End::kNothing && base::now_ns() < deadline) {
    ASSERT_EQ(send(4, 8), 0);
    ASSERT_EQ(a_.await_send().status, IBV_WC_SUCCESS);
    wc = b_.poll_receive();
  }
  EXPECT_EQ(wc.wr_id, 3U);
}

}  // namespace
}  // namespace ringbolt::device
