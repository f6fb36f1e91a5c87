// Peers that die, stop, leave or turn away: the survivor gets its error in the time that its own
// settings imply.
#include <signal.h>

#include <chrono>
#include <thread>
#include <utility>

#include "deadline.h"
#include "far.h"

namespace ringbolt::conformance {
namespace {

using std::chrono::steady_clock;

/// 4.096 us x 2^8 x 4 tries is about 4 ms; a device may wait longer before it gives up.
QpOptions impatient() {
  QpOptions options;
  options.timeout = 8;
  options.retry_cnt = 3;
  return options;
}

void expect_dead(Endpoint& near, size_t outstanding) {
  const std::vector<ibv_wc> done = wait_completions(near.send_cq(), outstanding);
  expect_status(done[0], 0, IBV_WC_RETRY_EXC_ERR);
  EXPECT_EQ(done[0].vendor_err, 0x81U);  // what adapters say there, and people search for
  for (uint64_t i = 1; i < outstanding; ++i) {
    expect_status(done[i], i, IBV_WC_WR_FLUSH_ERR);
  }
  EXPECT_TRUE(wait_until([&] { return near.state() == IBV_QPS_ERR; }));
}

class DeathTest : public testing::TestWithParam<ibv_wr_opcode> {
 protected:
  void post(Link& link, uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) {
      SendWr wr(i, GetParam(), {link.memory.sge(0, 64)});
      wr.remote(link.far.region_address(), link.far.rkey());
      ASSERT_EQ(wr.post(link.near.qp()), 0);
    }
  }
};
INSTANTIATE_TEST_SUITE_P(All, DeathTest,
                         testing::Values(IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
                                         IBV_WR_SEND_WITH_IMM));

TEST_P(DeathTest, killed_peer_ends_what_is_posted_afterwards) {
  PeerProcess peer;
  Link link(peer, impatient(), 4096);
  peer.kill();
  link.far.abandon();
  post(link, 8);
  expect_dead(link.near, 8);
}

TEST_P(DeathTest, peer_that_left_in_order_ends_what_is_posted_afterwards) {
  PeerProcess peer;
  Link link(peer, impatient(), 4096);
  link.far.close();
  peer.finish();
  post(link, 8);
  expect_dead(link.near, 8);
}

TEST_P(DeathTest, destroyed_peer_ends_what_is_posted_afterwards) {
  for (const Placement placement : kPlacements) {
    SCOPED_TRACE(placement_name(placement));
    Link link(placement, impatient(), 4096);
    link.far.destroy_qp();
    post(link, 8);
    expect_dead(link.near, 8);
  }
}

TEST_P(DeathTest, broken_peer_ends_what_is_posted_afterwards) {
  for (const Placement placement : kPlacements) {
    for (const ibv_qp_state state : {IBV_QPS_ERR, IBV_QPS_RESET}) {
      SCOPED_TRACE(std::string(placement_name(placement)) + " state " + std::to_string(state));
      Link link(placement, impatient(), 4096);
      ASSERT_EQ(link.far.modify(state), 0);
      post(link, 8);
      expect_dead(link.near, 8);
    }
  }
}

// A card hears nothing of an exit. Programs whose peers leave first look at their last completions meanwhile.
TEST(Death, peer_that_left_in_order_is_given_its_time) {
  PeerProcess peer;
  QpOptions options;
  options.timeout = 16;  // 268 ms
  options.retry_cnt = 3;
  Link link(peer, options, 4096);
  link.far.close();
  peer.finish();
  const auto start = steady_clock::now();
  ASSERT_EQ(SendWr(0, IBV_WR_SEND, {link.memory.sge(0, 64)}).post(link.near.qp()), 0);
  expect_dead(link.near, 1);
  EXPECT_GE(steady_clock::now() - start, std::chrono::microseconds(4 * 268435));
}

TEST(Death, program_that_sleeps_is_told_that_its_peer_left) {
  const Device device = open_device();
  const Channel channel = make_channel(device);
  const Cq cq = make_cq(device, 16, channel.get());
  PeerProcess peer;
  Endpoint near(device, impatient(), {nullptr, cq.get(), nullptr, nullptr});
  Region memory(near.pd(), 64);
  Far far(peer);
  far.open(impatient(), 64);
  near.connect(far.address());
  far.connect(near.address());
  ASSERT_EQ(SendWr(0, IBV_WR_SEND, {memory.sge(0, 64)}).post(near.qp()), 0);
  ASSERT_EQ(ibv_req_notify_cq(cq.get(), 0), 0);
  far.close();
  peer.finish();
  ASSERT_TRUE(is_readable(channel->fd, Deadline().remaining_ms())) << "no event came";
  ibv_cq* from = nullptr;
  void* context = nullptr;
  ASSERT_EQ(ibv_get_cq_event(channel.get(), &from, &context), 0);
  ibv_ack_cq_events(from, 1);
  expect_dead(near, 1);
}

TEST(Death, killed_peer_ends_sends_that_wait_for_a_receive) {
  PeerProcess peer;
  Link link(peer, impatient(), 4096);
  for (uint64_t i = 0; i < 8; ++i) {
    ASSERT_EQ(SendWr(i, IBV_WR_SEND, {link.memory.sge(0, 64)}).post(link.near.qp()), 0);
    ASSERT_EQ(post_recv(link.near.qp(), 100 + i, {link.memory.sge(64, 64)}), 0);
  }
  peer.kill();
  link.far.abandon();
  expect_dead(link.near, 8);
  for (uint64_t i = 0; i < 8; ++i) {
    expect_status(wait_completion(link.near.recv_cq()), 100 + i, IBV_WC_WR_FLUSH_ERR);
  }
}

TEST(Death, killed_peer_ends_large_messages_under_way) {
  constexpr uint32_t kSize = 16 << 20;
  PeerProcess peer;
  Link link(peer, impatient(), kSize);
  for (uint64_t i = 0; i < 8; ++i) {
    ASSERT_EQ(link.far.post_recv(i, {{0, kSize}}), 0);
  }
  for (uint64_t i = 0; i < 8; ++i) {
    ASSERT_EQ(SendWr(i, IBV_WR_SEND, {link.memory.sge(0, kSize)}).post(link.near.qp()), 0);
  }
  peer.kill();
  link.far.abandon();
  const std::vector<ibv_wc> done = wait_completions(link.near.send_cq(), 8);
  // Some may have arrived in full; from the first failure on, nothing succeeds.
  size_t failed = 0;
  while (failed < 8 && done[failed].status == IBV_WC_SUCCESS) {
    ++failed;
  }
  for (size_t i = failed; i < 8; ++i) {
    expect_status(done[i], i, i == failed ? IBV_WC_RETRY_EXC_ERR : IBV_WC_WR_FLUSH_ERR);
  }
}

TEST(Death, killed_peer_of_an_unreliable_connection_leaves_no_send_behind) {
  QpOptions options;
  options.type = IBV_QPT_UC;
  PeerProcess peer;
  Link link(peer, options, 4096);
  for (uint64_t i = 0; i < 8; ++i) {
    ASSERT_EQ(SendWr(i, IBV_WR_SEND, {link.memory.sge(0, 64)}).post(link.near.qp()), 0);
  }
  peer.kill();
  link.far.abandon();
  // The specification lets them succeed: an unreliable sender learns nothing. Ours may report.
  const std::vector<ibv_wc> done = wait_completions(link.near.send_cq(), 8);
  for (uint64_t i = 0; i < 8; ++i) {
    EXPECT_EQ(done[i].wr_id, i);
  }
}

// A card tells of an arrival at once, and of a peer's end only when its retries are used up. Programs that leave when
// all has arrived (ibv_srq_pingpong) have polled all of that before their peers' ends reach them.
TEST(Death, what_arrived_before_a_peer_died_is_told_first) {
  const Device device = open_device();
  const Pd pd = make_pd(device);
  const Cq cq = make_cq(device, 64);
  PeerProcess mortal, other;
  Far dying(mortal), living(other);
  Region memory(pd.get(), 64);
  Endpoint to_dying(device, impatient(), {pd.get(), cq.get(), nullptr, nullptr});
  Endpoint to_living(device, {}, {pd.get(), cq.get(), nullptr, nullptr});
  dying.open(impatient(), 64);
  living.open({}, 64);
  for (auto [near, far] : {std::pair(&to_dying, &dying), std::pair(&to_living, &living)}) {
    near->connect(far->address());
    far->connect(near->address());
  }
  for (const auto& [wr_id, opcode] : {std::pair(1, IBV_WR_SEND), std::pair(2, IBV_WR_RDMA_WRITE_WITH_IMM)}) {
    ASSERT_EQ(living.post_recv(static_cast<uint64_t>(wr_id), {{0, 64}}), 0);
    SendWr wr(static_cast<uint64_t>(wr_id), opcode, {memory.sge(0, 64)});
    wr.remote(living.region_address(), living.rkey());
    ASSERT_EQ(wr.post(to_living.qp()), 0);
    EXPECT_EQ(living.wait_recv().status, IBV_WC_SUCCESS);
  }
  ASSERT_EQ(SendWr(3, IBV_WR_SEND, {memory.sge(0, 64)}).post(to_dying.qp()), 0);
  mortal.kill();
  dying.abandon();
  // The queue of its receives tells us of the death; the one of all sends has not been looked at yet.
  ASSERT_TRUE(wait_until([&] { return is_empty(to_dying.recv_cq()) && to_dying.state() == IBV_QPS_ERR; }));
  expect_success(wait_completion(cq.get()), 1, IBV_WC_SEND);
  expect_success(wait_completion(cq.get()), 2, IBV_WC_RDMA_WRITE);
  expect_status(wait_completion(cq.get()), 3, IBV_WC_RETRY_EXC_ERR);
}

// As on a card: an event would not say which peer it was, and programs look at events first.
TEST(Death, killed_peer_is_told_of_by_the_work_requests_alone) {
  PeerProcess peer;
  Link link(peer, impatient(), 4096);
  ASSERT_EQ(SendWr(0, IBV_WR_SEND, {link.memory.sge(0, 64)}).post(link.near.qp()), 0);
  peer.kill();
  link.far.abandon();
  expect_dead(link.near, 1);
  EXPECT_TRUE(has_no_async_event(link.device));
}

TEST(Death, killed_peer_is_announced_after_the_work_requests_where_a_knob_says_so) {
  setenv("RINGBOLT_LIKE", "roce,peer-death=then-fatal", 1);
  PeerProcess peer;
  Link link(peer, impatient(), 4096);
  unsetenv("RINGBOLT_LIKE");
  ASSERT_EQ(SendWr(0, IBV_WR_SEND, {link.memory.sge(0, 64)}).post(link.near.qp()), 0);
  ASSERT_EQ(post_recv(link.near.qp(), 100, {link.memory.sge(64, 64)}), 0);
  peer.kill();
  link.far.abandon();
  expect_dead(link.near, 1);
  expect_status(wait_completion(link.near.recv_cq()), 100, IBV_WC_WR_FLUSH_ERR);
  const ibv_async_event event = wait_async_event(link.device);
  EXPECT_EQ(event.event_type, IBV_EVENT_QP_FATAL);
  EXPECT_EQ(event.element.qp, link.near.qp());
}

TEST(Death, stopped_peer_ends_sends_when_the_retries_are_used_up) {
  PeerProcess peer;
  QpOptions options;
  options.timeout = 14;  // 67 ms
  options.retry_cnt = 1;
  Link link(peer, options, 4096);
  ASSERT_EQ(link.far.post_recv(1, {{0, 64}}), 0);
  peer.signal(SIGSTOP);
  const auto start = steady_clock::now();
  // One more than the posted receive, so that the peer's own processor is needed.
  for (uint64_t i = 0; i < 2; ++i) {
    ASSERT_EQ(SendWr(i, IBV_WR_SEND, {link.memory.sge(0, 64)}).post(link.near.qp()), 0);
  }
  const std::vector<ibv_wc> done = wait_completions(link.near.send_cq(), 2);
  EXPECT_TRUE(done[1].status == IBV_WC_RETRY_EXC_ERR || done[1].status == IBV_WC_WR_FLUSH_ERR)
      << describe(done[1]);
  EXPECT_GE(steady_clock::now() - start, std::chrono::microseconds(2 * 67108));
  peer.signal(SIGCONT);
}

TEST(Death, stopped_peer_that_goes_on_in_time_costs_nothing) {
  PeerProcess peer;
  QpOptions options;
  options.timeout = 20;  // 4.3 s a try
  options.retry_cnt = 7;
  Link link(peer, options, 4096);
  ASSERT_EQ(link.far.post_recv(1, {{0, 64}}), 0);
  peer.signal(SIGSTOP);
  link.memory.fill(std::vector<Piece>{{0, 64}}, 1);
  ASSERT_EQ(SendWr(1, IBV_WR_SEND, {link.memory.sge(0, 64)}).post(link.near.qp()), 0);
  is_empty(link.near.recv_cq());
  peer.signal(SIGCONT);
  expect_success(wait_completion(link.near.send_cq()), 1, IBV_WC_SEND);
  expect_success(link.far.wait_recv(), 1, IBV_WC_RECV);
  EXPECT_EQ(link.far.check({{0, 64}}, 64, 1), "");
}

TEST(Death, peer_that_is_off_its_core_for_a_moment_is_not_dead) {
  PeerProcess peer;
  Link link(peer, impatient(), 4096);
  ASSERT_EQ(link.far.post_recv(1, {{0, 64}}), 0);
  peer.signal(SIGSTOP);
  const auto start = steady_clock::now();
  ASSERT_EQ(SendWr(1, IBV_WR_SEND, {link.memory.sge(0, 64)}).post(link.near.qp()), 0);
  ibv_wc wc{};
  int done = 0;
  while (done == 0 && steady_clock::now() - start < std::chrono::milliseconds(100)) {
    done = ibv_poll_cq(link.near.send_cq(), 1, &wc);
  }
  peer.signal(SIGCONT);
  expect_success(done == 0 ? wait_completion(link.near.send_cq()) : wc, 1, IBV_WC_SEND);
}

TEST(Death, program_that_does_not_poll_for_long_finds_its_peer_alive) {
  for (const Placement placement : kPlacements) {
    SCOPED_TRACE(placement_name(placement));
    Link link(placement, impatient(), 4096);
    // The peer does not poll: somebody has to ring its service thread, and that is who polls here.
    ASSERT_EQ(link.far.post_recv(1, {{0, 64}}), 0);
    ASSERT_EQ(SendWr(1, IBV_WR_SEND, {link.memory.sge(0, 64)}).post(link.near.qp()), 0);
    ibv_wc wc{};
    int done = 0;
    // Until the timers have been looked at for the first time, but not until the first ring.
    for (int polls = 0; polls < 66 && done == 0; ++polls) {
      done = ibv_poll_cq(link.near.send_cq(), 1, &wc);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2500));  // longer than any patience with such settings
    expect_success(done == 0 ? wait_completion(link.near.send_cq()) : wc, 1, IBV_WC_SEND);
    expect_success(link.far.wait_recv(), 1, IBV_WC_RECV);
  }
}

