// The extended queue pair: every ibv_wr_* operation, batches, and batches thought better of.
#include <arpa/inet.h>

#include "far.h"

namespace ringbolt::conformance {
namespace {

constexpr uint64_t kReliableOps =
    IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND |
    IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
    IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW |
    IBV_QP_EX_WITH_SEND_WITH_INV;
constexpr uint64_t kUnreliableOps = IBV_QP_EX_WITH_RDMA_WRITE |
                                    IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND |
                                    IBV_QP_EX_WITH_SEND_WITH_IMM;
constexpr uint64_t kDatagramOps = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;

uint64_t operations_of(ibv_qp_type type) {
  return type == IBV_QPT_RC ? kReliableOps : type == IBV_QPT_UC ? kUnreliableOps : kDatagramOps;
}

/// A sender through the extended interface and a plain receiver in one domain.
class QpExTest : public testing::TestWithParam<ibv_qp_type> {
 protected:
  QpExTest()
      : device(open_device()),
        pd(make_pd(device)),
        send_cq(make_cq(device, 256)),
        recv_cq(make_cq(device, 256)),
        source(pd.get(), 8192, kAllAccess | IBV_ACCESS_MW_BIND),
        target(pd.get(), 8192, kAllAccess | IBV_ACCESS_MW_BIND) {
    options.type = GetParam();
    ibv_qp_init_attr_ex attr{};
    attr.send_cq = send_cq.get();
    attr.recv_cq = recv_cq.get();
    attr.cap = {64, 64, 16, 16, 128};
    attr.qp_type = GetParam();
    attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    attr.pd = pd.get();
    attr.send_ops_flags = operations_of(GetParam());
    qp.reset(must(ibv_create_qp_ex(device.context.get(), &attr), "ibv_create_qp_ex"));
    depth = attr.cap.max_send_wr;
    ex = must(ibv_qp_to_qp_ex(qp.get()), "ibv_qp_to_qp_ex");
    receiver = std::make_unique<Endpoint>(device, options,
                                          Parts{pd.get(), nullptr, nullptr, nullptr});
    connect_both();
    ah = make_ah(device, pd.get(), device.gid);
  }

  void connect_both() {
    Endpoint model(device, options);  // for its attributes only
    int mask = 0;
    ibv_qp_attr attr = model.init_attr(mask);
    must_succeed(ibv_modify_qp(qp.get(), &attr, mask), "RESET -> INIT");
    attr = model.rtr_attr(receiver->address(), mask);
    must_succeed(ibv_modify_qp(qp.get(), &attr, mask), "INIT -> RTR");
    attr = model.rts_attr(mask);
    attr.sq_psn = 5;
    must_succeed(ibv_modify_qp(qp.get(), &attr, mask), "RTR -> RTS");
    receiver->connect({qp->qp_num, 5, device.port.lid, device.gid});
  }

  void begin(uint64_t wr_id, unsigned flags = IBV_SEND_SIGNALED) {
    ibv_wr_start(ex);
    ex->wr_id = wr_id;
    ex->wr_flags = flags;
  }

  void address() {
    if (GetParam() == IBV_QPT_UD) {
      ibv_wr_set_ud_addr(ex, ah.get(), receiver->qp()->qp_num, kQkey);
    }
  }

  uint32_t header() const { return GetParam() == IBV_QPT_UD ? 40 : 0; }

  /// One posted receive, waited for; the message lands behind the header.
  ibv_wc receive() { return wait_completion(receiver->recv_cq()); }

  void expect_message(uint64_t length, uint64_t seed) {
    Region expected(pd.get(), 8192);
    expected.fill(std::vector<Piece>{{0, static_cast<uint32_t>(length)}}, seed);
    EXPECT_EQ(std::memcmp(target.data() + header(), expected.data(), length), 0);
  }

