// Completion channels: armed once, readable by poll and epoll, silent unless asked.
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "deadline.h"
#include "far.h"

namespace ringbolt::conformance {
namespace {

constexpr uint32_t kLarge = 1 << 20;

/// A link whose near queues report to a non-blocking channel each.
class ChannelTest : public testing::TestWithParam<Placement> {
 protected:
  ChannelTest()
      : device(open_device()),
        channel(make_channel(device)),
        send_channel(make_channel(device)),
        cq(make_cq(device, 256, channel.get(), &mark)),
        send_cq(make_cq(device, 256, send_channel.get(), &mark)),
        near(device, {}, {nullptr, send_cq.get(), cq.get(), nullptr}),
        memory(near.pd(), kLarge),
        far(GetParam()) {
    far.open({}, kLarge);
    near.connect(far.address());
    far.connect(near.address());
    set_nonblocking(channel->fd);
    set_nonblocking(send_channel->fd);
  }

  /// Lets the far side send 8 bytes and waits until it knows that they have arrived.
  void receive_one(unsigned flags = IBV_SEND_SIGNALED) {
    ASSERT_EQ(post_recv(near.qp(), 1, {memory.sge(0, 64)}), 0);
    ASSERT_EQ(far.post_send(2, IBV_WR_SEND, {{0, 8}}, flags | IBV_SEND_SIGNALED), 0);
    expect_success(far.wait_send(), 2, IBV_WC_SEND);
  }

  void expect_no_event() {
    ibv_cq* from = nullptr;
    void* context = nullptr;
    EXPECT_EQ(ibv_get_cq_event(channel.get(), &from, &context), -1);
    EXPECT_EQ(errno, EAGAIN);
  }

  void expect_event() { expect_event(channel.get(), cq.get()); }

  void expect_event(ibv_comp_channel* on, ibv_cq* of) {
    pollfd entry{on->fd, POLLIN, 0};
    ASSERT_EQ(poll(&entry, 1, Deadline().remaining_ms()), 1) << "no completion event came";
    ibv_cq* from = nullptr;
    void* context = nullptr;
    ASSERT_EQ(ibv_get_cq_event(on, &from, &context), 0);
    EXPECT_EQ(from, of);
    EXPECT_EQ(context, &mark);
    ibv_ack_cq_events(of, 1);
  }

