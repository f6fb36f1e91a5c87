// Over UDP and streams the packets themselves are counted: acknowledgements and greetings too, so figures of messages
// are exact and those of packets have a floor. What leaves the port comes in at it.
#include "deadline.h"
#include "far.h"
#include "port_counters.h"

namespace ringbolt::counters {
namespace {

using namespace conformance;

uint64_t at(const Counts& counts, const char* name) {
  const auto found = counts.find(name);
  return found == counts.end() ? 0 : found->second;
}

constexpr uint32_t kMessages = 50;
constexpr uint64_t kPacketsOfAMessage = 10;

/// Beyond the packets of the messages: a few greetings, an acknowledgement a packet at most, and what a slow machine
/// made the sender repeat.
void expect_packets(const Counts& grown, uint64_t packets, uint64_t words) {
  const uint64_t sent = at(grown, "port_xmit_packets");
  // A READ that is asked for again is answered by all of its packets.
  const uint64_t resent = at(grown, "completer_retry_err") * kPacketsOfAMessage;
  EXPECT_GE(sent, packets);
  EXPECT_LE(sent, 2 * (packets + resent) + 64);
  constexpr uint64_t kMostWordsOfAnother = 16;
  constexpr uint64_t kMostWords = 1024 / 4 + kMostWordsOfAnother;
  EXPECT_GE(at(grown, "port_xmit_data"), words);
  constexpr uint64_t kSealWords = 2;  // packets between own peers, once they have met
  EXPECT_LE(at(grown, "port_xmit_data"),
            words + packets * kSealWords + (sent - packets) * kMostWordsOfAnother + resent * kMostWords);
  EXPECT_EQ(sent, at(grown, "unicast_xmit_packets"));
  EXPECT_EQ(sent, at(grown, "sent_pkts"));
  EXPECT_EQ(at(grown, "port_rcv_packets"), at(grown, "rcvd_pkts"));
}

/// Of this test's runtime folder: both ends. What was sent last may still lie in a socket.
void expect_all_came_in(const Counts& before) {
  EXPECT_TRUE(wait_until([&] {
    const Counts grown = grown_since(before);
    return at(grown, "port_rcv_packets") + at(grown, "rx_drops") >= at(grown, "port_xmit_packets");
  })) << text_of(grown_since(before));
}

class WireOperations : public testing::TestWithParam<ibv_wr_opcode> {};
INSTANTIATE_TEST_SUITE_P(All, WireOperations,
                         testing::Values(IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
                                         IBV_WR_ATOMIC_FETCH_AND_ADD));

TEST_P(WireOperations, in_other_process_are_counted) {
  const bool is_atomic = GetParam() == IBV_WR_ATOMIC_FETCH_AND_ADD;
  const uint32_t length = is_atomic ? 8 : 10'000;
  QpOptions options;
  options.path_mtu = IBV_MTU_1024;
  Link link(Placement::other_process, options, 1U << 16U);
  const Counts before = read_ports();
  for (uint32_t i = 0; i < kMessages; ++i) {
    if (GetParam() == IBV_WR_SEND) {
      ASSERT_EQ(link.far.post_recv(i, {{0, length}}), 0);
    }
    SendWr wr(i, GetParam(), {link.memory.sge(0, length)});
    is_atomic ? wr.atomic(link.far.region_address(), link.far.rkey(), 1)
              : wr.remote(link.far.region_address(), link.far.rkey());
    ASSERT_EQ(wr.post(link.near.qp()), 0);
    ASSERT_EQ(wait_completion(link.near.send_cq()).status, IBV_WC_SUCCESS);
    if (GetParam() == IBV_WR_SEND) {
      ASSERT_EQ(link.far.wait_recv().status, IBV_WC_SUCCESS);
    }
  }
  expect_all_came_in(before);
  const Counts grown = grown_since(before);
  const uint64_t packets = is_atomic ? kMessages : kMessages * ((length + 1023) / 1024);
  expect_packets(grown, packets, packets * 4 + kMessages * uint64_t{length} / 4);
  EXPECT_EQ(at(grown, "rdma_sends"), GetParam() == IBV_WR_SEND ? kMessages : 0);
  EXPECT_EQ(at(grown, "rdma_recvs"), GetParam() == IBV_WR_SEND ? kMessages : 0);
  // A request that is repeated because its answer was slow comes again.
  const uint64_t again = at(grown, "duplicate_request");
  const auto expect_requests = [&](const char* name, bool is_meant) {
    EXPECT_GE(at(grown, name), is_meant ? kMessages : 0) << name;
    // A READ is asked for in pieces, the smaller the slower its answers come.
    EXPECT_LE(at(grown, name), is_meant ? kPacketsOfAMessage * kMessages + again : 0) << name;
  };
  expect_requests("rx_write_requests", GetParam() == IBV_WR_RDMA_WRITE);
  expect_requests("rx_read_requests", GetParam() == IBV_WR_RDMA_READ);
  expect_requests("rx_atomic_requests", is_atomic);
}

}  // namespace
}  // namespace ringbolt::counters
