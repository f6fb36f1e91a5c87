// What happens once although the network repeats it, and datagrams, which it may lose and double: both ends in one
// process, as in wire_transport_test.cpp.

#include <gtest/gtest.h>

#include "device/address_handle.h"
#include "device/gids.h"
#include "device/wire_test_support.h"

namespace ringbolt::device {
namespace {

// Frames pass a fault on their way out and in, requests and answers alike.
constexpr const char* kDoubling = "duplicate 40% seed 11";
constexpr const char* kLosing = "loss 4% seed 12; duplicate 20% seed 13";

class WireRepeatsTest : public testing::TestWithParam<const char*> {
 protected:
  static void run(const std::function<void(WirePair&)>& body) {
    run_on_network([&] {
      WirePair pair(IBV_QPT_RC, GetParam());
      ASSERT_EQ(pair.a.to_init() | pair.b.to_init(), 0);
      ASSERT_EQ(pair.a.to_rtr(pair.b.qpn()) | pair.b.to_rtr(pair.a.qpn()), 0);
      ASSERT_EQ(pair.a.to_rts(14, 7, 7) | pair.b.to_rts(14, 7, 7), 0);
      body(pair);
    });
  }
  /// Of the memory that B's atomics change.
  static uint64_t* word(WirePair& pair) {
    return reinterpret_cast<uint64_t*>(pair.to.data() + (8 - pair.to.address() % 8) % 8);
  }
  static uint64_t fetched(WirePair& pair, uint64_t id) {
    uint64_t value = 0;
    std::memcpy(&value, pair.from.data() + 8 * id, sizeof value);
    return value;
  }
  static int atomic(WirePair& pair, uint64_t id, ibv_wr_opcode opcode, uint64_t compare_add, uint64_t swap) {
    ibv_sge piece = pair.from.piece(8 * id, 8);
    ibv_send_wr wr = End::request(opcode, id, &piece);
    wr.wr.atomic = {reinterpret_cast<uint64_t>(word(pair)), compare_add, swap, pair.to.key()};
    return pair.a.post(wr);
  }
};
INSTANTIATE_TEST_SUITE_P(Networks, WireRepeatsTest, testing::Values(kDoubling, kLosing),
                         [](const auto& network) { return network.index == 0 ? "doubling" : "losing"; });

// 9.4.5 and 9.7.5.1.5 of the specification: a repeated atomic is answered with what it gave before, not executed again.
TEST_P(WireRepeatsTest, each_fetch_and_add_adds_once) {
  run([](WirePair& pair) {
    constexpr uint64_t kCount = 64;
    constexpr uint64_t kAtOnce = 8;
    *word(pair) = 1000;
    for (uint64_t first = 0; first < kCount; first += kAtOnce) {
      for (uint64_t id = first; id < first + kAtOnce; ++id) {
        ASSERT_EQ(atomic(pair, id, IBV_WR_ATOMIC_FETCH_AND_ADD, id + 1, 0), 0);
      }
      for (uint64_t id = first; id < first + kAtOnce; ++id) {
        const ibv_wc wc = pair.a.await_send();
        ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
        ASSERT_EQ(wc.wr_id, id);
      }
    }
    uint64_t sum = 1000;
    for (uint64_t id = 0; id < kCount; ++id) {
      EXPECT_EQ(fetched(pair, id), sum) << id;
      sum += id + 1;
    }
    EXPECT_EQ(*word(pair), sum);
  });
}

TEST_P(WireRepeatsTest, each_compare_and_swap_finds_what_the_one_before_has_left) {
  run([](WirePair& pair) {
    constexpr uint64_t kCount = 40;
    *word(pair) = 0;
    for (uint64_t id = 0; id < kCount; ++id) {
      ASSERT_EQ(atomic(pair, id, IBV_WR_ATOMIC_CMP_AND_SWP, id, id + 1), 0);
      ASSERT_EQ(pair.a.await_send().status, IBV_WC_SUCCESS);
      EXPECT_EQ(fetched(pair, id), id);  // executed twice it would find its own value
    }
    EXPECT_EQ(*word(pair), kCount);
  });
}

// A READ that is repeated may well be read again; but no answer of an earlier one may be taken for its own.
TEST_P(WireRepeatsTest, each_read_brings_what_lies_there_then) {
  run([](WirePair& pair) {
    constexpr size_t kLength = 5000;
    for (uint8_t round = 1; round <= 25; ++round) {
      pair.to.fill(round);
      pair.from.fill(0);
      ASSERT_EQ(pair.write(round, kLength, pair.to.address(), pair.to.key(), IBV_WR_RDMA_READ), 0);
      ASSERT_EQ(pair.a.await_send().status, IBV_WC_SUCCESS);
      EXPECT_TRUE(pair.holds_same(kLength)) << int{round};
    }
  });
}

TEST_P(WireRepeatsTest, each_immediate_takes_one_receive) {
  run([](WirePair& pair) {
    constexpr uint32_t kCount = 40;
    for (uint32_t id = 0; id < kCount; ++id) {
      ASSERT_EQ(pair.b.receive(id, pair.to.piece(0, 0)), 0);
      ibv_sge piece = pair.from.piece(0, 3000);
      ibv_send_wr wr = End::request(IBV_WR_RDMA_WRITE_WITH_IMM, id, &piece);
      wr.imm_data = id;
      wr.wr.rdma = {pair.to.address(), pair.to.key()};
      ASSERT_EQ(pair.a.post(wr), 0);
      const ibv_wc wc = pair.b.await_receive();
      ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
      EXPECT_EQ(wc.wr_id, id);
      EXPECT_EQ(wc.imm_data, id);
      ASSERT_EQ(pair.a.await_send().status, IBV_WC_SUCCESS);
    }
    EXPECT_EQ(pair.b.poll_receive().status, End::kNothing);
  });
}

// --- Datagrams over the network.

class WireDatagramTest : public testing::Test {
 protected:
  static constexpr size_t kGrh = 40;

