// Asynchronous events: which, about what, and how they are fetched.
#include <poll.h>

#include <atomic>
#include <thread>

#include "deadline.h"
#include "far.h"

namespace ringbolt::conformance {
namespace {

class AsyncTest : public testing::TestWithParam<Placement> {};
INSTANTIATE_TEST_SUITE_P(All, AsyncTest, testing::ValuesIn(kPlacements), parameter_name);

TEST(Async, quiet_device_has_no_events) {
  const Device device = open_device();
  set_nonblocking(device.context->async_fd);
  ibv_async_event event{};
  EXPECT_EQ(ibv_get_async_event(device.context.get(), &event), -1);
  EXPECT_EQ(errno, EAGAIN);
}

TEST_P(AsyncTest, access_violation_is_reported_at_the_target_only) {
  Link link(GetParam(), {}, 4096);
  SendWr wr(1, IBV_WR_RDMA_WRITE, {link.memory.sge(0, 8)});
  ASSERT_EQ(wr.remote(link.far.region_address(), 0x1234).post(link.near.qp()), 0);
  expect_status(wait_completion(link.near.send_cq()), 1, IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(link.far.wait_event(), IBV_EVENT_QP_ACCESS_ERR);
  // A requester hears of its own work's failure by its completion alone.
  EXPECT_TRUE(has_no_async_event(link.device));
}

TEST_P(AsyncTest, misaligned_atomic_is_reported_at_the_target) {
  Link link(GetParam(), {}, 4096);
  SendWr wr(1, IBV_WR_ATOMIC_FETCH_AND_ADD, {link.memory.sge(0, 8)});
  wr.atomic(link.far.region_address(1), link.far.rkey(), 1);
  ASSERT_EQ(wr.post(link.near.qp()), 0);
  expect_status(wait_completion(link.near.send_cq()), 1, IBV_WC_REM_INV_REQ_ERR);
  EXPECT_EQ(link.far.wait_event(), IBV_EVENT_QP_REQ_ERR);
}

TEST(Async, event_names_its_queue_pair) {
  const Device device = open_device();
  Endpoint a(device, {}), b(device, {});
  Region memory(a.pd(), 64);
  connect(a, b);
  SendWr wr(1, IBV_WR_RDMA_WRITE, {memory.sge(0, 8)});
  ASSERT_EQ(wr.remote(memory.address(), 0x1234).post(a.qp()), 0);
  const ibv_async_event event = wait_async_event(device);
  EXPECT_EQ(event.event_type, IBV_EVENT_QP_ACCESS_ERR);
  EXPECT_EQ(event.element.qp, b.qp());
}

TEST(Async, first_message_before_rts_establishes_communication) {
  const Device device = open_device();
  Endpoint a(device, {}), b(device, {});
  Region from(a.pd(), 64), to(b.pd(), 64);
  must_succeed(b.to_init(), "RESET -> INIT");
  must_succeed(b.to_rtr(a.address()), "INIT -> RTR");
  a.connect(b.address());
  ASSERT_EQ(post_recv(b.qp(), 1, {to.sge(0, 8)}), 0);
  ASSERT_EQ(SendWr(2, IBV_WR_SEND, {from.sge(0, 8)}).post(a.qp()), 0);
  expect_success(wait_completion(a.send_cq()), 2, IBV_WC_SEND);
  expect_success(wait_completion(b.recv_cq()), 1, IBV_WC_RECV);
  const ibv_async_event event = wait_async_event(device);
  EXPECT_EQ(event.event_type, IBV_EVENT_COMM_EST);
  EXPECT_EQ(event.element.qp, b.qp());
}

TEST(Async, destroying_a_queue_pair_waits_for_its_acknowledgement) {
  const Device device = open_device();
  Endpoint a(device, {});
  auto b = std::make_unique<Endpoint>(device, QpOptions{});
  Region memory(a.pd(), 64);
  connect(a, *b);
  SendWr wr(1, IBV_WR_RDMA_WRITE, {memory.sge(0, 8)});
  ASSERT_EQ(wr.remote(memory.address(), 0x1234).post(a.qp()), 0);
  pollfd entry{device.context->async_fd, POLLIN, 0};
  ASSERT_EQ(poll(&entry, 1, Deadline().remaining_ms()), 1);
  ibv_async_event event{};
  ASSERT_EQ(ibv_get_async_event(device.context.get(), &event), 0);
  std::atomic<bool> is_acknowledged = false;
  bool was_acknowledged_first = false;
  std::thread destroyer([&] {
    b->destroy_qp();
    was_acknowledged_first = is_acknowledged;
  });
  for (int i = 0; i < 20; ++i) {  // each may cost milliseconds where cores are busy
    std::this_thread::yield();
  }
  is_acknowledged = true;
  ibv_ack_async_event(&event);
  destroyer.join();
  EXPECT_TRUE(was_acknowledged_first);
}

TEST(Async, unfetched_event_does_not_outlive_its_queue_pair) {
  const Device device = open_device();
  set_nonblocking(device.context->async_fd);
  {
    Endpoint a(device, {}), b(device, {});
    Region memory(a.pd(), 64);
    connect(a, b);
    SendWr wr(1, IBV_WR_RDMA_WRITE, {memory.sge(0, 8)});
    ASSERT_EQ(wr.remote(memory.address(), 0x1234).post(a.qp()), 0);
    expect_status(wait_completion(a.send_cq()), 1, IBV_WC_REM_ACCESS_ERR);
  }
  EXPECT_TRUE(has_no_async_event(device));
  ibv_async_event event{};
  EXPECT_EQ(ibv_get_async_event(device.context.get(), &event), -1);
  EXPECT_EQ(errno, EAGAIN);
}

// Who reads the event asks the queue pair for its state next. The moment between the two is short: this catches a wrong
// order only now and then.
TEST(Async, queue_pair_is_in_error_before_its_event_is_there) {
  const Device device = open_device();
  for (int round = 0; round < 50; ++round) {
    Endpoint a(device, {}), b(device, {});
    Region memory(a.pd(), 64);
    connect(a, b);
    ibv_qp_state state = IBV_QPS_UNKNOWN;
    std::thread listener([&] {
      static_cast<void>(is_readable(device.context->async_fd, Deadline().remaining_ms()));
      state = b.state();
    });
    SendWr wr(1, IBV_WR_RDMA_WRITE, {memory.sge(0, 8)});
    EXPECT_EQ(wr.remote(memory.address(), 0x1234).post(a.qp()), 0);
    listener.join();
    EXPECT_EQ(wait_async_event(device).event_type, IBV_EVENT_QP_ACCESS_ERR);
    ASSERT_EQ(state, IBV_QPS_ERR) << "round " << round;
  }
}

TEST(Async, events_have_names) {
  EXPECT_NE(ibv_event_type_str(IBV_EVENT_QP_FATAL), nullptr);
  EXPECT_STRNE(ibv_event_type_str(IBV_EVENT_QP_FATAL), ibv_event_type_str(IBV_EVENT_CQ_ERR));
  EXPECT_STREQ(ibv_event_type_str(static_cast<ibv_event_type>(31)), "unknown");
}

}  // namespace
}  // namespace ringbolt::conformance