  Device device;
  Pd pd;
  Cq send_cq;
  Cq recv_cq;
  Region source;
  Region target;
  QpOptions options;
  Qp qp;
  ibv_qp_ex* ex = nullptr;
  uint32_t depth = 0;  // of the send queue, as granted
  std::unique_ptr<Endpoint> receiver;
  Ah ah;
};

std::string name_of(const testing::TestParamInfo<ibv_qp_type>& parameter) {
  return type_name(parameter.param);
}

INSTANTIATE_TEST_SUITE_P(All, QpExTest, testing::Values(IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD),
                         name_of);

TEST_P(QpExTest, send_with_one_piece) {
  source.fill(std::vector<Piece>{{0, 500}}, 1);
  ASSERT_EQ(post_recv(receiver->qp(), 7, {target.sge(0, 1024)}), 0);
  begin(3);
  ibv_wr_send(ex);
  address();
  ibv_wr_set_sge(ex, source.lkey(), source.address(), 500);
  ASSERT_EQ(ibv_wr_complete(ex), 0);
  expect_success(wait_completion(send_cq.get()), 3, IBV_WC_SEND);
  const ibv_wc wc = receive();
  expect_success(wc, 7, IBV_WC_RECV);
  EXPECT_EQ(wc.byte_len, 500 + header());
  expect_message(500, 1);
}

TEST_P(QpExTest, send_with_immediate_and_a_list) {
  const std::vector<Piece> pieces = split(700, 5);
  source.fill(pieces, 2);
  ASSERT_EQ(post_recv(receiver->qp(), 7, {target.sge(0, 1024)}), 0);
  begin(4);
  ibv_wr_send_imm(ex, htonl(99));
  address();
  const std::vector<ibv_sge> sges = source.sges(pieces);
  ibv_wr_set_sge_list(ex, sges.size(), sges.data());
  ASSERT_EQ(ibv_wr_complete(ex), 0);
  expect_success(wait_completion(send_cq.get()), 4, IBV_WC_SEND);
  const ibv_wc wc = receive();
  EXPECT_EQ(wc.byte_len, 700 + header());
  EXPECT_EQ(ntohl(wc.imm_data), 99u);
  expect_message(700, 2);
}

TEST_P(QpExTest, inline_data_and_an_inline_list) {
  ASSERT_EQ(post_recv(receiver->qp(), 1, {target.sge(0, 1024)}), 0);
  std::vector<uint8_t> text(100);
  source.fill(std::vector<Piece>{{0, 100}}, 3);
  std::copy_n(source.data(), 100, text.begin());
  begin(5, IBV_SEND_SIGNALED | IBV_SEND_INLINE);
  ibv_wr_send(ex);
  address();
  ibv_wr_set_inline_data(ex, text.data(), text.size());
  ASSERT_EQ(ibv_wr_complete(ex), 0);
  std::fill(text.begin(), text.end(), uint8_t{0});
  expect_success(wait_completion(send_cq.get()), 5, IBV_WC_SEND);
  EXPECT_EQ(receive().byte_len, 100 + header());
  expect_message(100, 3);

  ASSERT_EQ(post_recv(receiver->qp(), 2, {target.sge(0, 1024)}), 0);
  std::copy_n(source.data(), 100, text.begin());
  const ibv_data_buf parts[] = {{text.data(), 30}, {text.data() + 30, 0}, {text.data() + 30, 70}};
  begin(6, IBV_SEND_SIGNALED | IBV_SEND_INLINE);
  ibv_wr_send(ex);
  address();
  ibv_wr_set_inline_data_list(ex, 3, parts);
  ASSERT_EQ(ibv_wr_complete(ex), 0);
  expect_success(wait_completion(send_cq.get()), 6, IBV_WC_SEND);
  EXPECT_EQ(receive().byte_len, 100 + header());
  expect_message(100, 3);
}

TEST_P(QpExTest, batch_is_posted_at_once) {
  for (uint64_t i = 0; i < 10; ++i) {
    ASSERT_EQ(post_recv(receiver->qp(), i, {target.sge(0, 1024)}), 0);
  }
  ibv_wr_start(ex);
  for (uint64_t i = 0; i < 10; ++i) {
    ex->wr_id = i;
    ex->wr_flags = i == 9 ? IBV_SEND_SIGNALED : 0;
    ibv_wr_send(ex);
    address();
    ibv_wr_set_sge(ex, source.lkey(), source.address(), static_cast<uint32_t>(i));
  }
  ASSERT_EQ(ibv_wr_complete(ex), 0);
  expect_success(wait_completion(send_cq.get()), 9, IBV_WC_SEND);
  for (uint64_t i = 0; i < 10; ++i) {
    EXPECT_EQ(receive().byte_len, i + header());
  }
  EXPECT_TRUE(is_empty(send_cq.get()));
}

TEST_P(QpExTest, aborted_batch_never_was) {
  ASSERT_EQ(post_recv(receiver->qp(), 1, {target.sge(0, 1024)}), 0);
  begin(8);
  ibv_wr_send(ex);
  address();
  ibv_wr_set_sge(ex, source.lkey(), source.address(), 100);
  ibv_wr_abort(ex);
  begin(9);
  ibv_wr_send(ex);
  address();
  ibv_wr_set_sge(ex, source.lkey(), source.address(), 5);
  ASSERT_EQ(ibv_wr_complete(ex), 0);
  expect_success(wait_completion(send_cq.get()), 9, IBV_WC_SEND);
  EXPECT_EQ(receive().byte_len, 5 + header());
}

TEST_P(QpExTest, batch_that_does_not_fit_is_refused_whole) {
  ibv_wr_start(ex);
  for (uint64_t i = 0; i < uint64_t{depth} + 1; ++i) {
    ex->wr_id = i;
    ex->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_send(ex);
    address();
    ibv_wr_set_sge(ex, source.lkey(), source.address(), 8);
  }
  EXPECT_EQ(ibv_wr_complete(ex), ENOMEM);
  EXPECT_TRUE(is_empty(send_cq.get()));
}

TEST_P(QpExTest, batch_for_which_too_little_room_is_left_is_refused_whole) {
  // Nothing is received, so nothing of the first batch makes room; datagrams do not wait for a receive.
  if (GetParam() == IBV_QPT_UD) {
    GTEST_SKIP() << "datagrams complete without a receive";
  }
  const auto send = [&](uint32_t first, uint32_t count) {
    ibv_wr_start(ex);
    for (uint32_t i = first; i < first + count; ++i) {
      ex->wr_id = i;
      ex->wr_flags = IBV_SEND_SIGNALED;
      ibv_wr_send(ex);
      ibv_wr_set_sge(ex, source.lkey(), source.address(), 8);
    }
    return ibv_wr_complete(ex);
  };
  ASSERT_EQ(send(0, depth - 1), 0);
  EXPECT_EQ(send(1000, 2), ENOMEM);
  EXPECT_EQ(send(depth - 1, 1), 0);
  for (uint32_t i = 0; i < depth; ++i) {
    ASSERT_EQ(post_recv(receiver->qp(), i, {target.sge(0, 64)}), 0);
    expect_success(wait_completion(send_cq.get()), i, IBV_WC_SEND);
    receive();
  }
}

TEST_P(QpExTest, plain_posting_works_too) {
  ASSERT_EQ(post_recv(receiver->qp(), 1, {target.sge(0, 1024)}), 0);
  SendWr wr(2, IBV_WR_SEND, {source.sge(0, 10)});
  if (GetParam() == IBV_QPT_UD) {
    wr.datagram(ah.get(), receiver->qp()->qp_num);
  }
  ASSERT_EQ(wr.post(qp.get()), 0);
  expect_success(wait_completion(send_cq.get()), 2, IBV_WC_SEND);
  EXPECT_EQ(receive().byte_len, 10 + header());
}

class ConnectedQpExTest : public QpExTest {};
INSTANTIATE_TEST_SUITE_P(All, ConnectedQpExTest, testing::Values(IBV_QPT_RC, IBV_QPT_UC), name_of);

TEST_P(ConnectedQpExTest, write_and_write_with_immediate) {
  source.fill(std::vector<Piece>{{0, 600}}, 4);
  begin(1);
  ibv_wr_rdma_write(ex, target.rkey(), target.address());
  ibv_wr_set_sge(ex, source.lkey(), source.address(), 600);
  ASSERT_EQ(ibv_wr_complete(ex), 0);
  expect_success(wait_completion(send_cq.get()), 1, IBV_WC_RDMA_WRITE);
  ASSERT_EQ(post_recv(receiver->qp(), 5, {}), 0);
  begin(2);
  ibv_wr_rdma_write_imm(ex, target.rkey(), target.address(1000), htonl(31));
  ibv_wr_set_sge(ex, source.lkey(), source.address(), 600);
  ASSERT_EQ(ibv_wr_complete(ex), 0);
  expect_success(wait_completion(send_cq.get()), 2, IBV_WC_RDMA_WRITE);
  const ibv_wc wc = receive();
  expect_success(wc, 5, IBV_WC_RECV_RDMA_WITH_IMM);
  EXPECT_EQ(ntohl(wc.imm_data), 31u);
  EXPECT_EQ(wc.byte_len, 600u);
  expect_message(600, 4);
  EXPECT_EQ(std::memcmp(target.data() + 1000, source.data(), 600), 0);
}

class ReliableQpExTest : public QpExTest {};
INSTANTIATE_TEST_SUITE_P(All, ReliableQpExTest, testing::Values(IBV_QPT_RC), name_of);

TEST_P(ReliableQpExTest, read) {
  target.fill(std::vector<Piece>{{0, 900}}, 5);
  begin(1);
  ibv_wr_rdma_read(ex, target.rkey(), target.address());
  ibv_wr_set_sge(ex, source.lkey(), source.address(64), 900);
  ASSERT_EQ(ibv_wr_complete(ex), 0);
  expect_success(wait_completion(send_cq.get()), 1, IBV_WC_RDMA_READ);
  EXPECT_EQ(source.check(std::vector<Piece>{{64, 900}}, 900, 5), "");
}

TEST_P(ReliableQpExTest, atomics) {
  target.set_word(8, 40);
  begin(1);
  ibv_wr_atomic_fetch_add(ex, target.rkey(), target.address(8), 2);
  ibv_wr_set_sge(ex, source.lkey(), source.address(), 8);
  ASSERT_EQ(ibv_wr_complete(ex), 0);
  expect_success(wait_completion(send_cq.get()), 1, IBV_WC_FETCH_ADD);
  EXPECT_EQ(source.word(0), 40u);
  begin(2);
  ibv_wr_atomic_cmp_swp(ex, target.rkey(), target.address(8), 42, 7);
  ibv_wr_set_sge(ex, source.lkey(), source.address(), 8);
  ASSERT_EQ(ibv_wr_complete(ex), 0);
  expect_success(wait_completion(send_cq.get()), 2, IBV_WC_COMP_SWAP);
  EXPECT_EQ(source.word(0), 42u);
  EXPECT_EQ(target.word(8), 7u);
}

TEST_P(ReliableQpExTest, window_is_bound_and_invalidated) {
  const Mw window(must(ibv_alloc_mw(pd.get(), IBV_MW_TYPE_2), "ibv_alloc_mw"));
  const uint32_t rkey = ibv_inc_rkey(window->rkey);
  const ibv_mw_bind_info info{source.mr.get(), source.address(), 64, IBV_ACCESS_REMOTE_WRITE};
  begin(1);
  ibv_wr_bind_mw(ex, window.get(), rkey, &info);
  ASSERT_EQ(ibv_wr_complete(ex), 0);
  expect_success(wait_completion(send_cq.get()), 1, IBV_WC_BIND_MW);
  SendWr write(2, IBV_WR_RDMA_WRITE, {target.sge(0, 8)});
  ASSERT_EQ(write.remote(source.address(), rkey).post(receiver->qp()), 0);
  expect_success(wait_completion(receiver->send_cq()), 2, IBV_WC_RDMA_WRITE);
  begin(3);
  ibv_wr_local_inv(ex, rkey);
  ASSERT_EQ(ibv_wr_complete(ex), 0);
  expect_success(wait_completion(send_cq.get()), 3, IBV_WC_LOCAL_INV);
  ASSERT_EQ(write.post(receiver->qp()), 0);
  expect_status(wait_completion(receiver->send_cq()), 2, IBV_WC_REM_ACCESS_ERR);
}

TEST_P(ReliableQpExTest, send_with_invalidate) {
  const Mw window(must(ibv_alloc_mw(pd.get(), IBV_MW_TYPE_2), "ibv_alloc_mw"));
  const uint32_t rkey = ibv_inc_rkey(window->rkey);
  SendWr bind(1, IBV_WR_BIND_MW, {});
  bind.wr.bind_mw.mw = window.get();
  bind.wr.bind_mw.rkey = rkey;
  bind.wr.bind_mw.bind_info = {target.mr.get(), target.address(), 64, IBV_ACCESS_REMOTE_WRITE};
  ASSERT_EQ(bind.post(receiver->qp()), 0);
  expect_success(wait_completion(receiver->send_cq()), 1, IBV_WC_BIND_MW);
  ASSERT_EQ(post_recv(receiver->qp(), 2, {target.sge(128, 64)}), 0);
  begin(3);
  ibv_wr_send_inv(ex, rkey);
  ibv_wr_set_sge(ex, source.lkey(), source.address(), 16);
  ASSERT_EQ(ibv_wr_complete(ex), 0);
  expect_success(wait_completion(send_cq.get()), 3, IBV_WC_SEND);
  const ibv_wc wc = receive();
  EXPECT_NE(wc.wc_flags & IBV_WC_WITH_INV, 0u);
  EXPECT_EQ(wc.invalidated_rkey, rkey);
}

TEST(QpEx, plain_queue_pair_is_no_extended_one) {
  const Device device = open_device();
  const Endpoint endpoint(device, {});
  EXPECT_EQ(ibv_qp_to_qp_ex(endpoint.qp()), nullptr);
}

TEST(QpEx, operations_that_it_lacks_are_refused) {
  const Device device = open_device();
  const Pd pd = make_pd(device);
  const Cq cq = make_cq(device, 16);
  const auto refused = [&](ibv_qp_type type, uint64_t flags) {
    ibv_qp_init_attr_ex attr{};
    attr.send_cq = attr.recv_cq = cq.get();
    attr.cap = {4, 4, 1, 1, 0};
    attr.qp_type = type;
    attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    attr.pd = pd.get();
    attr.send_ops_flags = flags;
    errno = 0;
    EXPECT_EQ(ibv_create_qp_ex(device.context.get(), &attr), nullptr) << flags;
    EXPECT_TRUE(errno == EOPNOTSUPP || errno == EINVAL) << errno;
  };
  refused(IBV_QPT_RC, IBV_QP_EX_WITH_TSO);
  refused(IBV_QPT_RC, 1ull << 40);
  refused(IBV_QPT_UC, IBV_QP_EX_WITH_RDMA_READ);
  refused(IBV_QPT_UD, IBV_QP_EX_WITH_RDMA_WRITE);
}

TEST(QpEx, domain_alone_makes_a_plain_queue_pair) {
  const Device device = open_device();
  const Pd pd = make_pd(device);
  const Cq cq = make_cq(device, 16);
  ibv_qp_init_attr_ex attr{};
  attr.send_cq = attr.recv_cq = cq.get();
  attr.cap = {4, 4, 1, 1, 0};
  attr.qp_type = IBV_QPT_RC;
  attr.comp_mask = IBV_QP_INIT_ATTR_PD;
  attr.pd = pd.get();
  const Qp qp(must(ibv_create_qp_ex(device.context.get(), &attr), "ibv_create_qp_ex"));
  EXPECT_GE(attr.cap.max_send_wr, 4u);
  EXPECT_EQ(qp->pd, pd.get());
}

}  // namespace
}  // namespace ringbolt::conformance
