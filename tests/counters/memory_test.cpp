// Through shared memory every operation moves exactly the counters that docs/metrics.md says. The default device
// reaches itself: what leaves it comes in again.
#include "far.h"
#include "port_counters.h"

namespace ringbolt::counters {
namespace {

using namespace conformance;

constexpr uint32_t kMtu = 4096;

/// Packets and words that leave and come, and how often which other counter moves.
Counts moved(uint64_t packets, uint64_t words, const Counts& more) {
  Counts all = more;
  for (const char* name : {"port_xmit_packets", "unicast_xmit_packets", "sent_pkts", "port_rcv_packets",
                           "unicast_rcv_packets", "rcvd_pkts"}) {
    all[name] = packets;
  }
  all["port_xmit_data"] = all["port_rcv_data"] = words;
  return all;
}

/// Headers and checksum of `packets`, and a payload.
constexpr uint64_t words_of(uint64_t packets, uint64_t payload, uint64_t extra = 0) {
  return packets * 4 + (payload + 3) / 4 + extra;
}

class MemoryCounters : public testing::TestWithParam<Placement> {
 protected:
  static QpOptions options(ibv_qp_type type = IBV_QPT_RC) {
    QpOptions chosen;
    chosen.type = type;
    chosen.path_mtu = IBV_MTU_4096;
    return chosen;
  }
};
INSTANTIATE_TEST_SUITE_P(All, MemoryCounters, testing::ValuesIn(kPlacements), parameter_name);

TEST_P(MemoryCounters, sends_of_every_length) {
  for (const ibv_qp_type type : {IBV_QPT_RC, IBV_QPT_UC}) {
    Link link(GetParam(), options(type), 1U << 20U);
    for (const uint32_t length : {0U, 1U, 8U, 33U, kMtu - 1, kMtu, kMtu + 1, 100'000U}) {
      const uint64_t packets = length == 0 ? 1 : (length + kMtu - 1) / kMtu;
      ASSERT_EQ(link.far.post_recv(1, {{0, length}}), 0);
      const Counts before = read_ports();
      ASSERT_EQ(SendWr(1, IBV_WR_SEND, {link.memory.sge(0, length)}).post(link.near.qp()), 0);
      expect_success(link.far.wait_recv(), 1, IBV_WC_RECV);
      expect_success(wait_completion(link.near.send_cq()), 1, IBV_WC_SEND);
      const Counts expected = moved(packets, words_of(packets, length), {{"rdma_sends", 1}, {"rdma_recvs", 1}});
      EXPECT_EQ(text_of(grown_since(before)), text_of(expected)) << length;
    }
  }
}

TEST_P(MemoryCounters, a_send_out_of_shared_memory_counts_as_any) {
  Link link(GetParam(), options(), 1U << 20U);
  ASSERT_EQ(link.far.post_recv(1, {{0, 8192}}), 0);
  const Counts before = read_ports();
  SendWr send(1, IBV_WR_SEND_WITH_IMM, {link.memory.sge(0, 8192)});
  ASSERT_EQ(send.immediate(7).post(link.near.qp()), 0);
  link.far.wait_recv();
  expect_success(wait_completion(link.near.send_cq()), 1, IBV_WC_SEND);
  EXPECT_EQ(text_of(grown_since(before)),
            text_of(moved(2, words_of(2, 8192, 1), {{"rdma_sends", 1}, {"rdma_recvs", 1}})));
}

TEST_P(MemoryCounters, one_sided_operations_count_at_both_ends) {
  Link link(GetParam(), options(), 1U << 20U);
  struct Case {
    ibv_wr_opcode opcode;
    uint32_t length;
    uint64_t packets;
    uint64_t words;
    const char* request;
  };
  const Case cases[] = {
      {IBV_WR_RDMA_WRITE, 0, 1, words_of(1, 0, 4), "rx_write_requests"},
      {IBV_WR_RDMA_WRITE, 10'000, 3, words_of(3, 10'000, 4), "rx_write_requests"},
      {IBV_WR_RDMA_READ, 8, 2, 8 + words_of(1, 8, 1), "rx_read_requests"},
      {IBV_WR_RDMA_READ, 10'000, 4, 8 + words_of(3, 10'000, 2), "rx_read_requests"},
      {IBV_WR_ATOMIC_FETCH_AND_ADD, 8, 2, 11 + 7, "rx_atomic_requests"},
      {IBV_WR_ATOMIC_CMP_AND_SWP, 8, 2, 11 + 7, "rx_atomic_requests"},
  };
  for (const Case& one : cases) {
    const Counts before = read_ports();
    SendWr wr(1, one.opcode, {link.memory.sge(0, one.length)});
    if (std::string(one.request) == "rx_atomic_requests") {
      wr.atomic(link.far.region_address(), link.far.rkey(), 0, 1);
    } else {
      wr.remote(link.far.region_address(), link.far.rkey());
    }
    ASSERT_EQ(wr.post(link.near.qp()), 0);
    ASSERT_EQ(wait_completion(link.near.send_cq()).status, IBV_WC_SUCCESS);
    EXPECT_EQ(text_of(grown_since(before)), text_of(moved(one.packets, one.words, {{one.request, 1}})))
        << one.request << " " << one.length;
  }
}

TEST_P(MemoryCounters, a_write_with_immediate_also_completes_a_receive) {
  Link link(GetParam(), options(), 4096);
  ASSERT_EQ(link.far.post_recv(1, {}), 0);
  const Counts before = read_ports();
  SendWr wr(1, IBV_WR_RDMA_WRITE_WITH_IMM, {link.memory.sge(0, 100)});
  ASSERT_EQ(wr.remote(link.far.region_address(), link.far.rkey()).immediate(1).post(link.near.qp()), 0);
  link.far.wait_recv();
  expect_success(wait_completion(link.near.send_cq()), 1, IBV_WC_RDMA_WRITE);
  EXPECT_EQ(text_of(grown_since(before)),
            text_of(moved(1, words_of(1, 100, 5), {{"rx_write_requests", 1}, {"rdma_recvs", 1}})));
}

TEST(MemoryDatagrams, count_and_those_without_a_receive_are_told) {
  const Device device = open_device();
  QpOptions options;
  options.type = IBV_QPT_UD;
  Endpoint near(device, options);
  Endpoint far(device, options);
  connect(near, far);
  Region memory(near.pd(), 4096);
  Region target(far.pd(), 4096);
  const Ah ah = make_ah(device, near.pd(), device.gid);
  const auto send = [&] {
    SendWr wr(1, IBV_WR_SEND, {memory.sge(0, 100)});
    ASSERT_EQ(wr.datagram(ah.get(), far.qp()->qp_num).post(near.qp()), 0);
    expect_success(wait_completion(near.send_cq()), 1, IBV_WC_SEND);
  };
  ASSERT_EQ(post_recv(far.qp(), 1, {target.sge(0, 200)}), 0);
  const Counts before = read_ports();
  send();
  ASSERT_EQ(wait_completion(far.recv_cq()).status, IBV_WC_SUCCESS);
  EXPECT_EQ(text_of(grown_since(before)),
            text_of(moved(1, words_of(1, 100, 2), {{"rdma_sends", 1}, {"rdma_recvs", 1}})));
  send();
  EXPECT_TRUE(is_empty(far.recv_cq()));
  Counts lost = moved(2, 2 * words_of(1, 100, 2), {{"rdma_sends", 2}, {"rdma_recvs", 1}});
  lost["out_of_buffer"] = lost["rx_drops"] = 1;
  EXPECT_EQ(text_of(grown_since(before)), text_of(lost));
}

TEST(MemoryProcesses, what_a_killed_process_sent_stays_counted) {
  PeerProcess process;
  const Counts before = read_ports();
  {
    Link link(process, QpOptions(), 4096);
    ASSERT_EQ(post_recv(link.near.qp(), 1, {link.memory.sge(0, 64)}), 0);
    ASSERT_EQ(link.far.post_send(2, IBV_WR_SEND, {{0, 64}}), 0);
    expect_success(wait_completion(link.near.recv_cq()), 1, IBV_WC_RECV);
    process.kill();
    link.far.abandon();
  }
  const Counts grown = grown_since(before);
  EXPECT_EQ(grown.at("port_xmit_data"), words_of(1, 64));
  EXPECT_EQ(grown.at("port_rcv_data"), words_of(1, 64));
  EXPECT_EQ(grown.at("rdma_sends"), 1U);
}

TEST(MemoryQueuePairs, many_after_one_another_lose_nothing) {
  const Counts before = read_ports();
  constexpr uint64_t kPairs = 40;
  for (uint64_t i = 0; i < kPairs; ++i) {
    Link link(Placement::same_process, QpOptions(), 4096);
    ASSERT_EQ(link.far.post_recv(1, {{0, 8}}), 0);
    ASSERT_EQ(SendWr(1, IBV_WR_SEND, {link.memory.sge(0, 8)}).post(link.near.qp()), 0);
    expect_success(link.far.wait_recv(), 1, IBV_WC_RECV);
    expect_success(wait_completion(link.near.send_cq()), 1, IBV_WC_SEND);
  }
  EXPECT_EQ(grown_since(before).at("port_xmit_packets"), kPairs);
  EXPECT_EQ(grown_since(before).at("rdma_recvs"), kPairs);
}

}  // namespace
}  // namespace ringbolt::counters
