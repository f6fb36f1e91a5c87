#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <deque>
#include <thread>
#include <vector>

#include "abi/ex_layer.h"

namespace ringbolt::abi {
namespace {

/// A CQ whose classical poll hands out what the test put into `queue`.
struct FakeCq {
  ExtendableCq cq;
  ibv_context context = {};
  std::deque<ibv_wc> queue;
  bool is_broken = false;

  explicit FakeCq(uint32_t flags = 0) {
    context.ops.poll_cq = [](ibv_cq* handle, int room, ibv_wc* out) {
      auto& self = *static_cast<FakeCq*>(handle->cq_context);
      if (self.is_broken) {
        return -1;
      }
      int got = 0;
      for (; got < room && !self.queue.empty(); ++got) {
        out[got] = self.queue.front();
        self.queue.pop_front();
      }
      return got;
    };
    cq.ex.context = &context;
    cq.ex.cq_context = this;
    ibv_cq_init_attr_ex wanted = {};
    wanted.wc_flags = IBV_WC_STANDARD_FLAGS;
    wanted.comp_mask = flags != 0 ? IBV_CQ_INIT_ATTR_MASK_FLAGS : 0;
    wanted.flags = flags;
    EXPECT_EQ(check_cq_ex(wanted), 0);
    init_cq_ex(cq, wanted);
  }

