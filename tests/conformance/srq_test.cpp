// Shared receive queues: shared, counted, limited, and told about dying queue pairs.
#include <arpa/inet.h>

#include <set>

#include "deadline.h"
#include "far.h"

namespace ringbolt::conformance {
namespace {

Srq make_srq(ibv_pd* pd, uint32_t max_wr, uint32_t max_sge = 4, void* context = nullptr) {
  ibv_srq_init_attr attr{context, {max_wr, max_sge, 0}};
  Srq srq(must(ibv_create_srq(pd, &attr), "ibv_create_srq"));
  EXPECT_GE(attr.attr.max_wr, max_wr);
  EXPECT_GE(attr.attr.max_sge, max_sge);
  return srq;
}

/// Three queue pairs that take their receives from one queue, and a sender for each.
class SrqTest : public testing::TestWithParam<ibv_qp_type> {
 protected:
  static constexpr size_t kPairs = 3;

  SrqTest()
      : device(open_device()),
        pd(make_pd(device)),
        cq(make_cq(device, 1024)),
        srq(make_srq(pd.get(), 64)),
        memory(pd.get(), 65536) {}

  void SetUp() override {
    QpOptions options;
    options.type = GetParam();
    if (GetParam() == IBV_QPT_UC && !can_share(options)) {
      GTEST_SKIP() << "this device shares receives among reliable connections and datagrams only";
    }
    for (size_t i = 0; i < kPairs; ++i) {
      const Parts shared{pd.get(), nullptr, cq.get(), srq.get()};
      receivers.push_back(std::make_unique<Endpoint>(device, options, shared));
      senders.push_back(std::make_unique<Endpoint>(device, options));
      sources.push_back(std::make_unique<Region>(senders.back()->pd(), 65536));
      connect(*senders.back(), *receivers.back());
    }
  }

  bool can_share(const QpOptions& options) {
    try {
      Endpoint(device, options, {pd.get(), nullptr, cq.get(), srq.get()});
      return true;
    } catch (const SetUpError&) {
      return false;
    }
  }

  void send(size_t from, uint64_t wr_id, uint32_t length = 64) {
    SendWr wr(wr_id, IBV_WR_SEND, {sources[from]->sge(0, length)});
    ASSERT_EQ(wr.post(senders[from]->qp()), 0);
  }

