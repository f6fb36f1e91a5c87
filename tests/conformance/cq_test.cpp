// Completion queues: capacity, overflow, resizing, sharing, order.
#include <algorithm>
#include <atomic>
#include <climits>

#include "deadline.h"
#include "far.h"

namespace ringbolt::conformance {
namespace {

/// Two connected queue pairs in this process; the completion queue under test takes what a sends.
struct Loop {
  Device device = open_device();
  Pd pd = make_pd(device);
  Cq cq;
  Region memory;
  Endpoint a;
  Endpoint b;

  explicit Loop(int entries, ibv_comp_channel* channel = nullptr)
      : cq(make_cq(device, entries, channel)),
        memory(pd.get(), 4096),
        a(device, options(), {pd.get(), cq.get(), nullptr, nullptr}),
        b(device, options(), {pd.get(), nullptr, nullptr, nullptr}) {
    connect(a, b);
  }

  static QpOptions options() {
    QpOptions chosen;
    chosen.send_wr = chosen.recv_wr = 1024;
    return chosen;
  }

  /// Posts signalled writes of 8 bytes with wr_id first, first + 1, ...
  void write(uint64_t first, uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) {
      SendWr wr(first + i, IBV_WR_RDMA_WRITE, {memory.sge(0, 8)});
      ASSERT_EQ(wr.remote(memory.address(64), memory.rkey()).post(a.qp()), 0);
    }
  }

