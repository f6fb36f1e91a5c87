// Receiver not ready: how often and how long a reliable sender asks again.
// InfiniBand specification, volume 1, section 9.7.5.2.8 and table 45 (timer codes).
#include <chrono>

#include "far.h"

namespace ringbolt::conformance {
namespace {

using std::chrono::steady_clock;

constexpr uint8_t kTimer20ms = 22;  // 20.48 ms

class RnrTest : public testing::TestWithParam<Placement> {
 protected:
  static QpOptions options(uint8_t retries, uint8_t timer) {
    QpOptions chosen;
    chosen.rnr_retry = retries;
    chosen.min_rnr_timer = timer;
    return chosen;
  }
};
INSTANTIATE_TEST_SUITE_P(All, RnrTest, testing::ValuesIn(kPlacements), parameter_name);

TEST_P(RnrTest, without_retries_the_first_refusal_ends_it) {
  for (const ibv_wr_opcode opcode : {IBV_WR_SEND, IBV_WR_RDMA_WRITE_WITH_IMM}) {
    Link link(GetParam(), options(0, kTimer20ms), 4096);
    SendWr first(1, opcode, {link.memory.sge(0, 8)});
    ASSERT_EQ(first.remote(link.far.region_address(), link.far.rkey()).post(link.near.qp()), 0);
    expect_status(wait_completion(link.near.send_cq()), 1, IBV_WC_RNR_RETRY_EXC_ERR);
    ASSERT_EQ(SendWr(2, IBV_WR_SEND, {link.memory.sge(0, 8)}).post(link.near.qp()), 0);
    expect_status(wait_completion(link.near.send_cq()), 2, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(link.near.state(), IBV_QPS_ERR);
    // The responder has done nothing wrong and stays as it is.
    EXPECT_EQ(link.far.state(), IBV_QPS_RTS);
  }
}

TEST_P(RnrTest, two_retries_wait_two_timers_at_least) {
  Link link(GetParam(), options(2, kTimer20ms), 4096);
  const auto start = steady_clock::now();
  ASSERT_EQ(SendWr(1, IBV_WR_SEND, {link.memory.sge(0, 8)}).post(link.near.qp()), 0);
  expect_status(wait_completion(link.near.send_cq()), 1, IBV_WC_RNR_RETRY_EXC_ERR);
  // A lower bound holds on the slowest machine; how much longer it takes is not judged.
  EXPECT_GE(steady_clock::now() - start, std::chrono::microseconds(2 * 20480));
}

TEST_P(RnrTest, seven_means_for_ever) {
  Link link(GetParam(), options(7, 1), 4096);  // 0.01 ms: many refusals while we watch
  ASSERT_EQ(SendWr(1, IBV_WR_SEND, {link.memory.sge(0, 8)}).post(link.near.qp()), 0);
  const auto until = steady_clock::now() + std::chrono::milliseconds(50);
  while (steady_clock::now() < until) {
    ASSERT_TRUE(is_empty(link.near.send_cq()));
  }
  ASSERT_EQ(link.far.post_recv(2, {{0, 8}}), 0);
  expect_success(wait_completion(link.near.send_cq()), 1, IBV_WC_SEND);
  expect_success(link.far.wait_recv(), 2, IBV_WC_RECV);
}

TEST_P(RnrTest, receive_posted_in_time_saves_the_send) {
  Link link(GetParam(), options(6, 31), 4096);  // 6 x 491.52 ms
  ASSERT_EQ(SendWr(1, IBV_WR_SEND, {link.memory.sge(0, 8)}).post(link.near.qp()), 0);
  EXPECT_TRUE(is_empty(link.near.send_cq()));
  ASSERT_EQ(link.far.post_recv(2, {{0, 8}}), 0);
  expect_success(wait_completion(link.near.send_cq()), 1, IBV_WC_SEND);
  expect_success(link.far.wait_recv(), 2, IBV_WC_RECV);
  EXPECT_EQ(link.near.state(), IBV_QPS_RTS);
}

TEST_P(RnrTest, one_sided_operations_need_no_receive) {
  Link link(GetParam(), options(0, 1), 4096);
  SendWr write(1, IBV_WR_RDMA_WRITE, {link.memory.sge(0, 8)});
  ASSERT_EQ(write.remote(link.far.region_address(), link.far.rkey()).post(link.near.qp()), 0);
  expect_success(wait_completion(link.near.send_cq()), 1, IBV_WC_RDMA_WRITE);
}

// The device promises more than the specification here: unreliable connections lose nothing.
TEST_P(RnrTest, unreliable_send_waits_for_its_receive) {
  QpOptions unreliable;
  unreliable.type = IBV_QPT_UC;
  Link link(GetParam(), unreliable, 4096);
  for (uint64_t i = 0; i < 20; ++i) {
    link.memory.fill(std::vector<Piece>{{i * 64, 64}}, i);
    ASSERT_EQ(SendWr(i, IBV_WR_SEND, {link.memory.sge(i * 64, 64)}).post(link.near.qp()), 0);
  }
  for (uint64_t i = 0; i < 20; ++i) {
    link.far.clear();
    ASSERT_EQ(link.far.post_recv(i, {{0, 64}}), 0);
    expect_success(link.far.wait_recv(), i, IBV_WC_RECV);
    EXPECT_EQ(link.far.check({{0, 64}}, 64, i), "");
    expect_success(wait_completion(link.near.send_cq()), i, IBV_WC_SEND);
  }
}

}  // namespace
}  // namespace ringbolt::conformance