  Device device;
  Pd pd;
  Cq cq;
  Srq srq;
  Region memory;
  std::vector<std::unique_ptr<Endpoint>> receivers;
  std::vector<std::unique_ptr<Endpoint>> senders;
  std::vector<std::unique_ptr<Region>> sources;
};
INSTANTIATE_TEST_SUITE_P(All, SrqTest, testing::Values(IBV_QPT_RC, IBV_QPT_UC),
                         [](const auto& parameter) { return type_name(parameter.param); });

TEST_P(SrqTest, receives_go_to_whoever_needs_one) {
  for (uint64_t i = 0; i < 30; ++i) {
    ASSERT_EQ(post_srq_recv(srq.get(), i, {memory.sge(i * 512, 512)}), 0);
  }
  for (uint64_t i = 0; i < 30; ++i) {
    send(i % kPairs, i, 100);
  }
  std::set<uint64_t> used;
  std::vector<int> per_pair(kPairs, 0);
  for (const ibv_wc& wc : wait_completions(cq.get(), 30)) {
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS) << describe(wc);
    EXPECT_TRUE(used.insert(wc.wr_id).second) << "receive " << wc.wr_id << " was used twice";
    for (size_t i = 0; i < kPairs; ++i) {
      per_pair[i] += receivers[i]->qp()->qp_num == wc.qp_num ? 1 : 0;
    }
  }
  EXPECT_EQ(per_pair, std::vector<int>(kPairs, 10));
}

TEST_P(SrqTest, data_lands_in_the_receive_that_its_completion_names) {
  for (uint64_t i = 0; i < 9; ++i) {
    ASSERT_EQ(post_srq_recv(srq.get(), i, {memory.sge(i * 4096, 4096)}), 0);
  }
  for (size_t from = 0; from < kPairs; ++from) {
    for (uint64_t i = 0; i < 3; ++i) {
      const std::vector<Piece> piece = {{i * 4096, 4000}};
      sources[from]->fill(piece, 100 * from + i);
      SendWr wr(i, IBV_WR_SEND_WITH_IMM, sources[from]->sges(piece));
      wr.immediate(static_cast<uint32_t>(100 * from + i));
      ASSERT_EQ(wr.post(senders[from]->qp()), 0);
    }
  }
  std::vector<uint64_t> next(kPairs, 0);
  for (const ibv_wc& wc : wait_completions(cq.get(), 9)) {
    ASSERT_EQ(wc.status, IBV_WC_SUCCESS) << describe(wc);
    const uint64_t seed = ntohl(wc.imm_data);
    EXPECT_EQ(seed % 100, next[seed / 100]++) << "out of order from sender " << seed / 100;
    Region expected(pd.get(), 4000);
    expected.fill(std::vector<Piece>{{0, 4000}}, seed);
    EXPECT_EQ(std::memcmp(memory.data() + wc.wr_id * 4096, expected.data(), 4000), 0)
        << "message " << seed << " in receive " << wc.wr_id;
  }
}

TEST_P(SrqTest, empty_queue_holds_the_senders) {
  for (size_t i = 0; i < kPairs; ++i) {
    send(i, i);
  }
  EXPECT_TRUE(is_empty(cq.get()));
  for (uint64_t i = 0; i < kPairs; ++i) {
    ASSERT_EQ(post_srq_recv(srq.get(), i, {memory.sge(0, 64)}), 0);
  }
  for (size_t i = 0; i < kPairs; ++i) {
    EXPECT_EQ(wait_completion(cq.get()).status, IBV_WC_SUCCESS);
    expect_success(wait_completion(senders[i]->send_cq()), i, IBV_WC_SEND);
  }
}

TEST_P(SrqTest, limit_is_reported_once) {
  for (uint64_t i = 0; i < 10; ++i) {
    ASSERT_EQ(post_srq_recv(srq.get(), i, {memory.sge(0, 64)}), 0);
  }
  ibv_srq_attr attr{};
  attr.srq_limit = 5;
  ASSERT_EQ(ibv_modify_srq(srq.get(), &attr, IBV_SRQ_LIMIT), 0);
  ibv_srq_attr read{};
  ASSERT_EQ(ibv_query_srq(srq.get(), &read), 0);
  EXPECT_EQ(read.srq_limit, 5u);
  EXPECT_GE(read.max_wr, 64u);
  for (uint64_t i = 0; i < 5; ++i) {
    send(0, i);
  }
  wait_completions(cq.get(), 5);
  EXPECT_TRUE(has_no_async_event(device)) << "five are left, which is not below five";
  send(1, 5);
  wait_completion(cq.get());
  const ibv_async_event event = wait_async_event(device);
  EXPECT_EQ(event.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
  EXPECT_EQ(event.element.srq, srq.get());
  send(1, 6);
  wait_completion(cq.get());
  EXPECT_TRUE(has_no_async_event(device)) << "the limit is armed once";
  ASSERT_EQ(ibv_query_srq(srq.get(), &read), 0);
  EXPECT_EQ(read.srq_limit, 0u);
}

TEST_P(SrqTest, last_receive_of_a_dead_queue_pair_is_announced) {
  ASSERT_EQ(post_srq_recv(srq.get(), 1, {memory.sge(0, 64)}), 0);
  ASSERT_EQ(receivers[0]->to_state(IBV_QPS_ERR), 0);
  const ibv_async_event event = wait_async_event(device);
  EXPECT_EQ(event.event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
  EXPECT_EQ(event.element.qp, receivers[0]->qp());
  // The shared receive is not flushed: it serves the others.
  EXPECT_TRUE(is_empty(cq.get()));
  send(1, 2);
  expect_success(wait_completion(cq.get()), 1, IBV_WC_RECV);
}

TEST_P(SrqTest, other_queue_pairs_outlive_a_destroyed_one) {
  receivers.erase(receivers.begin());
  ASSERT_EQ(post_srq_recv(srq.get(), 1, {memory.sge(0, 64)}), 0);
  send(2, 2);
  expect_success(wait_completion(cq.get()), 1, IBV_WC_RECV);
}

// The receive comes after the message, as in a program that answers each arrival with a new receive.
TEST(Srq, receive_for_a_message_that_waits_wakes_its_program) {
  for (const Placement placement : kPlacements) {
    SCOPED_TRACE(placement_name(placement));
    const Device device = open_device();
    const Pd pd = make_pd(device);
    const Channel channel = make_channel(device);
    const Cq cq = make_cq(device, 16, channel.get());
    const Srq srq = make_srq(pd.get(), 8);
    Endpoint near(device, {}, {pd.get(), nullptr, cq.get(), srq.get()});
    Region memory(pd.get(), 64);
    Far far(placement);
    far.open({}, 64);
    near.connect(far.address());
    far.connect(near.address());
    // Once one message has come through, the next one is there as soon as it is posted.
    ASSERT_EQ(post_srq_recv(srq.get(), 0, {memory.sge(0, 8)}), 0);
    ASSERT_EQ(far.post_send(0, IBV_WR_SEND, {{0, 8}}), 0);
    expect_success(wait_completion(cq.get()), 0, IBV_WC_RECV);
    expect_success(far.wait_send(), 0, IBV_WC_SEND);
    ASSERT_EQ(far.post_send(1, IBV_WR_SEND, {{0, 8}}), 0);
    // From here on the sender waits for an answer, and does not look at its send.
    ASSERT_EQ(ibv_req_notify_cq(cq.get(), 0), 0);
    ASSERT_FALSE(is_readable(channel->fd, 0));
    ASSERT_EQ(post_srq_recv(srq.get(), 1, {memory.sge(0, 8)}), 0);
    ASSERT_TRUE(is_readable(channel->fd, Deadline(std::chrono::seconds(5)).remaining_ms())) << "no event came";
    ibv_cq* from = nullptr;
    void* context = nullptr;
    ASSERT_EQ(ibv_get_cq_event(channel.get(), &from, &context), 0);
    ibv_ack_cq_events(from, 1);
    expect_success(wait_completion(cq.get()), 1, IBV_WC_RECV);
    expect_success(far.wait_send(), 1, IBV_WC_SEND);
  }
}

TEST(Srq, full_queue_refuses) {
  const Device device = open_device();
  const Pd pd = make_pd(device);
  ibv_srq_init_attr attr{nullptr, {8, 2, 0}};
  const Srq srq(must(ibv_create_srq(pd.get(), &attr), "ibv_create_srq"));
  Region memory(pd.get(), 64);
  for (uint32_t i = 0; i < attr.attr.max_wr; ++i) {
    ASSERT_EQ(post_srq_recv(srq.get(), i, {memory.sge(0, 8)}), 0);
  }
  EXPECT_EQ(post_srq_recv(srq.get(), 99, {memory.sge(0, 8)}), ENOMEM);
}

TEST(Srq, too_many_pieces_are_refused) {
  const Device device = open_device();
  const Pd pd = make_pd(device);
  ibv_srq_init_attr attr{nullptr, {8, 2, 0}};
  const Srq srq(must(ibv_create_srq(pd.get(), &attr), "ibv_create_srq"));
  Region memory(pd.get(), 64);
  const std::vector<ibv_sge> list(attr.attr.max_sge + 1, memory.sge(0, 1));
  EXPECT_EQ(post_srq_recv(srq.get(), 1, list), EINVAL);
}

TEST(Srq, impossible_sizes_are_refused) {
  const Device device = open_device();
  const Pd pd = make_pd(device);
  const auto refused = [&](uint32_t wr, uint32_t sge) {
    ibv_srq_init_attr attr{nullptr, {wr, sge, 0}};
    EXPECT_EQ(ibv_create_srq(pd.get(), &attr), nullptr) << wr << " x " << sge;
    EXPECT_EQ(errno, EINVAL);
  };
  refused(static_cast<uint32_t>(device.attr.max_srq_wr) + 1, 1);
  refused(8, static_cast<uint32_t>(device.attr.max_srq_sge) + 1);
}

TEST(Srq, limit_beyond_the_queue_is_refused) {
  const Device device = open_device();
  const Pd pd = make_pd(device);
  const Srq srq = make_srq(pd.get(), 8);
  ibv_srq_attr attr{};
  ASSERT_EQ(ibv_query_srq(srq.get(), &attr), 0);
  attr.srq_limit = attr.max_wr + 1;
  EXPECT_EQ(ibv_modify_srq(srq.get(), &attr, IBV_SRQ_LIMIT), EINVAL);
}

TEST(Srq, queue_pair_has_no_receive_queue_of_its_own) {
  const Device device = open_device();
  const Pd pd = make_pd(device);
  const Srq srq = make_srq(pd.get(), 8);
  Endpoint endpoint(device, {}, {pd.get(), nullptr, nullptr, srq.get()});
  Region memory(pd.get(), 64);
  ASSERT_EQ(endpoint.to_init(), 0);
  EXPECT_EQ(post_recv(endpoint.qp(), 1, {memory.sge(0, 8)}), EINVAL);
  EXPECT_EQ(endpoint.qp()->srq, srq.get());
}

TEST(Srq, context_is_kept) {
  const Device device = open_device();
  const Pd pd = make_pd(device);
  int mark = 0;
  const Srq srq = make_srq(pd.get(), 8, 1, &mark);
  EXPECT_EQ(srq->srq_context, &mark);
  EXPECT_EQ(srq->pd, pd.get());
}

TEST(Srq, datagrams_take_shared_receives_too) {
  const Device device = open_device();
  const Pd pd = make_pd(device);
  const Srq srq = make_srq(pd.get(), 8);
  QpOptions options;
  options.type = IBV_QPT_UD;
  Endpoint endpoint(device, options, {pd.get(), nullptr, nullptr, srq.get()});
  endpoint.connect(endpoint.address());
  Region memory(pd.get(), 512);
  const Ah ah = make_ah(device, pd.get(), device.gid);
  ASSERT_EQ(post_srq_recv(srq.get(), 5, {memory.sge(0, 128)}), 0);
  SendWr wr(6, IBV_WR_SEND, {memory.sge(256, 16)});
  ASSERT_EQ(wr.datagram(ah.get(), endpoint.qp()->qp_num).post(endpoint.qp()), 0);
  const ibv_wc wc = wait_completion(endpoint.recv_cq());
  expect_success(wc, 5, IBV_WC_RECV);
  EXPECT_EQ(wc.byte_len, 56u);
}

}  // namespace
}  // namespace ringbolt::conformance
