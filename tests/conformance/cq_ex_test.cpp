// The extended completion queue: polled entry by entry, every announced field readable.
#include <arpa/inet.h>

#include "deadline.h"
#include "far.h"

namespace ringbolt::conformance {
namespace {

using CqEx = std::unique_ptr<ibv_cq_ex, void (*)(ibv_cq_ex*)>;

CqEx make_cq_ex(const Device& device, int entries, uint64_t flags,
                ibv_comp_channel* channel = nullptr) {
  ibv_cq_init_attr_ex attr{};
  attr.cqe = static_cast<uint32_t>(entries);
  attr.channel = channel;
  attr.wc_flags = flags;
  ibv_cq_ex* cq = must(ibv_create_cq_ex(device.context.get(), &attr), "ibv_create_cq_ex");
  return {cq, [](ibv_cq_ex* dead) { EXPECT_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(dead)), 0); }};
}

/// Starts a poll when an entry is there; throws when none comes in time.
void start_poll(ibv_cq_ex* cq) {
  ibv_poll_cq_attr attr{};
  int error = ENOENT;
  const bool is_started = wait_until([&] {
    error = ibv_start_poll(cq, &attr);
    return error != ENOENT;
  });
  if (!is_started || error != 0) {
    throw SetUpError("ibv_start_poll: " + std::to_string(error));
  }
}

class CqExTest : public testing::Test {
 protected:
  CqExTest()
      : device(open_device()),
        cq(make_cq_ex(device, 64, IBV_WC_STANDARD_FLAGS)),
        pd(make_pd(device)),
        memory(pd.get(), 4096) {}

  Parts parts() const {
    return {pd.get(), nullptr, ibv_cq_ex_to_cq(cq.get()), nullptr};
  }

  Device device;
  CqEx cq;
  Pd pd;
  Region memory;
};

TEST_F(CqExTest, empty_queue_starts_no_poll) {
  ibv_poll_cq_attr attr{};
  EXPECT_EQ(ibv_start_poll(cq.get(), &attr), ENOENT);
}

TEST_F(CqExTest, unknown_poll_attributes_are_refused) {
  ibv_poll_cq_attr attr{1};
  EXPECT_EQ(ibv_start_poll(cq.get(), &attr), EINVAL);
}

TEST_F(CqExTest, batch_is_walked_in_order) {
  Endpoint a(device, {}, {pd.get(), nullptr, nullptr, nullptr}), b(device, {}, parts());
  connect(a, b);
  for (uint64_t i = 0; i < 10; ++i) {
    ASSERT_EQ(post_recv(b.qp(), i, {memory.sge(0, 64)}), 0);
  }
  for (uint64_t i = 0; i < 10; ++i) {
    SendWr wr(i, IBV_WR_SEND_WITH_IMM, {memory.sge(64, static_cast<uint32_t>(i))});
    ASSERT_EQ(wr.immediate(static_cast<uint32_t>(70 + i)).post(a.qp()), 0);
  }
  wait_completions(a.send_cq(), 10);
  uint64_t next = 0;
  while (next < 10) {
    start_poll(cq.get());
    do {
      EXPECT_EQ(cq->status, IBV_WC_SUCCESS);
      EXPECT_EQ(cq->wr_id, next);
      EXPECT_EQ(ibv_wc_read_opcode(cq.get()), IBV_WC_RECV);
      EXPECT_EQ(ibv_wc_read_byte_len(cq.get()), next);
      EXPECT_EQ(ibv_wc_read_qp_num(cq.get()), b.qp()->qp_num);
      EXPECT_NE(ibv_wc_read_wc_flags(cq.get()) & IBV_WC_WITH_IMM, 0u);
      EXPECT_EQ(ntohl(ibv_wc_read_imm_data(cq.get())), 70 + next);
      EXPECT_EQ(ibv_wc_read_slid(cq.get()), device.port.lid);
      EXPECT_EQ(ibv_wc_read_sl(cq.get()), 0);
      EXPECT_EQ(ibv_wc_read_dlid_path_bits(cq.get()), 0);
      ++next;
    } while (ibv_next_poll(cq.get()) == 0);
    ibv_end_poll(cq.get());
  }
}