  int start() {
    ibv_poll_cq_attr attr = {};
    return ibv_start_poll(&cq.ex, &attr);
  }
};

ibv_wc completion(uint64_t wr_id) {
  ibv_wc wc = {};
  wc.wr_id = wr_id;
  wc.status = IBV_WC_SUCCESS;
  return wc;
}

TEST(CqEx, empty_queue_is_enoent_and_needs_no_end) {
  FakeCq fake;
  EXPECT_EQ(fake.start(), ENOENT);
  EXPECT_EQ(fake.start(), ENOENT);  // expect: not blocked by the first
}

TEST(CqEx, walks_all_completions_in_order) {
  FakeCq fake;
  for (uint64_t id = 10; id < 13; ++id) {
    fake.queue.push_back(completion(id));
  }
  ASSERT_EQ(fake.start(), 0);
  EXPECT_EQ(fake.cq.ex.wr_id, 10U);
  ASSERT_EQ(ibv_next_poll(&fake.cq.ex), 0);
  EXPECT_EQ(fake.cq.ex.wr_id, 11U);
  ASSERT_EQ(ibv_next_poll(&fake.cq.ex), 0);
  EXPECT_EQ(fake.cq.ex.wr_id, 12U);
  EXPECT_EQ(ibv_next_poll(&fake.cq.ex), ENOENT);
  ibv_end_poll(&fake.cq.ex);
}

TEST(CqEx, takes_no_completion_that_was_not_asked_for) {
  FakeCq fake;
  fake.queue = {completion(1), completion(2)};
  ASSERT_EQ(fake.start(), 0);
  ibv_end_poll(&fake.cq.ex);
  EXPECT_EQ(fake.queue.size(), 1U);
}

TEST(CqEx, readers_return_the_fields_of_the_completion) {
  FakeCq fake;
  ibv_wc wc = completion(1);
  wc.status = IBV_WC_REM_ACCESS_ERR;
  wc.opcode = IBV_WC_RECV_RDMA_WITH_IMM;
  wc.vendor_err = 2;
  wc.byte_len = 3;
  wc.imm_data = 4;
  wc.qp_num = 5;
  wc.src_qp = 6;
  wc.wc_flags = IBV_WC_WITH_IMM;
  wc.slid = 8;
  wc.sl = 9;
  wc.dlid_path_bits = 10;
  fake.queue = {wc};
  ASSERT_EQ(fake.start(), 0);
  ibv_cq_ex* cq = &fake.cq.ex;
  EXPECT_EQ(cq->status, IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(ibv_wc_read_opcode(cq), IBV_WC_RECV_RDMA_WITH_IMM);
  EXPECT_EQ(ibv_wc_read_vendor_err(cq), 2U);
  EXPECT_EQ(ibv_wc_read_byte_len(cq), 3U);
  EXPECT_EQ(ibv_wc_read_imm_data(cq), 4U);
  EXPECT_EQ(ibv_wc_read_invalidated_rkey(cq), 4U);
  EXPECT_EQ(ibv_wc_read_qp_num(cq), 5U);
  EXPECT_EQ(ibv_wc_read_src_qp(cq), 6U);
  EXPECT_EQ(ibv_wc_read_wc_flags(cq), static_cast<unsigned>(IBV_WC_WITH_IMM));
  EXPECT_EQ(ibv_wc_read_slid(cq), 8U);
  EXPECT_EQ(ibv_wc_read_sl(cq), 9U);
  EXPECT_EQ(ibv_wc_read_dlid_path_bits(cq), 10U);
  ibv_end_poll(cq);
}

TEST(CqEx, broken_queue_is_an_error_and_not_empty) {
  FakeCq fake;
  fake.is_broken = true;
  EXPECT_EQ(fake.start(), EIO);
  EXPECT_EQ(fake.start(), EIO);
}

TEST(CqEx, unknown_poll_attributes_are_refused) {
  FakeCq fake;
  fake.queue = {completion(1)};
  ibv_poll_cq_attr attr = {.comp_mask = 1};
  EXPECT_EQ(ibv_start_poll(&fake.cq.ex, &attr), EINVAL);
  EXPECT_EQ(fake.queue.size(), 1U);
}

TEST(CqEx, threads_that_share_a_queue_read_each_completion_once) {
  constexpr uint64_t kCompletions = 2000;
  FakeCq fake;
  for (uint64_t id = 0; id < kCompletions; ++id) {
    ibv_wc wc = completion(id);
    wc.byte_len = static_cast<uint32_t>(id);
    fake.queue.push_back(wc);
  }
  std::vector<std::atomic<int>> seen(kCompletions);
  const auto reader = [&fake, &seen] {
    while (fake.start() == 0) {
      EXPECT_EQ(ibv_wc_read_byte_len(&fake.cq.ex), fake.cq.ex.wr_id);
      seen[fake.cq.ex.wr_id].fetch_add(1);
      ibv_end_poll(&fake.cq.ex);
    }
  };
  std::thread first(reader);
  std::thread second(reader);
  first.join();
  second.join();
  for (uint64_t id = 0; id < kCompletions; ++id) {
    EXPECT_EQ(seen[id].load(), 1) << id;
  }
}

TEST(CqEx, single_threaded_queue_takes_no_lock) {
  FakeCq fake(IBV_CREATE_CQ_ATTR_SINGLE_THREADED);
  fake.queue = {completion(1)};
  ASSERT_EQ(fake.start(), 0);
  EXPECT_TRUE(fake.cq.state.polling.try_lock());
  ibv_end_poll(&fake.cq.ex);
}

TEST(CqEx, refuses_what_it_cannot_serve) {
  ibv_cq_init_attr_ex wanted = {};
  EXPECT_EQ(check_cq_ex(wanted), 0);
  for (const uint64_t flag : {IBV_WC_EX_WITH_COMPLETION_TIMESTAMP, IBV_WC_EX_WITH_CVLAN, IBV_WC_EX_WITH_FLOW_TAG,
                              IBV_WC_EX_WITH_TM_INFO, IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK}) {
    wanted.wc_flags = IBV_WC_STANDARD_FLAGS | flag;
    EXPECT_EQ(check_cq_ex(wanted), EOPNOTSUPP) << flag;
  }
  wanted.wc_flags = 0;
  wanted.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD;
  EXPECT_EQ(check_cq_ex(wanted), EOPNOTSUPP);
  wanted.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
  wanted.flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
  EXPECT_EQ(check_cq_ex(wanted), EOPNOTSUPP);
  wanted.flags = 1U << 30;
  EXPECT_EQ(check_cq_ex(wanted), EINVAL);
  wanted.comp_mask = 1U << 30;
  EXPECT_EQ(check_cq_ex(wanted), EINVAL);
}

}  // namespace
}  // namespace ringbolt::abi
