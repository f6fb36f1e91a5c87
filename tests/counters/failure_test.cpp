// What goes wrong shows in the counters, whatever the link.
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

// "WireAnd" so that both runs choose them.
class WireAndMemoryFailures : public testing::TestWithParam<Placement> {};
INSTANTIATE_TEST_SUITE_P(All, WireAndMemoryFailures, testing::ValuesIn(kPlacements), parameter_name);

TEST_P(WireAndMemoryFailures, no_receive_posted) {
  QpOptions options;
  options.rnr_retry = 1;
  options.min_rnr_timer = 12;
  Link link(GetParam(), options, 4096);
  const Counts before = read_ports();
  ASSERT_EQ(SendWr(1, IBV_WR_SEND, {link.memory.sge(0, 8)}).post(link.near.qp()), 0);
  expect_status(wait_completion(link.near.send_cq()), 1, IBV_WC_RNR_RETRY_EXC_ERR);
  EXPECT_TRUE(wait_until([&] { return at(grown_since(before), "out_of_buffer") >= 1; }));
  const Counts grown = grown_since(before);
  EXPECT_GE(at(grown, "send_rnr_err"), 1U);
  EXPECT_GE(at(grown, "rcvd_rnr_err"), 1U);
  EXPECT_EQ(at(grown, "rcvd_rnr_err"), at(grown, "rnr_nak_retry_err"));
  EXPECT_EQ(at(grown, "retry_rnr_exceeded_err"), 1U);
  EXPECT_EQ(at(grown, "req_cqe_error"), 1U);
  EXPECT_EQ(at(grown, "rdma_recvs"), 0U);
}

TEST_P(WireAndMemoryFailures, access_that_is_not_allowed) {
  Link link(GetParam(), QpOptions(), 4096);
  const Counts before = read_ports();
  SendWr write(1, IBV_WR_RDMA_WRITE, {link.memory.sge(0, 8)});
  ASSERT_EQ(write.remote(link.far.region_address(), link.far.rkey() ^ 0x100U).post(link.near.qp()), 0);
  expect_status(wait_completion(link.near.send_cq()), 1, IBV_WC_REM_ACCESS_ERR);
  ASSERT_EQ(SendWr(2, IBV_WR_SEND, {link.memory.sge(0, 8)}).post(link.near.qp()), 0);
  expect_status(wait_completion(link.near.send_cq()), 2, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(link.far.wait_event(), IBV_EVENT_QP_ACCESS_ERR);
  const Counts grown = grown_since(before);
  EXPECT_EQ(at(grown, "req_remote_access_errors"), 1U);
  EXPECT_EQ(at(grown, "resp_remote_access_errors"), 1U);
  EXPECT_EQ(at(grown, "req_cqe_error"), 1U);
  EXPECT_EQ(at(grown, "req_cqe_flush_error"), 1U);
}

TEST_P(WireAndMemoryFailures, a_message_longer_than_its_receive) {
  Link link(GetParam(), QpOptions(), 4096);
  ASSERT_EQ(link.far.post_recv(1, {{0, 8}}), 0);
  ASSERT_EQ(link.far.post_recv(2, {{0, 8}}), 0);
  const Counts before = read_ports();
  ASSERT_EQ(SendWr(1, IBV_WR_SEND, {link.memory.sge(0, 9)}).post(link.near.qp()), 0);
  expect_status(link.far.wait_recv(), 1, IBV_WC_LOC_LEN_ERR);
  expect_status(wait_completion(link.near.send_cq()), 1, IBV_WC_REM_INV_REQ_ERR);
  expect_status(link.far.wait_recv(), 2, IBV_WC_WR_FLUSH_ERR);
  const Counts grown = grown_since(before);
  EXPECT_EQ(at(grown, "resp_local_length_error"), 1U);
  EXPECT_EQ(at(grown, "resp_cqe_error"), 1U);
  EXPECT_EQ(at(grown, "resp_cqe_flush_error"), 1U);
  EXPECT_EQ(at(grown, "req_remote_invalid_request"), 1U);
}

TEST(WireAndMemoryDeaths, a_peer_that_is_killed) {
  PeerProcess process;
  QpOptions options;
  options.retry_cnt = 1;
  Link link(process, options, 4096);
  ASSERT_EQ(link.far.post_recv(1, {{0, 8}}), 0);
  process.kill();
  link.far.abandon();
  const Counts before = read_ports();
  ASSERT_EQ(SendWr(1, IBV_WR_SEND, {link.memory.sge(0, 8)}).post(link.near.qp()), 0);
  ASSERT_EQ(SendWr(2, IBV_WR_SEND, {link.memory.sge(0, 8)}).post(link.near.qp()), 0);
  expect_status(wait_completion(link.near.send_cq()), 1, IBV_WC_RETRY_EXC_ERR);
  expect_status(wait_completion(link.near.send_cq()), 2, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(at(grown_since(before), "retry_exceeded_err"), 1U);
}

}  // namespace
}  // namespace ringbolt::counters
