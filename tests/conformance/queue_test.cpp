// Work queues: how much they hold, what they refuse, in what order they complete and flush.
#include "far.h"

namespace ringbolt::conformance {
namespace {

class QueueTest : public testing::TestWithParam<Placement> {};
INSTANTIATE_TEST_SUITE_P(All, QueueTest, testing::ValuesIn(kPlacements), parameter_name);

/// Once an empty message has come through, the next one is under way as soon as it is posted.
void send_empty(Link& link) {
  ASSERT_EQ(link.far.post_recv(0, {}), 0);
  ASSERT_EQ(SendWr(0, IBV_WR_SEND, {}).post(link.near.qp()), 0);
  expect_success(link.far.wait_recv(), 0, IBV_WC_RECV);
  expect_success(wait_completion(link.near.send_cq()), 0, IBV_WC_SEND);
}

TEST(Queue, posting_in_a_wrong_state_is_refused) {
  const Device device = open_device();
  for (const ibv_qp_type type : {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD}) {
    SCOPED_TRACE(type_name(type));
    QpOptions options;
    options.type = type;
    Endpoint endpoint(device, options);
    Region memory(endpoint.pd(), 64);
    const Ah ah = make_ah(device, endpoint.pd(), device.gid);
    const auto send = [&] {
      SendWr wr(1, IBV_WR_SEND, {memory.sge(0, 8)});
      if (type == IBV_QPT_UD) {
        wr.datagram(ah.get(), endpoint.qp()->qp_num);
      }
      return wr.post(endpoint.qp());
    };
    EXPECT_EQ(post_recv(endpoint.qp(), 1, {memory.sge(0, 8)}), EINVAL) << "receive in RESET";
    EXPECT_EQ(send(), EINVAL) << "send in RESET";
    ASSERT_EQ(endpoint.to_init(), 0);
    EXPECT_EQ(post_recv(endpoint.qp(), 2, {memory.sge(0, 8)}), 0) << "receive in INIT";
    EXPECT_EQ(send(), EINVAL) << "send in INIT";
    ASSERT_EQ(endpoint.to_rtr(endpoint.address()), 0);
    EXPECT_EQ(post_recv(endpoint.qp(), 3, {memory.sge(0, 8)}), 0) << "receive in RTR";
    EXPECT_EQ(send(), EINVAL) << "send in RTR";
    EXPECT_TRUE(is_empty(endpoint.send_cq()));
    EXPECT_TRUE(is_empty(endpoint.recv_cq()));
  }
}

TEST(Queue, posting_in_the_error_state_flushes) {
  const Device device = open_device();
  Endpoint a(device, {}), b(device, {});
  Region memory(a.pd(), 64);
  connect(a, b);
  ASSERT_EQ(a.to_state(IBV_QPS_ERR), 0);
  for (uint64_t i = 0; i < 4; ++i) {
    ASSERT_EQ(SendWr(i, IBV_WR_SEND, {memory.sge(0, 8)}, 0).post(a.qp()), 0);
    ASSERT_EQ(post_recv(a.qp(), 10 + i, {memory.sge(0, 8)}), 0);
  }
  for (uint64_t i = 0; i < 4; ++i) {
    expect_status(wait_completion(a.send_cq()), i, IBV_WC_WR_FLUSH_ERR);
    expect_status(wait_completion(a.recv_cq()), 10 + i, IBV_WC_WR_FLUSH_ERR);
  }
}

TEST_P(QueueTest, error_state_flushes_both_queues_in_order) {
  Link link(GetParam(), {}, 4096);
  constexpr uint64_t kCount = 20;
  for (uint64_t i = 0; i < kCount; ++i) {
    ASSERT_EQ(post_recv(link.near.qp(), 100 + i, {link.memory.sge(0, 8)}), 0);
    // Nobody has posted receives over there: these wait. Every second one is unsignalled.
    ASSERT_EQ(SendWr(i, IBV_WR_SEND, {link.memory.sge(0, 8)}, i % 2 == 0 ? IBV_SEND_SIGNALED : 0)
                  .post(link.near.qp()),
              0);
  }
  ASSERT_EQ(link.near.to_state(IBV_QPS_ERR), 0);
  for (uint64_t i = 0; i < kCount; ++i) {
    const ibv_wc wc = wait_completion(link.near.send_cq());
    expect_status(wc, i, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(wc.qp_num, link.near.qp()->qp_num);
    expect_status(wait_completion(link.near.recv_cq()), 100 + i, IBV_WC_WR_FLUSH_ERR);
  }
  EXPECT_TRUE(is_empty(link.near.send_cq()));
  EXPECT_TRUE(is_empty(link.near.recv_cq()));
}

TEST_P(QueueTest, flushed_send_arrives_nowhere) {
  Link link(GetParam(), {}, 4096);
  send_empty(link);
  link.memory.fill(std::vector<Piece>{{0, 64}}, 1);
  ASSERT_EQ(SendWr(1, IBV_WR_SEND, {link.memory.sge(0, 64)}).post(link.near.qp()), 0);
  ASSERT_EQ(link.near.to_state(IBV_QPS_ERR), 0);
  expect_status(wait_completion(link.near.send_cq()), 1, IBV_WC_WR_FLUSH_ERR);
  ASSERT_EQ(link.far.post_recv(2, {{0, 64}}), 0);
  ASSERT_EQ(link.far.modify(IBV_QPS_ERR), 0);
  expect_status(link.far.wait_recv(), 2, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(link.far.check({}, 0, 0), "");
}

TEST_P(QueueTest, flushed_send_arrives_nowhere_but_in_a_receive_posted_before) {
  Link link(GetParam(), {}, 4096);
  send_empty(link);
  link.memory.fill(std::vector<Piece>{{0, 64}}, 1);
  ASSERT_EQ(link.far.post_recv(1, {{0, 64}}), 0);
  for (uint64_t id = 1; id <= 2; ++id) {
    ASSERT_EQ(SendWr(id, IBV_WR_SEND, {link.memory.sge(0, 64)}).post(link.near.qp()), 0);
  }
  ASSERT_EQ(link.near.to_state(IBV_QPS_ERR), 0);
  wait_completion(link.near.send_cq());  // it may have arrived, its sender can't know
  expect_status(wait_completion(link.near.send_cq()), 2, IBV_WC_WR_FLUSH_ERR);
  ASSERT_EQ(link.far.post_recv(2, {{64, 64}}), 0);
  expect_success(link.far.wait_recv(), 1, IBV_WC_RECV);
  ASSERT_EQ(link.far.modify(IBV_QPS_ERR), 0);
  expect_status(link.far.wait_recv(), 2, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(link.far.check({{0, 64}}, 64, 1), "");
}

TEST_P(QueueTest, full_send_queue_refuses_until_a_completion_is_polled) {
  QpOptions options;
  options.send_wr = 8;
  Link link(GetParam(), options, 4096);
  const uint32_t depth = link.near.cap().max_send_wr;
  ASSERT_GE(depth, 8u);
  SendWr wr(0, IBV_WR_SEND, {link.memory.sge(0, 8)});
  for (uint32_t i = 0; i < depth; ++i) {
    wr.wr.wr_id = i;
    ASSERT_EQ(wr.post(link.near.qp()), 0) << i << " of " << depth;
  }
  wr.wr.wr_id = depth;
  EXPECT_EQ(wr.post(link.near.qp()), ENOMEM);
  ASSERT_EQ(link.far.post_recv(1, {{0, 8}}), 0);
  expect_success(wait_completion(link.near.send_cq()), 0, IBV_WC_SEND);
  EXPECT_EQ(wr.post(link.near.qp()), 0);
  EXPECT_EQ(wr.post(link.near.qp()), ENOMEM);
}

TEST_P(QueueTest, a_list_of_sends_stops_at_the_first_that_does_not_fit) {
  QpOptions options;
  options.send_wr = 4;
  Link link(GetParam(), options, 4096);
  const uint32_t depth = link.near.cap().max_send_wr;
  std::vector<SendWr> list;
  for (uint32_t i = 0; i < depth + 3; ++i) {
    list.emplace_back(i, IBV_WR_SEND, std::vector<ibv_sge>{link.memory.sge(0, 8)});
  }
  for (uint32_t i = 0; i < list.size(); ++i) {
    list[i].wr.sg_list = list[i].sges.data();
    list[i].wr.num_sge = 1;
    list[i].wr.next = i + 1 < list.size() ? &list[i + 1].wr : nullptr;
  }
  ibv_send_wr* bad = nullptr;
  EXPECT_EQ(ibv_post_send(link.near.qp(), &list[0].wr, &bad), ENOMEM);
  ASSERT_EQ(bad, &list[depth].wr);
  for (uint32_t i = 0; i < depth; ++i) {
    ASSERT_EQ(link.far.post_recv(i, {{0, 8}}), 0);
    expect_success(wait_completion(link.near.send_cq()), i, IBV_WC_SEND);
  }
}

TEST(Queue, full_receive_queue_refuses) {
  const Device device = open_device();
  QpOptions options;
  options.recv_wr = 8;
  Endpoint a(device, options), b(device, options);
  Region memory(a.pd(), 64);
  connect(a, b);
  const uint32_t depth = a.cap().max_recv_wr;
  ASSERT_GE(depth, 8u);
  for (uint32_t i = 0; i < depth; ++i) {
    ASSERT_EQ(post_recv(a.qp(), i, {memory.sge(0, 8)}), 0) << i << " of " << depth;
  }
  EXPECT_EQ(post_recv(a.qp(), depth, {memory.sge(0, 8)}), ENOMEM);
  Region source(b.pd(), 64);
  ASSERT_EQ(SendWr(1, IBV_WR_SEND, {source.sge(0, 8)}).post(b.qp()), 0);
  expect_success(wait_completion(a.recv_cq()), 0, IBV_WC_RECV);
  EXPECT_EQ(post_recv(a.qp(), depth, {memory.sge(0, 8)}), 0);
}

TEST(Queue, too_many_pieces_are_refused) {
  const Device device = open_device();
  QpOptions options;
  options.send_sge = options.recv_sge = 4;
  Endpoint a(device, options), b(device, options);
  Region memory(a.pd(), 64);
  connect(a, b);
  const std::vector<ibv_sge> sends(a.cap().max_send_sge + 1, memory.sge(0, 1));
  const std::vector<ibv_sge> receives(a.cap().max_recv_sge + 1, memory.sge(0, 1));
  EXPECT_EQ(SendWr(1, IBV_WR_SEND, sends).post(a.qp()), EINVAL);
  EXPECT_EQ(post_recv(a.qp(), 1, receives), EINVAL);
  ibv_recv_wr negative{1, nullptr, nullptr, -1};
  ibv_recv_wr* bad = nullptr;
  EXPECT_EQ(ibv_post_recv(a.qp(), &negative, &bad), EINVAL);
  EXPECT_EQ(bad, &negative);
}

TEST(Queue, operations_that_a_type_lacks_are_refused) {
  const Device device = open_device();
  const std::pair<ibv_qp_type, std::vector<ibv_wr_opcode>> lacking[] = {
      {IBV_QPT_UC, {IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD}},
      {IBV_QPT_UD,
       {IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM,
        IBV_WR_ATOMIC_CMP_AND_SWP}},
      {IBV_QPT_RC, {static_cast<ibv_wr_opcode>(13)}},  // a gap in the numbering
  };
  for (const auto& [type, opcodes] : lacking) {
    QpOptions options;
    options.type = type;
    Endpoint a(device, options), b(device, options);
    Region memory(a.pd(), 64);
    const Ah ah = make_ah(device, a.pd(), device.gid);
    connect(a, b);
    for (const ibv_wr_opcode opcode : opcodes) {
      SendWr wr(1, opcode, {memory.sge(0, 8)});
      if (type == IBV_QPT_UD) {
        wr.datagram(ah.get(), b.qp()->qp_num);
      }
      const int error = wr.post(a.qp());
      EXPECT_TRUE(error == EINVAL || error == EOPNOTSUPP)
          << type_name(type) << " opcode " << opcode << ": " << error;
    }
  }
}

TEST_P(QueueTest, unsignalled_sends_complete_silently_and_free_their_place) {
  QpOptions options;
  options.send_wr = 16;
  Link link(GetParam(), options, 4096);
  const uint32_t depth = link.near.cap().max_send_wr;
  // Twelve times around the queue, with one signalled request in each half of it.
  const uint32_t period = depth / 2;
  for (uint32_t i = 0; i < 12 * depth; ++i) {
    const bool is_signalled = i % period == period - 1;
    SendWr wr(i, IBV_WR_RDMA_WRITE, {link.memory.sge(0, 8)},
              is_signalled ? IBV_SEND_SIGNALED : 0);
    wr.remote(link.far.region_address(), link.far.rkey());
    ASSERT_EQ(wr.post(link.near.qp()), 0) << i;
    if (is_signalled) {
      expect_success(wait_completion(link.near.send_cq()), i, IBV_WC_RDMA_WRITE);
    }
  }
  EXPECT_TRUE(is_empty(link.near.send_cq()));
}

TEST_P(QueueTest, unsignalled_uc_sends_free_their_place_while_answers_come) {
  QpOptions options;
  options.type = IBV_QPT_UC;
  options.send_wr = 16;
  Link link(GetParam(), options, 4096);
  const uint32_t depth = link.near.cap().max_send_wr;
  for (uint32_t i = 0; i < 12 * depth; ++i) {
    const bool is_signalled = i % depth == depth - 1;
    ASSERT_EQ(post_recv(link.near.qp(), i, {}), 0);
    ASSERT_EQ(link.far.post_recv(i, {}), 0);
    ASSERT_EQ(SendWr(i, IBV_WR_SEND, {}, is_signalled ? IBV_SEND_SIGNALED : 0).post(link.near.qp()), 0) << i;
    expect_success(link.far.wait_recv(), i, IBV_WC_RECV);
    ASSERT_EQ(link.far.post_send(i, IBV_WR_SEND, {}), 0);
    expect_success(wait_completion(link.near.recv_cq()), i, IBV_WC_RECV);
    if (is_signalled) {
      expect_success(wait_completion(link.near.send_cq()), i, IBV_WC_SEND);
    }
    expect_success(link.far.wait_send(), i, IBV_WC_SEND);
  }
  EXPECT_TRUE(is_empty(link.near.send_cq()));
}

TEST_P(QueueTest, failed_unsignalled_uc_send_is_seen_by_the_next_poll) {
  QpOptions options;
  options.type = IBV_QPT_UC;
  Link link(GetParam(), options, 4096);
  // The first message finds the way to the peer, which takes some polls.
  ASSERT_EQ(link.far.post_recv(1, {}), 0);
  ASSERT_EQ(SendWr(1, IBV_WR_SEND, {}).post(link.near.qp()), 0);
  expect_success(wait_completion(link.near.send_cq()), 1, IBV_WC_SEND);
  ibv_sge stray = link.memory.sge(0, 8);
  stray.lkey = 0;
  ASSERT_EQ(SendWr(9, IBV_WR_SEND, {stray}, 0).post(link.near.qp()), 0);
  ibv_wc wc{};
  ASSERT_EQ(ibv_poll_cq(link.near.send_cq(), 1, &wc), 1);
  expect_status(wc, 9, IBV_WC_LOC_PROT_ERR);
}

TEST_P(QueueTest, signal_all_reports_unsignalled_sends_too) {
  QpOptions options;
  options.signals_all = true;
  Link link(GetParam(), options, 4096);
  for (uint64_t i = 0; i < 5; ++i) {
    SendWr wr(i, IBV_WR_RDMA_WRITE, {link.memory.sge(0, 8)}, 0);
    ASSERT_EQ(wr.remote(link.far.region_address(), link.far.rkey()).post(link.near.qp()), 0);
  }
  for (uint64_t i = 0; i < 5; ++i) {
    expect_success(wait_completion(link.near.send_cq()), i, IBV_WC_RDMA_WRITE);
  }
}

TEST_P(QueueTest, failed_unsignalled_send_is_reported) {
  Link link(GetParam(), {}, 4096);
  SendWr wr(9, IBV_WR_RDMA_WRITE, {link.memory.sge(0, 8)}, 0);
  ASSERT_EQ(wr.remote(link.far.region_address(), 0).post(link.near.qp()), 0);
  expect_status(wait_completion(link.near.send_cq()), 9, IBV_WC_REM_ACCESS_ERR);
}

TEST_P(QueueTest, fence_waits_for_the_read_before_it) {
  Link link(GetParam(), {}, 65536);
  constexpr uint32_t kSize = 32768;
  for (uint64_t round = 0; round < 20; ++round) {
    // The write sends on what the read has fetched, which is right only if it waited.
    const std::vector<Piece> source = {{0, kSize}};
    link.far.fill(source, round);
    SendWr read(1, IBV_WR_RDMA_READ, {link.memory.sge(0, kSize)}, 0);
    ASSERT_EQ(read.remote(link.far.region_address(), link.far.rkey()).post(link.near.qp()), 0);
    SendWr write(2, IBV_WR_RDMA_WRITE, {link.memory.sge(0, kSize)},
                 IBV_SEND_FENCE | IBV_SEND_SIGNALED);
    ASSERT_EQ(write.remote(link.far.region_address(kSize), link.far.rkey()).post(link.near.qp()),
              0);
    expect_success(wait_completion(link.near.send_cq()), 2, IBV_WC_RDMA_WRITE);
    for (uint64_t at = 0; at < kSize; at += 4088) {
      ASSERT_EQ(link.far.word(kSize + at), link.far.word(at)) << "round " << round;
    }
  }
}

TEST_P(QueueTest, receives_are_used_in_their_order) {
  Link link(GetParam(), {}, 65536);
  for (uint64_t i = 0; i < 40; ++i) {
    ASSERT_EQ(link.far.post_recv(i, {{i * 1024, 1024}}), 0);
  }
  for (uint64_t i = 0; i < 40; ++i) {
    const auto size = static_cast<uint32_t>(i * 25);
    ASSERT_EQ(SendWr(i, IBV_WR_SEND, {link.memory.sge(0, size)}).post(link.near.qp()), 0);
  }
  for (uint64_t i = 0; i < 40; ++i) {
    const ibv_wc wc = link.far.wait_recv();
    expect_success(wc, i, IBV_WC_RECV);
    EXPECT_EQ(wc.byte_len, i * 25);
  }
}

}  // namespace
}  // namespace ringbolt::conformance