TEST(Death, peer_that_connects_late_is_waited_for) {
  PeerProcess peer;
  const Device device = open_device();
  QpOptions options = impatient();
  options.timeout = 16;  // with its retries 1.1 s, of which a peer that runs gets four times as much
  Endpoint near(device, options);
  Region memory(near.pd(), 64);
  Far far(peer);
  far.open(options, 64);
  near.connect(far.address());
  const auto start = steady_clock::now();
  ASSERT_EQ(SendWr(1, IBV_WR_SEND, {memory.sge(0, 64)}).post(near.qp()), 0);
  // Longer than the shortest time after which a dead peer is given up.
  while (steady_clock::now() - start < std::chrono::milliseconds(1300)) {
    ASSERT_TRUE(is_empty(near.send_cq()));
  }
  far.connect(near.address());
  ASSERT_EQ(far.post_recv(1, {{0, 64}}), 0);
  expect_success(wait_completion(near.send_cq()), 1, IBV_WC_SEND);
  expect_success(far.wait_recv(), 1, IBV_WC_RECV);
}

TEST(Death, next_peer_works_after_a_killed_one) {
  for (int round = 0; round < 3; ++round) {
    PeerProcess peer;
    Link link(peer, impatient(), 4096);
    ASSERT_EQ(link.far.post_recv(1, {{0, 64}}), 0);
    ASSERT_EQ(SendWr(1, IBV_WR_SEND, {link.memory.sge(0, 64)}).post(link.near.qp()), 0);
    expect_success(wait_completion(link.near.send_cq()), 1, IBV_WC_SEND);
    peer.kill();
    link.far.abandon();
  }
}