  struct Datagrams {
    explicit Datagrams(const std::string& faults) : pair(IBV_QPT_UD, faults) {
      for (End* end : {&pair.a, &pair.b}) {
        EXPECT_EQ(end->to_init() | end->to_rtr(0) | end->to_rts(), 0);
      }
      target.gid = target.source_gid = address_of(pair.device.port().known_gids.front());
      target.is_remote = true;
    }
    int send(uint64_t id, size_t length, uint32_t qpn, uint32_t qkey = End::kQkey) {
      ibv_sge piece = pair.from.piece(0, length);
      ibv_send_wr wr = End::request(IBV_WR_SEND_WITH_IMM, id, &piece);
      wr.imm_data = static_cast<uint32_t>(id);
      wr.wr.ud = {&target.c, qpn, qkey};
      const int error = pair.a.post(wr);
      return error != 0 ? error : pair.a.await_send().status == IBV_WC_SUCCESS ? 0 : -1;
    }
    int send(uint64_t id, size_t length) { return send(id, length, pair.b.qpn()); }

    WirePair pair;
    AddressHandle target;
  };
  static void run(const std::function<void(Datagrams&)>& body, const std::string& faults = {}) {
    run_on_network([&] {
      Datagrams datagrams(faults);
      body(datagrams);
    });
  }
};

TEST_F(WireDatagramTest, arrive_behind_the_ip_header_whatever_their_length) {
  run([](Datagrams& all) {
    for (const uint32_t length : {0U, 1U, 3U, 4U, 1024U, 4096U}) {
      all.pair.from.fill(static_cast<uint8_t>(length));
      all.pair.to.fill(1);
      ASSERT_EQ(all.pair.b.receive(7, all.pair.to.piece(0, kGrh + length)), 0);
      ASSERT_EQ(all.send(length, length), 0);
      const ibv_wc wc = all.pair.b.await_receive();
      EXPECT_EQ(wc.status, IBV_WC_SUCCESS) << length;
      EXPECT_EQ(wc.byte_len, kGrh + length);
      EXPECT_EQ(wc.src_qp, all.pair.a.qpn());
      EXPECT_EQ(wc.imm_data, length);
      EXPECT_EQ(wc.wc_flags, static_cast<unsigned>(IBV_WC_GRH | IBV_WC_WITH_IMM));
      EXPECT_EQ(std::memcmp(all.pair.to.data() + kGrh, all.pair.from.data(), length), 0) << length;
    }
  });
}

// docs/faults.md: UD loses exactly the frames that are lost, and gets doubled ones twice.
TEST_F(WireDatagramTest, that_are_doubled_arrive_twice) {
  run(
      [](Datagrams& all) {
        for (uint64_t id = 0; id < 4; ++id) {
          ASSERT_EQ(all.pair.b.receive(id, all.pair.to.piece(0, 100)), 0);
        }
        for (uint64_t id = 0; id < 2; ++id) {
          ASSERT_EQ(all.send(id, 8), 0);
          EXPECT_EQ(all.pair.b.await_receive().imm_data, id);
          EXPECT_EQ(all.pair.b.await_receive().imm_data, id);
        }
      },
      "duplicate 100% direction send");
}

TEST_F(WireDatagramTest, that_are_lost_take_no_receive) {
  run(
      [](Datagrams& all) {
        ASSERT_EQ(all.pair.b.receive(9, all.pair.to.piece(0, 100)), 0);
        for (uint64_t id = 0; id < 3; ++id) {
          ASSERT_EQ(all.send(id, 8), 0);  // all succeed
        }
        const ibv_wc wc = all.pair.b.await_receive();
        EXPECT_EQ(wc.wr_id, 9U);
        EXPECT_EQ(wc.imm_data, 2U);
      },
      "loss 100% frames 0-1 direction send");
}

TEST_F(WireDatagramTest, with_a_foreign_qkey_or_without_a_receive_are_dropped_and_counted) {
  run([](Datagrams& all) {
    ASSERT_EQ(all.send(1, 8), 0);
    EXPECT_TRUE(all.pair.reaches_drops(Drop::no_receive, 1));
    ASSERT_EQ(all.pair.b.receive(9, all.pair.to.piece(0, 100)), 0);
    ASSERT_EQ(all.send(2, 8, all.pair.b.qpn(), End::kQkey + 1), 0);
    EXPECT_TRUE(all.pair.reaches_drops(Drop::wrong_qkey, 1));
    ASSERT_EQ(all.send(3, 8, all.pair.b.qpn() ^ 0x1000), 0);
    EXPECT_TRUE(all.pair.reaches_drops(Drop::unknown_queue_pair, 1));
    ASSERT_EQ(all.send(4, 8), 0);
    EXPECT_EQ(all.pair.b.await_receive().imm_data, 4U);
  });
}

TEST_F(WireDatagramTest, too_long_for_its_receive_fails_the_receiver_and_no_sender) {
  run([](Datagrams& all) {
    ASSERT_EQ(all.pair.b.receive(9, all.pair.to.piece(0, kGrh + 7)), 0);
    ASSERT_EQ(all.send(1, 8), 0);
    EXPECT_EQ(all.pair.b.await_receive().status, IBV_WC_LOC_LEN_ERR);
    EXPECT_EQ(all.pair.a.state(), IBV_QPS_RTS);
  });
}

}  // namespace
}  // namespace ringbolt::device
