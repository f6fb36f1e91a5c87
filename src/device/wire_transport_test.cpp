// RC and UC over a network: both ends in one process, whose loopback interface speaks RoCEv2 to itself
// (docs/network.md). Each test runs in a child with a network of its own, for the UDP port is everybody's.

#include "device/wire_transport.h"

#include <gtest/gtest.h>

#include <array>
#include <functional>

#include "device/gids.h"
#include "device/wire_test_support.h"

namespace ringbolt::device {
namespace {

class WireTest : public testing::TestWithParam<ibv_qp_type> {
 protected:
  static bool is_reliable() { return GetParam() == IBV_QPT_RC; }
  /// With both ends connected.
  static void run(const std::function<void(WirePair&)>& body, const std::string& faults = {},
                  ibv_qp_type type = GetParam()) {
    run_on_network([&] {
      WirePair pair(type, faults);
      connect(pair.a, pair.b);
      body(pair);
    });
  }
};
INSTANTIATE_TEST_SUITE_P(Types, WireTest, testing::Values(IBV_QPT_RC, IBV_QPT_UC),
                         [](const auto& type) { return type.param == IBV_QPT_RC ? "RC" : "UC"; });

TEST_P(WireTest, carries_messages_of_every_length) {
  run([](WirePair& pair) {
    for (const uint32_t length : {0U, 1U, 1023U, 1024U, 1025U, 4096U, 65'537U}) {
      pair.from.fill(static_cast<uint8_t>(length));
      pair.to.fill(0);
      ASSERT_EQ(pair.b.receive(length, pair.to.piece(0, length)), 0);
      ASSERT_EQ(pair.a.send(length + 1, pair.from.piece(0, length)), 0);
      const ibv_wc wc = pair.b.await_receive();
      EXPECT_EQ(wc.status, IBV_WC_SUCCESS) << length;
      EXPECT_EQ(wc.byte_len, length);
      EXPECT_EQ(wc.src_qp, pair.a.qpn());
      EXPECT_TRUE(pair.holds_same(length)) << length;
      EXPECT_EQ(pair.a.await_send().status, IBV_WC_SUCCESS);
    }
  });
}

TEST_P(WireTest, keeps_the_order_of_messages) {
  run([](WirePair& pair) {
    for (uint64_t id = 0; id < 16; ++id) {
      ASSERT_EQ(pair.b.receive(id, pair.to.piece(id * 4096, 4096)), 0);
    }
    for (uint64_t id = 0; id < 16; ++id) {
      ASSERT_EQ(pair.a.send(id, pair.from.piece(id * 4096, id * 250)), 0);
    }
    for (uint64_t id = 0; id < 16; ++id) {
      const ibv_wc wc = pair.b.await_receive();
      ASSERT_EQ(wc.wr_id, id);
      EXPECT_EQ(wc.byte_len, id * 250);
      EXPECT_EQ(pair.a.await_send().wr_id, id);
    }
  });
}

TEST_P(WireTest, immediate_arrives_with_a_send_and_behind_a_write) {
  run([](WirePair& pair) {
    pair.from.fill(7);
    ASSERT_EQ(pair.b.receive(1, pair.to.piece(0, 64)), 0);
    ASSERT_EQ(pair.b.receive(2, pair.to.piece(0, 0)), 0);
    ASSERT_EQ(pair.write(3, 64, 0, 0, IBV_WR_SEND_WITH_IMM), 0);
    ASSERT_EQ(pair.write(4, 3000, pair.to.address() + 100, pair.to.key(), IBV_WR_RDMA_WRITE_WITH_IMM), 0);
    ibv_wc wc = pair.b.await_receive();
    EXPECT_EQ(wc.opcode, IBV_WC_RECV);
    EXPECT_EQ(wc.imm_data, 0x1234U);
    wc = pair.b.await_receive();
    EXPECT_EQ(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
    EXPECT_EQ(wc.byte_len, 3000U);
    EXPECT_EQ(std::memcmp(pair.to.data() + 100, pair.from.data(), 3000), 0);
  });
}

TEST_P(WireTest, write_without_an_immediate_takes_no_receive) {
  run([](WirePair& pair) {
    pair.from.fill(7);
    ASSERT_EQ(pair.b.receive(1, pair.to.piece(10'000, 8)), 0);
    ASSERT_EQ(pair.write(2, 5000, pair.to.address(), pair.to.key()), 0);
    ASSERT_EQ(pair.a.send(3, pair.from.piece(0, 8)), 0);
    EXPECT_EQ(pair.b.await_receive().opcode, IBV_WC_RECV);
    EXPECT_TRUE(pair.holds_same(5000));
  });
}

TEST_P(WireTest, wrong_local_key_fails_the_send_alone) {
  run([](WirePair& pair) {
    ibv_sge piece = pair.from.piece(0, 8);
    piece.lkey ^= 1;
    ASSERT_EQ(pair.a.send(1, piece), 0);
    EXPECT_EQ(pair.a.await_send().status, IBV_WC_LOC_PROT_ERR);
    EXPECT_EQ(pair.b.state(), IBV_QPS_RTS);
  });
}

TEST_P(WireTest, message_too_long_for_its_receive) {
  run([](WirePair& pair) {
    ASSERT_EQ(pair.b.receive(1, pair.to.piece(0, 7)), 0);
    ASSERT_EQ(pair.a.send(2, pair.from.piece(0, 8)), 0);
    EXPECT_EQ(pair.b.await_receive().status, IBV_WC_LOC_LEN_ERR);
    EXPECT_EQ(pair.b.state(), IBV_QPS_ERR);
    EXPECT_EQ(pair.a.await_send().status, is_reliable() ? IBV_WC_REM_INV_REQ_ERR : IBV_WC_SUCCESS);
  });
}

TEST_P(WireTest, receive_with_a_wrong_key) {
  run([](WirePair& pair) {
    ibv_sge piece = pair.to.piece(0, 8);
    piece.lkey ^= 1;
    ASSERT_EQ(pair.b.receive(1, piece), 0);
    ASSERT_EQ(pair.a.send(2, pair.from.piece(0, 8)), 0);
    EXPECT_EQ(pair.b.await_receive().status, IBV_WC_LOC_PROT_ERR);
    EXPECT_EQ(pair.a.await_send().status, is_reliable() ? IBV_WC_REM_OP_ERR : IBV_WC_SUCCESS);
  });
}

TEST_P(WireTest, write_that_is_not_allowed_changes_nothing) {
  run([](WirePair& pair) {
    pair.to.fill(0);
    ASSERT_EQ(pair.write(1, 8, pair.to.address(), pair.to.key() ^ 1), 0);
    EXPECT_EQ(pair.a.await_send().status, is_reliable() ? IBV_WC_REM_ACCESS_ERR : IBV_WC_SUCCESS);
    EXPECT_EQ(pair.to.data()[1], std::byte{31});
    if (is_reliable()) {
      EXPECT_EQ(pair.device.next_event(), IBV_EVENT_QP_ACCESS_ERR);
    }
  });
}

TEST_P(WireTest, counts_the_packets_of_its_messages) {
  run([](WirePair& pair) {
    ASSERT_EQ(pair.b.receive(1, pair.to.piece(0, 4096)), 0);
    ASSERT_EQ(pair.a.send(2, pair.from.piece(0, 2500)), 0);
    ASSERT_EQ(pair.b.await_receive().status, IBV_WC_SUCCESS);
    ASSERT_EQ(pair.a.await_send().status, IBV_WC_SUCCESS);
    EXPECT_EQ(counter(pair.device, "rdma_sends"), 1U);
    EXPECT_EQ(counter(pair.device, "rdma_recvs"), 1U);
    EXPECT_GE(counter(pair.device, "port_xmit_packets"), 3U);  // and what acknowledges and greets
    EXPECT_GE(counter(pair.device, "port_rcv_packets"), 3U);
  });
}

TEST_P(WireTest, can_be_reset_and_connected_anew) {
  run([](WirePair& pair) {
    for (uint64_t life = 1; life <= 3; ++life) {
      ASSERT_EQ(pair.b.receive(life, pair.to.piece(0, 8)), 0);
      ASSERT_EQ(pair.a.send(life, pair.from.piece(0, 8)), 0);
      ASSERT_EQ(pair.b.await_receive().status, IBV_WC_SUCCESS) << life;
      ASSERT_EQ(pair.a.await_send().status, IBV_WC_SUCCESS) << life;
      ASSERT_EQ(pair.a.to(IBV_QPS_RESET), 0);
      ASSERT_EQ(pair.b.to(IBV_QPS_RESET), 0);
      connect(pair.a, pair.b);
    }
  });
}

// --- RC alone.

class ReliableWireTest : public WireTest {
 protected:
  static void run_rc(const std::function<void(WirePair&)>& body, const std::string& faults = {}) {
    run(body, faults, IBV_QPT_RC);
  }
  /// Messages of many lengths, each whole and once, with as many retries as there are.
  static void carries_all(const std::string& faults) {
    run_on_network([&] {
      WirePair pair(IBV_QPT_RC, faults);
      for (End* end : {&pair.a, &pair.b}) {
        ASSERT_EQ(end->to_init(), 0);
        ASSERT_EQ(end->to_rtr((end == &pair.a ? pair.b : pair.a).qpn()), 0);
        ASSERT_EQ(end->to_rts(14, 7, 7), 0);
      }
      constexpr uint64_t kCount = 60;
      for (uint64_t id = 0; id < kCount; ++id) {
        const size_t length = id * 137 % 5000;
        std::memset(pair.from.data(), static_cast<int>(id + 1), 5000);
        pair.from.data()[length / 2] = std::byte{0};
        ASSERT_EQ(pair.b.receive(id, pair.to.piece(0, 5000)), 0);
        ASSERT_EQ(pair.a.send(id, pair.from.piece(0, length)), 0);
        const ibv_wc wc = pair.b.await_receive();
        ASSERT_EQ(wc.status, IBV_WC_SUCCESS) << id;
        ASSERT_EQ(wc.wr_id, id);
        ASSERT_EQ(wc.byte_len, length);
        ASSERT_TRUE(pair.holds_same(length)) << id;
        ASSERT_EQ(pair.a.await_send().status, IBV_WC_SUCCESS) << id;
      }
      EXPECT_EQ(pair.b.poll_receive().status, End::kNothing);
    });
  }
};
INSTANTIATE_TEST_SUITE_P(Types, ReliableWireTest, testing::Values(IBV_QPT_RC), [](const auto&) { return "RC"; });

TEST_P(ReliableWireTest, reads_what_it_says) {
  run_rc([](WirePair& pair) {
    pair.to.fill(9);
    pair.from.fill(0);
    ASSERT_EQ(pair.write(1, 10'000, pair.to.address() + 3, pair.to.key(), IBV_WR_RDMA_READ), 0);
    EXPECT_EQ(pair.a.await_send().status, IBV_WC_SUCCESS);
    EXPECT_EQ(std::memcmp(pair.from.data(), pair.to.data() + 3, 10'000), 0);
    EXPECT_EQ(pair.from.data()[10'000], static_cast<std::byte>(10'000 * 31 & 0xff));
  });
}

TEST_P(ReliableWireTest, atomics_give_the_value_of_before) {
  run_rc([](WirePair& pair) {
    const size_t offset = (8 - pair.to.address() % 8) % 8;
    uint64_t value = 40;
    std::memcpy(pair.to.data() + offset, &value, 8);
    ibv_sge piece = pair.from.piece(0, 8);
    ibv_send_wr wr = End::request(IBV_WR_ATOMIC_FETCH_AND_ADD, 1, &piece);
    wr.wr.atomic = {pair.to.address() + offset, 2, 0, pair.to.key()};
    ASSERT_EQ(pair.a.post(wr), 0);
    ASSERT_EQ(pair.a.await_send().status, IBV_WC_SUCCESS);
    std::memcpy(&value, pair.from.data(), 8);
    EXPECT_EQ(value, 40U);
    wr.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
    wr.wr.atomic = {pair.to.address() + offset, 42, 7, pair.to.key()};
    ASSERT_EQ(pair.a.post(wr), 0);
    ASSERT_EQ(pair.a.await_send().status, IBV_WC_SUCCESS);
    std::memcpy(&value, pair.from.data(), 8);
    EXPECT_EQ(value, 42U);
    std::memcpy(&value, pair.to.data() + offset, 8);
    EXPECT_EQ(value, 7U);
  });
}

TEST_P(ReliableWireTest, atomic_of_another_length_than_eight_fails_locally) {
  run_rc([](WirePair& pair) {
    ibv_sge piece = pair.from.piece(0, 4);
    ibv_send_wr wr = End::request(IBV_WR_ATOMIC_FETCH_AND_ADD, 1, &piece);
    wr.wr.atomic = {pair.to.address(), 2, 0, pair.to.key()};
    ASSERT_EQ(pair.a.post(wr), 0);
    EXPECT_EQ(pair.a.await_send().status, IBV_WC_LOC_LEN_ERR);
  });
}

TEST_P(ReliableWireTest, read_that_is_not_allowed_is_refused) {
  run_rc([](WirePair& pair) {
    Memory closed(pair.device.pd(), 64, IBV_ACCESS_LOCAL_WRITE);
    ASSERT_EQ(pair.write(1, 8, closed.address(), closed.key(), IBV_WR_RDMA_READ), 0);
    EXPECT_EQ(pair.a.await_send().status, IBV_WC_REM_ACCESS_ERR);
    EXPECT_EQ(pair.b.state(), IBV_QPS_ERR);
  });
}

TEST_P(ReliableWireTest, waits_for_a_receive_and_gives_up_after_its_rnr_retries) {
  run_on_network([] {
    WirePair pair(IBV_QPT_RC);
    ASSERT_EQ(pair.a.to_init(), 0);
    ASSERT_EQ(pair.b.to_init(), 0);
    ASSERT_EQ(pair.a.to_rtr(pair.b.qpn()), 0);
    ASSERT_EQ(pair.b.to_rtr(pair.a.qpn()), 0);
    ASSERT_EQ(pair.a.to_rts(14, 2), 0);
    ASSERT_EQ(pair.b.to_rts(), 0);
    ASSERT_EQ(pair.a.send(1, pair.from.piece(0, 8)), 0);
    const uint64_t deadline = base::now_ns() + 20'000'000'000;
    ibv_wc wc = pair.a.poll_send();
    while (wc.status == End::kNothing && base::now_ns() < deadline) {
      pair.b.poll_receive();
      wc = pair.a.poll_send();
    }
    EXPECT_EQ(wc.status, IBV_WC_RNR_RETRY_EXC_ERR);
    EXPECT_GE(counter(pair.device, "send_rnr_err"), 1U);
  });
}

TEST_P(ReliableWireTest, message_that_came_too_early_is_repeated_once_there_is_a_receive) {
  run_rc([](WirePair& pair) {
    pair.from.fill(3);
    ASSERT_EQ(pair.a.send(1, pair.from.piece(0, 3000)), 0);
    const uint64_t deadline = base::now_ns() + 20'000'000'000;
    while (counter(pair.device, "send_rnr_err") == 0 && base::now_ns() < deadline) {
      pair.b.poll_receive();
    }
    ASSERT_EQ(pair.b.receive(2, pair.to.piece(0, 3000)), 0);
    EXPECT_EQ(pair.b.await_receive().status, IBV_WC_SUCCESS);
    EXPECT_TRUE(pair.holds_same(3000));
    EXPECT_EQ(pair.a.await_send().status, IBV_WC_SUCCESS);
  });
}

TEST_P(ReliableWireTest, peer_that_is_not_there_ends_in_exceeded_retries) {
  run_on_network([] {
    WirePair pair(IBV_QPT_RC);
    ASSERT_EQ(pair.a.to_init(), 0);
    ASSERT_EQ(pair.a.to_rtr(pair.b.qpn()), 0);  // which stays in RESET
    ASSERT_EQ(pair.a.to_rts(1), 0);
    const uint64_t began = base::now_ns();
    ASSERT_EQ(pair.a.send(1, pair.from.piece(0, 8)), 0);
    EXPECT_EQ(pair.a.await_send().status, IBV_WC_RETRY_EXC_ERR);
    EXPECT_GE(base::now_ns() - began, kLeastTimeoutNs);
    EXPECT_GE(pair.drops(Drop::not_ready), 1U);
  });
}

TEST_P(ReliableWireTest, repeats_what_the_network_loses) { carries_all("loss 10% seed 3"); }
TEST_P(ReliableWireTest, takes_once_what_the_network_doubles) { carries_all("duplicate 30% seed 4"); }
TEST_P(ReliableWireTest, orders_what_the_network_reorders) { carries_all("reorder 20% seed 5"); }
TEST_P(ReliableWireTest, repeats_what_the_network_damages) { carries_all("corrupt 10% seed 6"); }

TEST_P(ReliableWireTest, flushes_what_waits_when_it_enters_the_error_state) {
  run_rc([](WirePair& pair) {
    ASSERT_EQ(pair.a.send(1, pair.from.piece(0, 8)), 0);  // there is no receive
    ASSERT_EQ(pair.a.receive(2, pair.to.piece(0, 8)), 0);
    ASSERT_EQ(pair.a.to(IBV_QPS_ERR), 0);
    EXPECT_EQ(pair.a.await_send().status, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(pair.a.await_receive().status, IBV_WC_WR_FLUSH_ERR);
  });
}

// --- UC: what the network loses is lost.

class UnreliableWireTest : public WireTest {};
INSTANTIATE_TEST_SUITE_P(Types, UnreliableWireTest, testing::Values(IBV_QPT_UC), [](const auto&) { return "UC"; });

TEST_P(UnreliableWireTest, message_without_a_receive_is_dropped) {
  run([](WirePair& pair) {
    ASSERT_EQ(pair.a.send(1, pair.from.piece(0, 8)), 0);
    EXPECT_EQ(pair.a.await_send().status, IBV_WC_SUCCESS);
    const uint64_t deadline = base::now_ns() + 20'000'000'000;
    while (counter(pair.device, "out_of_buffer") == 0 && base::now_ns() < deadline) {
      pair.b.poll_receive();
    }
    ASSERT_EQ(pair.b.receive(2, pair.to.piece(0, 8)), 0);
    ASSERT_EQ(pair.a.send(3, pair.from.piece(0, 4)), 0);
    EXPECT_EQ(pair.b.await_receive().byte_len, 4U);  // the second one
  });
}

TEST_P(UnreliableWireTest, message_that_misses_a_packet_is_lost_and_the_next_one_arrives) {
  // Frames are counted of the port, greetings included: so that some are hit, a part of all is.
  run(
      [](WirePair& pair) {
        constexpr uint64_t kCount = 100;
        uint64_t arrived = 0;
        ASSERT_EQ(pair.b.receive(0, pair.to.piece(0, 5000)), 0);
        for (uint64_t id = 0; id < kCount; ++id) {
          const size_t length = 3000 + id;
          ASSERT_EQ(pair.a.send(id, pair.from.piece(0, length)), 0);
          ASSERT_EQ(pair.a.await_send().status, IBV_WC_SUCCESS);
          for (ibv_wc wc = pair.b.poll_receive(); wc.status != End::kNothing; wc = pair.b.poll_receive()) {
            ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
            ++arrived;
            ASSERT_EQ(pair.b.receive(id, pair.to.piece(0, 5000)), 0);
          }
        }
        EXPECT_GT(arrived, 0U);
        EXPECT_LT(arrived, kCount);
      },
      "loss 15% seed 8 direction send");
}

// --- What keeps strangers out: QueuePair::arrive().

class StrangerTest : public WireTest {
 protected:
  /// A packet of that opcode for `b`, from the peer's address or another one.
  static void bring(WirePair& pair, uint8_t opcode, bool from_peer = true, uint32_t psn = 0) {
    wire::Headers headers;
    headers.bth.opcode = opcode;
    headers.bth.psn = psn;
    bring(pair, pair.b, headers, from_peer);
  }
  /// A packet without a payload for `to`.
  static void bring(WirePair& pair, End& to, const wire::Headers& headers, bool from_peer = true) {
    static const auto pool = link::UdpBufferPool::make();
    InboundPacket packet;
    packet.view.headers = headers;
    packet.view.headers.bth.dest_qp = to.qpn();
    packet.buffer = pool->take_small();
    const wire::Address own = address_of(pair.device.port().known_gids.front());
    packet.flow.destination = own;
    packet.flow.source = own;
    packet.flow.source[15] ^= from_peer ? 0 : 1;
    to.qp().arrive(std::move(packet), base::now_ns());
  }
  /// Messages from `a` to `b` until packets without a token are dropped at `b`. Returns how many.
  static uint32_t agree(WirePair& pair) {
    uint32_t messages = 0;
    for (const uint64_t deadline = base::now_ns() + 20'000'000'000;
         pair.drops(Drop::unsealed) == 0 && base::now_ns() < deadline; ++messages) {
      EXPECT_EQ(pair.b.receive(1, pair.to.piece(0, 8)), 0);
      EXPECT_EQ(pair.a.send(2, pair.from.piece(0, 8)), 0);
      EXPECT_EQ(pair.b.await_receive().status, IBV_WC_SUCCESS);
      EXPECT_EQ(pair.a.await_send().status, IBV_WC_SUCCESS);
      bring(pair, is_reliable() ? wire::kRcSendOnly : wire::kUcSendOnly, true, 0x800000);  // a number of no use
    }
    EXPECT_GE(pair.drops(Drop::unsealed), 1U);
    return messages;
  }
};
INSTANTIATE_TEST_SUITE_P(Types, StrangerTest, testing::Values(IBV_QPT_RC, IBV_QPT_UC),
                         [](const auto& type) { return type.param == IBV_QPT_RC ? "RC" : "UC"; });

TEST_P(StrangerTest, packet_of_another_type_of_queue_pair_is_dropped) {
  run([](WirePair& pair) {
    bring(pair, is_reliable() ? wire::kUcSendOnly : wire::kRcSendOnly);
    bring(pair, wire::kUdSendOnly);
    EXPECT_EQ(pair.drops(Drop::wrong_type), 2U);
  });
}

TEST_P(StrangerTest, packet_for_a_queue_pair_that_is_not_connected_is_dropped) {
  run_on_network([] {
    WirePair pair(GetParam());
    const uint8_t send = is_reliable() ? wire::kRcSendOnly : wire::kUcSendOnly;
    bring(pair, send);
    ASSERT_EQ(pair.b.to_init(), 0);
    bring(pair, send);
    EXPECT_EQ(pair.drops(Drop::not_ready), 2U);
    ASSERT_EQ(pair.b.to_rtr(pair.a.qpn()), 0);
    ASSERT_EQ(pair.b.to(IBV_QPS_ERR), 0);
    bring(pair, send);
    EXPECT_GE(pair.drops(Drop::not_ready), 3U);  // the greeting to the other one, which is in RESET, is one more
  });
}

TEST_P(StrangerTest, packet_from_another_address_delivers_nothing) {
  run_on_network([] {
    WirePair pair(GetParam());
    ASSERT_EQ(pair.b.to_init(), 0);
    ASSERT_EQ(pair.b.receive(1, pair.to.piece(0, 8)), 0);
    ASSERT_EQ(pair.b.to_rtr(pair.a.qpn()), 0);  // no seal is agreed: the other end greets nobody yet
    bring(pair, is_reliable() ? wire::kRcSendOnly : wire::kUcSendOnly, false);
    EXPECT_TRUE(pair.reaches_drops(Drop::wrong_source, 1));
    EXPECT_EQ(pair.b.poll_receive().status, End::kNothing);
    bring(pair, is_reliable() ? wire::kRcSendOnly : wire::kUcSendOnly, true);
    EXPECT_EQ(pair.b.await_receive().status, IBV_WC_SUCCESS);
  });
}

TEST_P(StrangerTest, packet_without_the_token_delivers_nothing_once_it_is_agreed) {
  run([](WirePair& pair) { agree(pair); });
}

/// A greeting is let in without the token; an acknowledgement that it claims to carry is not.
TEST_P(StrangerTest, greeting_carries_no_acknowledgement) {
  run([](WirePair& pair) {
    const uint32_t psn = agree(pair);                     // of the next request
    ASSERT_EQ(pair.a.send(3, pair.from.piece(0, 8)), 0);  // RC: there is no receive, so it stays on its way
    wire::Headers forged;
    forged.bth = {.opcode = wire::kGreeting, .is_sealed = true, .carries_ack = true};
    for (const uint32_t number : {psn - 1, psn, psn + 1}) {
      forged.carried_ack = {number, {wire::kNakRemoteAccess, 0}};
      bring(pair, pair.a, forged);
    }
    ASSERT_EQ(pair.b.receive(4, pair.to.piece(0, 8)), 0);
    EXPECT_EQ(pair.a.await_send().status, IBV_WC_SUCCESS);
  });
}

}  // namespace
}  // namespace ringbolt::device