TEST(Death, connecting_to_a_dead_peer_fails_at_once_or_at_the_first_send) {
  const Device device = open_device();
  Endpoint near(device, impatient());
  Region memory(near.pd(), 64);
  QpAddress address;
  {
    PeerProcess peer;
    Far far(peer);
    far.open({}, 64);
    address = far.address();
    peer.kill();
    far.abandon();
  }
  ASSERT_EQ(near.to_init(), 0);
  if (near.to_rtr(address) != 0) {
    EXPECT_EQ(near.state(), IBV_QPS_INIT);
    return;
  }
  ASSERT_EQ(near.to_rts(), 0);
  ASSERT_EQ(SendWr(0, IBV_WR_SEND, {memory.sge(0, 8)}).post(near.qp()), 0);
  expect_dead(near, 1);
}

// A packet of a connection that is gone must not be taken for one of the next.
TEST(Death, queue_pair_connected_to_someone_else_answers_nobody_else) {
  const Device device = open_device();
  Endpoint a(device, impatient()), b(device, {}), c(device, {});
  Region memory(a.pd(), 64), target(b.pd(), 64);
  a.connect(b.address());
  b.connect(c.address());
  c.connect(b.address());
  ASSERT_EQ(post_recv(b.qp(), 1, {target.sge(0, 64)}), 0);
  ASSERT_EQ(SendWr(0, IBV_WR_SEND, {memory.sge(0, 8)}).post(a.qp()), 0);
  expect_dead(a, 1);
  EXPECT_TRUE(is_empty(b.recv_cq()));
  EXPECT_EQ(target.check({}, 0, 0), "");
  EXPECT_EQ(b.state(), IBV_QPS_RTS);
}

}  // namespace
}  // namespace ringbolt::conformance