  int mark = 0;
  Device device;
  Channel channel;
  Channel send_channel;
  Cq cq;
  Cq send_cq;
  Endpoint near;
  Region memory;
  Far far;
};
INSTANTIATE_TEST_SUITE_P(All, ChannelTest, testing::ValuesIn(kPlacements), parameter_name);

TEST_P(ChannelTest, unarmed_queue_is_silent) {
  receive_one();
  wait_completion(cq.get());
  expect_no_event();
}

TEST_P(ChannelTest, armed_queue_reports_once) {
  ASSERT_EQ(ibv_req_notify_cq(cq.get(), 0), 0);
  receive_one();
  expect_event();
  expect_success(wait_completion(cq.get()), 1, IBV_WC_RECV);
  receive_one();
  wait_completion(cq.get());
  expect_no_event();
}

TEST_P(ChannelTest, every_arming_gives_an_event) {
  for (int i = 0; i < 50; ++i) {
    SCOPED_TRACE(i);
    ASSERT_EQ(ibv_req_notify_cq(cq.get(), 0), 0);
    ASSERT_TRUE(is_empty(cq.get()));
    receive_one();
    expect_event();
    wait_completion(cq.get());
  }
  expect_no_event();
}

TEST_P(ChannelTest, event_comes_while_nobody_polls) {
  // The sender's completion is not waited for: the event alone must wake this side.
  ASSERT_EQ(ibv_req_notify_cq(cq.get(), 0), 0);
  ASSERT_EQ(post_recv(near.qp(), 1, {memory.sge(0, 64)}), 0);
  ASSERT_EQ(far.post_send(2, IBV_WR_SEND, {{0, 8}}), 0);
  expect_event();
  expect_success(wait_completion(cq.get()), 1, IBV_WC_RECV);
}

TEST_P(ChannelTest, event_comes_for_a_large_message_while_nobody_polls) {
  far.fill({{0, kLarge}}, 6);
  ASSERT_EQ(ibv_req_notify_cq(cq.get(), 0), 0);
  ASSERT_EQ(post_recv(near.qp(), 1, {memory.sge(0, kLarge)}), 0);
  ASSERT_EQ(far.post_send(2, IBV_WR_SEND, {{0, kLarge}}), 0);
  expect_event();
  expect_success(wait_completion(cq.get()), 1, IBV_WC_RECV);
  EXPECT_EQ(memory.check(std::vector<Piece>{{0, kLarge}}, kLarge, 6), "");
}

TEST_P(ChannelTest, solicited_arming_ignores_plain_messages) {
  ASSERT_EQ(ibv_req_notify_cq(cq.get(), 1), 0);
  receive_one();
  wait_completion(cq.get());
  expect_no_event();
  receive_one(IBV_SEND_SOLICITED);
  expect_event();
  expect_success(wait_completion(cq.get()), 1, IBV_WC_RECV);
}

TEST_P(ChannelTest, solicited_message_behind_many_plain_ones_is_reported) {
  // All of them are there before the queue is armed: nobody rings for them again.
  constexpr uint32_t kMessages = 200;
  QpOptions many;
  many.send_wr = many.recv_wr = kMessages;
  Endpoint deep(device, many, {near.pd(), send_cq.get(), cq.get(), nullptr});
  Far sender(GetParam());
  sender.open(many, 4096);
  deep.connect(sender.address());
  sender.connect(deep.address());
  for (uint32_t i = 0; i < kMessages; ++i) {
    ASSERT_EQ(post_recv(deep.qp(), i, {memory.sge(0, 64)}), 0);
  }
  for (uint32_t i = 0; i < kMessages; ++i) {
    ASSERT_EQ(sender.post_send(i, IBV_WR_SEND, {{0, 8}}, i + 1 == kMessages ? unsigned{IBV_SEND_SOLICITED} : 0U), 0);
  }
  ASSERT_EQ(ibv_req_notify_cq(cq.get(), 1), 0);
  expect_event();
  for (uint32_t i = 0; i < kMessages; ++i) {
    expect_success(wait_completion(cq.get()), i, IBV_WC_RECV);
  }
}

TEST_P(ChannelTest, plain_arming_covers_solicited_messages) {
  ASSERT_EQ(ibv_req_notify_cq(cq.get(), 0), 0);
  receive_one(IBV_SEND_SOLICITED);
  expect_event();
}

TEST_P(ChannelTest, solicited_arming_reports_errors) {
  ASSERT_EQ(post_recv(near.qp(), 1, {memory.sge(0, 64)}), 0);
  ASSERT_EQ(ibv_req_notify_cq(cq.get(), 1), 0);
  ASSERT_EQ(near.to_state(IBV_QPS_ERR), 0);
  expect_event();
  expect_status(wait_completion(cq.get()), 1, IBV_WC_WR_FLUSH_ERR);
}

TEST_P(ChannelTest, edge_triggered_epoll_sees_every_event) {
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  ASSERT_GE(epoll, 0);
  epoll_event interest{};
  interest.events = EPOLLIN | EPOLLET;
  ASSERT_EQ(epoll_ctl(epoll, EPOLL_CTL_ADD, channel->fd, &interest), 0);
  for (int i = 0; i < 20; ++i) {
    SCOPED_TRACE(i);
    ASSERT_EQ(ibv_req_notify_cq(cq.get(), 0), 0);
    receive_one();
    epoll_event seen{};
    ASSERT_EQ(epoll_wait(epoll, &seen, 1, Deadline().remaining_ms()), 1);
    EXPECT_NE(seen.events & EPOLLIN, 0u);
    // As an event loop does it: fetch until there is nothing more.
    int fetched = 0;
    ibv_cq* from = nullptr;
    void* context = nullptr;
    while (ibv_get_cq_event(channel.get(), &from, &context) == 0) {
      ++fetched;
    }
    EXPECT_EQ(errno, EAGAIN);
    EXPECT_EQ(fetched, 1);
    ibv_ack_cq_events(cq.get(), static_cast<unsigned>(fetched));
    wait_completion(cq.get());
    EXPECT_EQ(epoll_wait(epoll, &seen, 1, 0), 0);
  }
  ::close(epoll);
}

TEST_P(ChannelTest, send_completions_raise_events_while_nobody_polls) {
  for (const ibv_wr_opcode opcode : {IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ}) {
    SCOPED_TRACE(opcode);
    for (const uint32_t size : {8u, kLarge}) {
      ASSERT_EQ(ibv_req_notify_cq(send_cq.get(), 0), 0);
      SendWr wr(1, opcode, {memory.sge(0, size)});
      ASSERT_EQ(wr.remote(far.region_address(), far.rkey()).post(near.qp()), 0);
      if (opcode == IBV_WR_SEND) {
        ASSERT_EQ(far.post_recv(2, {{0, size}}), 0);
      }
      expect_event(send_channel.get(), send_cq.get());
      EXPECT_EQ(wait_completion(send_cq.get()).status, IBV_WC_SUCCESS);
    }
  }
}

// More sends than any ring between the two sides could hold, with both sides asleep.
TEST_P(ChannelTest, long_queue_drains_while_nobody_polls) {
  constexpr uint64_t kCount = 60;
  for (int round = 0; round < 10; ++round) {
    for (uint64_t i = 0; i < kCount; ++i) {
      ASSERT_EQ(far.post_recv(i, {{i * 8192, 8192}}), 0);
    }
    ASSERT_EQ(ibv_req_notify_cq(send_cq.get(), 0), 0);
    for (uint64_t i = 0; i < kCount; ++i) {
      SendWr wr(i, IBV_WR_SEND, {memory.sge(0, 8192)}, i + 1 == kCount ? IBV_SEND_SIGNALED : 0);
      ASSERT_EQ(wr.post(near.qp()), 0);
    }
    expect_event(send_channel.get(), send_cq.get());
    expect_success(wait_completion(send_cq.get()), kCount - 1, IBV_WC_SEND);
    for (uint64_t i = 0; i < kCount; ++i) {
      expect_success(far.wait_recv(), i, IBV_WC_RECV);
    }
  }
}

TEST(Channel, blocking_fetch_waits_for_the_event) {
  const Device device = open_device();
  const Channel own = make_channel(device);
  const Cq receives = make_cq(device, 16, own.get());
  const Pd pd = make_pd(device);
  Region memory(pd.get(), 64);
  Endpoint receiver(device, {}, {pd.get(), nullptr, receives.get(), nullptr});
  Endpoint sender(device, {}, {pd.get(), nullptr, nullptr, nullptr});
  connect(sender, receiver);
  ASSERT_EQ(post_recv(receiver.qp(), 1, {memory.sge(0, 8)}), 0);
  ASSERT_EQ(ibv_req_notify_cq(receives.get(), 0), 0);
  ibv_cq* from = nullptr;
  void* context = nullptr;
  int result = -1;
  std::thread waiter([&] { result = ibv_get_cq_event(own.get(), &from, &context); });
  ASSERT_EQ(SendWr(2, IBV_WR_SEND, {memory.sge(8, 8)}).post(sender.qp()), 0);
  waiter.join();
  EXPECT_EQ(result, 0);
  EXPECT_EQ(from, receives.get());
  ibv_ack_cq_events(receives.get(), 1);
}

// A queue pair of many is found without a mark while it is busy, and by its mark once it has had nothing for some number
// of polls: at whichever of them its next message comes, the program that goes to sleep is told.
TEST(Channel, one_of_many_is_told_of_after_any_number_of_polls_that_found_nothing) {
  constexpr size_t kPairs = 12;
  // Whatever else polls in a round, of two rounds in a row one makes it an odd number: so the last poll of some round is
  // any given one of 256, or of another power of two below that.
  constexpr int kRounds = 540;
  const Device device = open_device();
  const Channel own = make_channel(device);
  const Cq receives = make_cq(device, 64, own.get());
  const Pd pd = make_pd(device);
  Region memory(pd.get(), 64);
  std::vector<std::unique_ptr<Endpoint>> ends;
  for (size_t i = 0; i < kPairs; ++i) {
    ends.push_back(std::make_unique<Endpoint>(device, QpOptions{}, Parts{pd.get(), nullptr, receives.get(), nullptr}));
    ends.push_back(std::make_unique<Endpoint>(device, QpOptions{}, Parts{pd.get(), nullptr, nullptr, nullptr}));
    connect(*ends[2 * i], *ends[2 * i + 1]);
  }
  Endpoint& to = *ends[10];
  Endpoint& from = *ends[11];
  const auto send = [&](uint64_t wr_id) {
    ASSERT_EQ(post_recv(to.qp(), wr_id, {memory.sge(0, 8)}), 0);
    ASSERT_EQ(SendWr(wr_id, IBV_WR_SEND, {memory.sge(8, 8)}).post(from.qp()), 0);
  };
  const auto finish = [&](uint64_t wr_id) {
    expect_success(wait_completion(receives.get()), wr_id, IBV_WC_RECV);
    expect_success(wait_completion(from.send_cq()), wr_id, IBV_WC_SEND);
  };
  for (int round = 0; round < kRounds; ++round) {
    for (const uint64_t wr_id : {1U, 2U, 3U}) {
      send(wr_id);
      finish(wr_id);
    }
    ibv_wc wc{};
    for (int i = 0; i < 508 + round % 2; ++i) {
      ASSERT_EQ(ibv_poll_cq(receives.get(), 1, &wc), 0);
    }
    send(4);
    ASSERT_EQ(ibv_req_notify_cq(receives.get(), 0), 0);
    pollfd entry{own->fd, POLLIN, 0};
    ASSERT_EQ(poll(&entry, 1, Deadline().remaining_ms()), 1) << "not told in round " << round;
    ibv_cq* which = nullptr;
    void* context = nullptr;
    ASSERT_EQ(ibv_get_cq_event(own.get(), &which, &context), 0);
    ibv_ack_cq_events(receives.get(), 1);
    finish(4);
  }
}

TEST(Channel, serves_two_queues) {
  const Device device = open_device();
  const Channel channel = make_channel(device);
  set_nonblocking(channel->fd);
  int marks[2];
  const Cq first = make_cq(device, 16, channel.get(), &marks[0]);
  const Cq second = make_cq(device, 16, channel.get(), &marks[1]);
  EXPECT_EQ(channel->refcnt, 2);
  const Pd pd = make_pd(device);
  Region memory(pd.get(), 64);
  Endpoint a(device, {}, {pd.get(), first.get(), nullptr, nullptr});
  Endpoint b(device, {}, {pd.get(), nullptr, second.get(), nullptr});
  connect(a, b);
  ASSERT_EQ(ibv_req_notify_cq(first.get(), 0), 0);
  ASSERT_EQ(ibv_req_notify_cq(second.get(), 0), 0);
  ASSERT_EQ(post_recv(b.qp(), 1, {memory.sge(0, 8)}), 0);
  ASSERT_EQ(SendWr(2, IBV_WR_SEND, {memory.sge(8, 8)}).post(a.qp()), 0);
  int seen[2] = {0, 0};
  for (int i = 0; i < 2; ++i) {
    pollfd entry{channel->fd, POLLIN, 0};
    ASSERT_EQ(poll(&entry, 1, Deadline().remaining_ms()), 1);
    ibv_cq* from = nullptr;
    void* context = nullptr;
    ASSERT_EQ(ibv_get_cq_event(channel.get(), &from, &context), 0);
    const int which = from == second.get() ? 1 : 0;
    EXPECT_EQ(context, &marks[which]);
    ++seen[which];
    ibv_ack_cq_events(from, 1);
  }
  EXPECT_EQ(seen[0], 1);
  EXPECT_EQ(seen[1], 1);
}

TEST(Channel, overflow_of_the_other_queue_is_told_to_who_sleeps) {
  const Device device = open_device();
  const Channel channel = make_channel(device);
  const Pd pd = make_pd(device);
  // In this order: the service thread looks at the queue of the receives before the other one overflows.
  const Cq receives = make_cq(device, 16, channel.get());
  const Cq sends = make_cq(device, 1);
  Region memory(pd.get(), 64);
  QpOptions options;
  options.send_wr = options.recv_wr = 256;
  Endpoint a(device, options, {pd.get(), sends.get(), receives.get(), nullptr});
  Endpoint b(device, options, {pd.get(), nullptr, nullptr, nullptr});
  connect(a, b);
  const auto entries = static_cast<uint64_t>(sends->cqe);
  ASSERT_LT(entries, 256U);
  ASSERT_EQ(post_recv(a.qp(), 1, {memory.sge(0, 8)}), 0);
  ASSERT_EQ(ibv_req_notify_cq(receives.get(), 0), 0);
  for (uint64_t i = 0; i <= entries; ++i) {
    SendWr wr(i, IBV_WR_RDMA_WRITE, {memory.sge(8, 8)});
    ASSERT_EQ(wr.remote(memory.address(16), memory.rkey()).post(a.qp()), 0);
  }
  EXPECT_EQ(wait_async_event(device).event_type, IBV_EVENT_CQ_ERR);
  EXPECT_EQ(wait_async_event(device).event_type, IBV_EVENT_QP_FATAL);
  ASSERT_TRUE(is_readable(channel->fd, Deadline(std::chrono::seconds(5)).remaining_ms())) << "no event came";
  ibv_cq* from = nullptr;
  void* context = nullptr;
  ASSERT_EQ(ibv_get_cq_event(channel.get(), &from, &context), 0);
  ibv_ack_cq_events(from, 1);
  expect_status(wait_completion(receives.get()), 1, IBV_WC_WR_FLUSH_ERR);
}

TEST(Channel, destroying_a_queue_waits_for_its_acknowledgement) {
  const Device device = open_device();
  const Channel channel = make_channel(device);
  ibv_cq* cq = must(ibv_create_cq(device.context.get(), 16, nullptr, channel.get(), 0), "create");
  auto a = std::make_unique<Endpoint>(device, QpOptions{}, Parts{nullptr, nullptr, cq, nullptr});
  ASSERT_EQ(a->to_init(), 0);
  ASSERT_EQ(post_recv(a->qp(), 1, {}), 0);
  ASSERT_EQ(ibv_req_notify_cq(cq, 0), 0);
  ASSERT_EQ(a->to_state(IBV_QPS_ERR), 0);
  ibv_cq* from = nullptr;
  void* context = nullptr;
  pollfd entry{channel->fd, POLLIN, 0};
  ASSERT_EQ(poll(&entry, 1, Deadline().remaining_ms()), 1);
  ASSERT_EQ(ibv_get_cq_event(channel.get(), &from, &context), 0);
  a.reset();
  std::atomic<bool> is_acknowledged = false;
  bool was_acknowledged_first = false;
  std::thread destroyer([&] {
    EXPECT_EQ(ibv_destroy_cq(cq), 0);
    was_acknowledged_first = is_acknowledged;
  });
  for (int i = 0; i < 20; ++i) {  // each may cost milliseconds where cores are busy
    std::this_thread::yield();
  }
  is_acknowledged = true;
  ibv_ack_cq_events(cq, 1);
  destroyer.join();
  EXPECT_TRUE(was_acknowledged_first);
}

/// Before Linux 5.8, and under an emulator, an event can't be taken off a descriptor that may block: it stays readable.
bool kernel_reads_without_blocking() {
  const int fd = eventfd(1, EFD_CLOEXEC);
  uint64_t one = 0;
  const iovec into{&one, sizeof one};
  const bool works = preadv2(fd, &into, 1, -1, RWF_NOWAIT) == sizeof one;
  close(fd);
  return works;
}

TEST(Channel, unfetched_event_does_not_outlive_its_queue) {
  const Device device = open_device();
  const Channel channel = make_channel(device);
  set_nonblocking(channel->fd);
  {
    const Cq cq = make_cq(device, 16, channel.get());
    Endpoint a(device, {}, {nullptr, nullptr, cq.get(), nullptr});
    ASSERT_EQ(a.to_init(), 0);
    ASSERT_EQ(post_recv(a.qp(), 1, {}), 0);
    ASSERT_EQ(ibv_req_notify_cq(cq.get(), 0), 0);
    ASSERT_EQ(a.to_state(IBV_QPS_ERR), 0);
    // Only once the event is there can it be left behind.
    ASSERT_TRUE(is_readable(channel->fd, Deadline().remaining_ms()));
  }
  EXPECT_TRUE(!is_readable(channel->fd, 0) || !kernel_reads_without_blocking());
  ibv_cq* from = nullptr;
  void* context = nullptr;
  EXPECT_EQ(ibv_get_cq_event(channel.get(), &from, &context), -1);
  EXPECT_EQ(errno, EAGAIN);
}

}  // namespace
}  // namespace ringbolt::conformance