  /// Returns when everything posted so far has completed, without touching the queue under test:
  /// a send to b arrives after all of it, and b's answer behind what b acknowledged.
  void settle() {
    ASSERT_EQ(post_recv(b.qp(), 1, {memory.sge(128, 8)}), 0);
    ASSERT_EQ(SendWr(999, IBV_WR_SEND, {memory.sge(0, 8)}, 0).post(a.qp()), 0);
    expect_success(wait_completion(b.recv_cq()), 1, IBV_WC_RECV);
    ASSERT_EQ(post_recv(a.qp(), 2, {memory.sge(192, 8)}), 0);
    ASSERT_EQ(SendWr(998, IBV_WR_SEND, {memory.sge(0, 8)}, 0).post(b.qp()), 0);
    expect_success(wait_completion(a.recv_cq()), 2, IBV_WC_RECV);
  }
};

TEST(CompletionQueue, has_at_least_the_entries_asked_for) {
  const Device device = open_device();
  for (const int entries : {1, 2, 3, 64, 100, 4096}) {
    EXPECT_GE(make_cq(device, entries)->cqe, entries);
  }
}

TEST(CompletionQueue, impossible_sizes_are_refused) {
  const Device device = open_device();
  for (const int entries : {0, -1, INT_MIN, INT_MAX, device.attr.max_cqe + 1}) {
    EXPECT_EQ(ibv_create_cq(device.context.get(), entries, nullptr, nullptr, 0), nullptr)
        << entries;
    EXPECT_EQ(errno, EINVAL) << entries;
  }
  const int vectors = device.context->num_comp_vectors;
  EXPECT_EQ(ibv_create_cq(device.context.get(), 4, nullptr, nullptr, vectors), nullptr);
  EXPECT_EQ(ibv_create_cq(device.context.get(), 4, nullptr, nullptr, -1), nullptr);
}

TEST(CompletionQueue, largest_size_is_granted) {
  const Device device = open_device();
  EXPECT_GE(make_cq(device, device.attr.max_cqe)->cqe, device.attr.max_cqe);
}

TEST(CompletionQueue, context_is_kept) {
  const Device device = open_device();
  int mark = 0;
  const Cq cq = make_cq(device, 4, nullptr, &mark);
  EXPECT_EQ(cq->cq_context, &mark);
  EXPECT_EQ(cq->context, device.context.get());
  EXPECT_EQ(cq->channel, nullptr);
}

TEST(CompletionQueue, poll_returns_up_to_what_was_asked) {
  Loop loop(64);
  loop.write(0, 10);
  loop.settle();
  ibv_wc wc[16];
  EXPECT_EQ(ibv_poll_cq(loop.cq.get(), 0, wc), 0);
  ASSERT_EQ(ibv_poll_cq(loop.cq.get(), 4, wc), 4);
  for (uint64_t i = 0; i < 4; ++i) {
    expect_success(wc[i], i, IBV_WC_RDMA_WRITE);
  }
  // On a network the last ones may be acknowledged after the answer to what was sent behind them.
  const std::vector<ibv_wc> rest = wait_completions(loop.cq.get(), 6);
  for (uint64_t i = 0; i < 6; ++i) {
    expect_success(rest[i], 4 + i, IBV_WC_RDMA_WRITE);
  }
  EXPECT_EQ(ibv_poll_cq(loop.cq.get(), 16, wc), 0);
}

TEST(CompletionQueue, holds_exactly_its_entries) {
  Loop loop(16);
  const auto entries = static_cast<uint64_t>(loop.cq->cqe);
  ASSERT_LE(entries, 1000u) << "a queue of 16 became one of " << entries;
  loop.write(0, entries);
  loop.settle();
  EXPECT_TRUE(has_no_async_event(loop.device));
  const std::vector<ibv_wc> done = wait_completions(loop.cq.get(), entries);
  for (uint64_t i = 0; i < entries; ++i) {
    expect_success(done[i], i, IBV_WC_RDMA_WRITE);
  }
}

TEST(CompletionQueue, overflow_is_an_async_event) {
  Loop loop(16);
  const auto entries = static_cast<uint64_t>(loop.cq->cqe);
  ASSERT_LE(entries, 1000u);
  loop.write(0, entries + 1);
  const ibv_async_event event = wait_async_event(loop.device);
  EXPECT_EQ(event.event_type, IBV_EVENT_CQ_ERR);
  EXPECT_EQ(event.element.cq, loop.cq.get());
}

TEST(CompletionQueue, resize_keeps_the_entries_inside) {
  Loop loop(64);
  loop.write(0, 20);
  loop.settle();
  ASSERT_EQ(ibv_resize_cq(loop.cq.get(), 512), 0);
  EXPECT_GE(loop.cq->cqe, 512);
  loop.write(20, 300);
  loop.settle();
  std::vector<ibv_wc> done = wait_completions(loop.cq.get(), 300);
  ASSERT_EQ(ibv_resize_cq(loop.cq.get(), 24), 0);
  EXPECT_GE(loop.cq->cqe, 24);
  for (const ibv_wc& wc : wait_completions(loop.cq.get(), 20)) {
    done.push_back(wc);
  }
  for (uint64_t i = 0; i < done.size(); ++i) {
    expect_success(done[i], i, IBV_WC_RDMA_WRITE);
  }
  EXPECT_TRUE(is_empty(loop.cq.get()));
}

TEST(CompletionQueue, resize_below_the_entries_inside_is_refused) {
  Loop loop(512);
  loop.write(0, 300);
  loop.settle();
  EXPECT_EQ(ibv_resize_cq(loop.cq.get(), 4), EINVAL);
  EXPECT_NE(ibv_resize_cq(loop.cq.get(), 0), 0);
  EXPECT_NE(ibv_resize_cq(loop.cq.get(), loop.device.attr.max_cqe + 1), 0);
  const std::vector<ibv_wc> done = wait_completions(loop.cq.get(), 300);
  for (uint64_t i = 0; i < 300; ++i) {
    expect_success(done[i], i, IBV_WC_RDMA_WRITE);
  }
}

class SpinTest : public testing::TestWithParam<ibv_qp_type> {};
INSTANTIATE_TEST_SUITE_P(All, SpinTest, testing::Values(IBV_QPT_RC, IBV_QPT_UC),
                         [](const auto& one) { return std::string(type_name(one.param)); });

TEST_P(SpinTest, writes_arrive_while_the_queue_is_full) {
  // As ib_write_lat: each side writes, then looks at its memory alone until the other's write is there.
  const Device device = open_device();
  const Pd pd = make_pd(device);
  Region memory(pd.get(), 128);
  QpOptions options;
  options.type = GetParam();
  options.send_wr = 1;
  const Cq a_done = make_cq(device, 1), b_done = make_cq(device, 1);
  Endpoint a(device, options, {pd.get(), a_done.get(), a_done.get(), nullptr});
  Endpoint b(device, options, {pd.get(), b_done.get(), b_done.get(), nullptr});
  connect(a, b);
  std::atomic_ref<uint8_t> at_a(memory.data()[0]), at_b(memory.data()[64]);
  for (uint8_t round = 1; round <= 100; ++round) {
    memory.data()[32] = round;
    SendWr there(round, IBV_WR_RDMA_WRITE, {memory.sge(32, 1)});
    ASSERT_EQ(there.remote(memory.address(64), memory.rkey()).post(a.qp()), 0);
    ASSERT_TRUE(wait_until([&] { return at_b.load() == round; })) << "round " << +round;
    SendWr back(round, IBV_WR_RDMA_WRITE, {memory.sge(64, 1)});
    ASSERT_EQ(back.remote(memory.address(0), memory.rkey()).post(b.qp()), 0);
    ASSERT_TRUE(wait_until([&] { return at_a.load() == round; })) << "round " << +round;
    expect_success(wait_completion(a_done.get()), round, IBV_WC_RDMA_WRITE);
    expect_success(wait_completion(b_done.get()), round, IBV_WC_RDMA_WRITE);
  }
}

TEST(CompletionQueue, shared_by_many_queue_pairs_keeps_each_ones_order) {
  const Device device = open_device();
  const Pd pd = make_pd(device);
  const Cq cq = make_cq(device, 1024);
  Region memory(pd.get(), 4096);
  constexpr uint64_t kPairs = 8;
  constexpr uint64_t kEach = 32;
  std::vector<std::unique_ptr<Endpoint>> ends;
  const Parts parts{pd.get(), cq.get(), cq.get(), nullptr};
  for (uint64_t i = 0; i < 2 * kPairs; ++i) {
    ends.push_back(std::make_unique<Endpoint>(device, QpOptions{}, parts));
  }
  for (uint64_t i = 0; i < kPairs; ++i) {
    connect(*ends[2 * i], *ends[2 * i + 1]);
  }
  for (uint64_t k = 0; k < kEach; ++k) {
    for (uint64_t i = 0; i < kPairs; ++i) {
      ASSERT_EQ(post_recv(ends[2 * i + 1]->qp(), k, {memory.sge(0, 8)}), 0);
      ASSERT_EQ(SendWr(k, IBV_WR_SEND, {memory.sge(64, 8)}).post(ends[2 * i]->qp()), 0);
    }
  }
  std::vector<uint64_t> next(2 * kPairs, 0);
  for (const ibv_wc& wc : wait_completions(cq.get(), 2 * kPairs * kEach)) {
    size_t end = 0;
    while (ends[end]->qp()->qp_num != wc.qp_num) {
      ASSERT_LT(++end, ends.size()) << describe(wc);
    }
    expect_success(wc, next[end]++, end % 2 == 0 ? IBV_WC_SEND : IBV_WC_RECV);
  }
}

class TurnTest : public testing::TestWithParam<size_t> {};
INSTANTIATE_TEST_SUITE_P(Pairs, TurnTest, testing::Values(2, 3, 20), testing::PrintToStringParamName());

TEST_P(TurnTest, each_queue_pair_has_its_turn_however_much_the_others_bring) {
  // The program takes one completion at a time, and whatever completes is posted again, so that all bring more than it
  // takes.
  const size_t pairs = GetParam();
  const Device device = open_device();
  const Pd pd = make_pd(device);
  const Cq cq = make_cq(device, 4096);
  Region memory(pd.get(), 128);
  const Parts parts{pd.get(), cq.get(), cq.get(), nullptr};
  std::vector<std::unique_ptr<Endpoint>> ends;
  for (size_t i = 0; i < 2 * pairs; ++i) {
    ends.push_back(std::make_unique<Endpoint>(device, QpOptions{}, parts));
  }
  const auto post = [&](size_t end) {  // even ones send
    return end % 2 == 0 ? SendWr(end, IBV_WR_SEND, {memory.sge(64, 8)}).post(ends[end]->qp())
                        : post_recv(ends[end]->qp(), end, {memory.sge(0, 8)});
  };
  constexpr int kDepth = 8;
  for (size_t i = 0; i < 2 * pairs; i += 2) {
    connect(*ends[i], *ends[i + 1]);
    ASSERT_EQ(post(i + 1), 0);
    ASSERT_EQ(post(i), 0);
    wait_completions(cq.get(), 2);  // they have met: on a busy machine that takes longer than all of what follows
  }
  for (size_t i = 0; i < 2 * pairs; i += 2) {
    for (int k = 0; k < kDepth; ++k) {
      ASSERT_EQ(post(i + 1), 0);
    }
    for (int k = 0; k < kDepth; ++k) {
      ASSERT_EQ(post(i), 0);
    }
  }
  constexpr uint64_t kEach = 40;
  std::vector<uint64_t> turns(2 * pairs, 0);
  for (uint64_t taken = 0; taken < 8 * kEach * 2 * pairs && *std::ranges::min_element(turns) < kEach; ++taken) {
    const ibv_wc wc = wait_completion(cq.get());
    ASSERT_EQ(wc.status, IBV_WC_SUCCESS) << describe(wc);
    ASSERT_EQ(post(wc.wr_id), 0) << "after " << taken;
    ++turns[wc.wr_id];
  }
  EXPECT_GE(*std::ranges::min_element(turns), kEach) << testing::PrintToString(turns);
}

}  // namespace
}  // namespace ringbolt::conformance