TEST_F(CqExTest, datagram_names_its_sender) {
  QpOptions options;
  options.type = IBV_QPT_UD;
  Endpoint a(device, options, {pd.get(), nullptr, nullptr, nullptr});
  Endpoint b(device, options, parts());
  connect(a, b);
  const Ah ah = make_ah(device, pd.get(), device.gid);
  ASSERT_EQ(post_recv(b.qp(), 1, {memory.sge(0, 128)}), 0);
  SendWr wr(2, IBV_WR_SEND, {memory.sge(256, 8)});
  ASSERT_EQ(wr.datagram(ah.get(), b.qp()->qp_num).post(a.qp()), 0);
  start_poll(cq.get());
  EXPECT_EQ(cq->wr_id, 1u);
  EXPECT_EQ(ibv_wc_read_src_qp(cq.get()), a.qp()->qp_num);
  EXPECT_NE(ibv_wc_read_wc_flags(cq.get()) & IBV_WC_GRH, 0u);
  EXPECT_EQ(ibv_wc_read_byte_len(cq.get()), 48u);
  ibv_end_poll(cq.get());
}

TEST_F(CqExTest, error_completion_shows_its_status) {
  Endpoint b(device, {}, parts());
  ASSERT_EQ(b.to_init(), 0);
  ASSERT_EQ(post_recv(b.qp(), 9, {}), 0);
  ASSERT_EQ(b.to_state(IBV_QPS_ERR), 0);
  start_poll(cq.get());
  EXPECT_EQ(cq->status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(cq->wr_id, 9u);
  ibv_wc_read_vendor_err(cq.get());
  EXPECT_EQ(ibv_next_poll(cq.get()), ENOENT);
  ibv_end_poll(cq.get());
}

TEST_F(CqExTest, entry_that_was_polled_is_gone) {
  Endpoint b(device, {}, parts());
  ASSERT_EQ(b.to_init(), 0);
  ASSERT_EQ(post_recv(b.qp(), 1, {}), 0);
  ASSERT_EQ(post_recv(b.qp(), 2, {}), 0);
  ASSERT_EQ(b.to_state(IBV_QPS_ERR), 0);
  start_poll(cq.get());
  EXPECT_EQ(cq->wr_id, 1u);
  ibv_end_poll(cq.get());
  start_poll(cq.get());
  EXPECT_EQ(cq->wr_id, 2u);
  ibv_end_poll(cq.get());
  ibv_poll_cq_attr attr{};
  EXPECT_EQ(ibv_start_poll(cq.get(), &attr), ENOENT);
}

TEST_F(CqExTest, plain_polling_works_too) {
  Endpoint b(device, {}, parts());
  ASSERT_EQ(b.to_init(), 0);
  ASSERT_EQ(post_recv(b.qp(), 4, {}), 0);
  ASSERT_EQ(b.to_state(IBV_QPS_ERR), 0);
  expect_status(wait_completion(ibv_cq_ex_to_cq(cq.get())), 4, IBV_WC_WR_FLUSH_ERR);
}

TEST(CqEx, timestamps_do_not_run_backwards) {
  const Device device = open_device();
  ibv_cq_init_attr_ex attr{};
  attr.cqe = 16;
  attr.wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_BYTE_LEN;
  ibv_cq_ex* raw = ibv_create_cq_ex(device.context.get(), &attr);
  if (raw == nullptr) {
    ASSERT_EQ(errno, EOPNOTSUPP);
    GTEST_SKIP() << "this device has no timestamps";
  }
  const CqEx cq(raw, [](ibv_cq_ex* dead) { ibv_destroy_cq(ibv_cq_ex_to_cq(dead)); });
  Endpoint b(device, {}, {nullptr, nullptr, ibv_cq_ex_to_cq(raw), nullptr});
  ASSERT_EQ(b.to_init(), 0);
  ASSERT_EQ(post_recv(b.qp(), 1, {}), 0);
  ASSERT_EQ(post_recv(b.qp(), 2, {}), 0);
  ASSERT_EQ(b.to_state(IBV_QPS_ERR), 0);
  start_poll(raw);
  const uint64_t first = ibv_wc_read_completion_ts(raw);
  ibv_end_poll(raw);
  start_poll(raw);
  EXPECT_GE(ibv_wc_read_completion_ts(raw), first);
  ibv_end_poll(raw);
}

TEST(CqEx, what_it_cannot_do_is_refused) {
  const Device device = open_device();
  ibv_cq_init_attr_ex attr{};
  attr.cqe = 16;
  attr.wc_flags = IBV_WC_EX_WITH_FLOW_TAG;
  EXPECT_EQ(ibv_create_cq_ex(device.context.get(), &attr), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  attr.wc_flags = 0;
  attr.comp_mask = 1u << 30;
  EXPECT_EQ(ibv_create_cq_ex(device.context.get(), &attr), nullptr);
  EXPECT_TRUE(errno == EINVAL || errno == EOPNOTSUPP) << errno;
}

}  // namespace
}  // namespace ringbolt::conformance
