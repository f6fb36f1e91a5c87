// Regions, windows and queues as one process sees them, with messages from a queue pair to another one of its own.

#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <poll.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

#include "abi/management.h"
#include "abi/objects.h"

#undef ibv_reg_mr
#undef ibv_reg_mr_iova

extern "C" {
struct ibv_buf;
void* ibv_alloc_buf(ibv_pd* pd, size_t size, ibv_buf** buffer);
void ibv_free_buf(ibv_buf* buffer);
ibv_mr* ibv_reg_buf_mr(ibv_pd* pd, ibv_buf* buffer, void* address, size_t length, int access);
ibv_mr* ibv_reg_mr_iova(ibv_pd* pd, void* address, size_t length, uint64_t iova, int access);
int ibv_query_port_speed(ibv_context* context, uint32_t port_num, uint64_t* speed);
}

namespace ringbolt::abi {
namespace {

constexpr unsigned kAllAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

/// The default device, a domain, a queue with a channel, and two queue pairs that are connected to each other; the
/// second one receives from a shared queue.
class MemoryTest : public ::testing::Test {
 protected:
  MemoryTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "rb-memory-XXXXXX").string();
    EXPECT_NE(::mkdtemp(pattern.data()), nullptr);
    runtime_ = pattern;
    ::setenv("RINGBOLT_RUNTIME_DIR", runtime_.c_str(), 1);
  }
  ~MemoryTest() override {
    ::unsetenv("RINGBOLT_RUNTIME_DIR");
    std::filesystem::remove_all(runtime_);
  }
  void SetUp() override {
    int count = 0;
    ibv_device** const list = ibv_get_device_list(&count);
    ASSERT_EQ(count, 1);
    context_ = ibv_open_device(list[0]);
    ibv_free_device_list(list);
    ASSERT_NE(context_, nullptr);
    pd_ = ibv_alloc_pd(context_);
    channel_ = ibv_create_comp_channel(context_);
    cq_ = ibv_create_cq(context_, 16, this, channel_, 0);
    ibv_srq_init_attr wanted{};
    wanted.attr = {8, 1, 0};
    srq_ = ibv_create_srq(pd_, &wanted);
    ASSERT_TRUE(pd_ != nullptr && channel_ != nullptr && cq_ != nullptr && srq_ != nullptr);
    for (const bool is_shared : {false, true}) {
      ibv_qp_init_attr init{};
      init.send_cq = init.recv_cq = cq_;
      init.srq = is_shared ? srq_ : nullptr;
      init.qp_type = IBV_QPT_RC;
      init.cap = {8, is_shared ? 0U : 8U, 1, is_shared ? 0U : 1U, 0};
      qps_[is_shared ? 1 : 0] = ibv_create_qp(pd_, &init);
      ASSERT_NE(qps_[is_shared ? 1 : 0], nullptr);
    }
    connect(*qps_[0], qps_[1]->qp_num);
    connect(*qps_[1], qps_[0]->qp_num);
  }
  void TearDown() override {
    for (ibv_qp* const qp : qps_) {
      EXPECT_EQ(ibv_destroy_qp(qp), 0);
    }
    EXPECT_EQ(ibv_destroy_srq(srq_), 0);
    EXPECT_EQ(ibv_destroy_cq(cq_), 0);
    EXPECT_EQ(ibv_destroy_comp_channel(channel_), 0);
    EXPECT_EQ(ibv_dealloc_pd(pd_), 0);
    EXPECT_TRUE(Context::of(context_).objects.is_empty());
    EXPECT_EQ(ibv_close_device(context_), 0);
  }
  void connect(ibv_qp& qp, uint32_t peer) {
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_INIT;
    attributes.port_num = 1;
    attributes.qp_access_flags = kAllAccess;
    ASSERT_EQ(ibv_modify_qp(&qp, &attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), 0);
    attributes.qp_state = IBV_QPS_RTR;
    attributes.path_mtu = IBV_MTU_1024;
    attributes.dest_qp_num = peer;
    attributes.max_dest_rd_atomic = 1;
    attributes.min_rnr_timer = 12;
    attributes.ah_attr.is_global = 1;
    attributes.ah_attr.port_num = 1;
    ASSERT_EQ(ibv_query_gid(context_, 1, 0, &attributes.ah_attr.grh.dgid), 0);
    ASSERT_EQ(ibv_modify_qp(&qp, &attributes,
                            IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
              0);
    attributes.qp_state = IBV_QPS_RTS;
    attributes.timeout = 14;
    attributes.retry_cnt = 7;
    attributes.rnr_retry = 7;
    attributes.max_rd_atomic = 1;
    ASSERT_EQ(ibv_modify_qp(&qp, &attributes,
                            IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                                IBV_QP_MAX_QP_RD_ATOMIC),
              0);
  }
  ibv_mr* add(unsigned access = kAllAccess) {
    return ibv_reg_mr(pd_, memory_.data(), memory_.size(), static_cast<int>(access));
  }
  uint64_t at(size_t offset) const { return reinterpret_cast<uint64_t>(memory_.data()) + offset; }
  /// A request of the first queue pair, without its end.
  int post(ibv_wr_opcode opcode, ibv_sge piece, uint64_t remote = 0, uint32_t rkey = 0) {
    ibv_send_wr wr{};
    wr.wr_id = 1;
    wr.sg_list = &piece;
    wr.num_sge = 1;
    wr.opcode = opcode;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.rdma = {remote, rkey};
    ibv_send_wr* bad = nullptr;
    return ibv_post_send(qps_[0], &wr, &bad);
  }
  void receive(ibv_sge piece) {
    ibv_recv_wr wr{};
    wr.wr_id = 2;
    wr.sg_list = &piece;
    wr.num_sge = 1;
    ibv_recv_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_srq_recv(srq_, &wr, &bad), 0);
  }
  ibv_wc wait() {
    ibv_wc wc{};
    int got = 0;
    while (got == 0) {  // the test's own deadline ends it
      got = ibv_poll_cq(cq_, 1, &wc);
    }
    EXPECT_EQ(got, 1);
    return wc;
  }
  ibv_wc_status write(uint64_t remote, uint32_t rkey, uint32_t lkey) {
    EXPECT_EQ(post(IBV_WR_RDMA_WRITE, {at(0), 8, lkey}, remote, rkey), 0);
    return wait().status;
  }

  std::string runtime_;
  ibv_context* context_ = nullptr;
  ibv_pd* pd_ = nullptr;
  ibv_comp_channel* channel_ = nullptr;
  ibv_cq* cq_ = nullptr;
  ibv_srq* srq_ = nullptr;
  std::array<ibv_qp*, 2> qps_{};
  alignas(4096) std::array<char, 8192> memory_{};
};

TEST_F(MemoryTest, a_region_may_have_another_first_address) {
  ibv_mr* const mr = ibv_reg_mr_iova(pd_, memory_.data(), memory_.size(), 0x10000, kAllAccess);
  ASSERT_NE(mr, nullptr);
  EXPECT_EQ(mr->addr, memory_.data());
  EXPECT_EQ(mr->length, memory_.size());
  std::strcpy(memory_.data(), "message");
  EXPECT_EQ(post(IBV_WR_RDMA_WRITE, {0x10000, 8, mr->lkey}, 0x10000 + 4096, mr->rkey), 0);
  EXPECT_EQ(wait().status, IBV_WC_SUCCESS);
  EXPECT_STREQ(memory_.data() + 4096, "message");
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

TEST_F(MemoryTest, a_change_of_a_region_says_what_changes) {
  ibv_mr* const mr = add();
  ASSERT_NE(mr, nullptr);
  struct Wrong {
    int flags;
    ibv_pd* pd;
    size_t length;
  };
  for (const Wrong& one : {Wrong{0, nullptr, 0}, Wrong{1 << 10, nullptr, 0}, Wrong{IBV_REREG_MR_CHANGE_PD, nullptr, 0},
                           Wrong{IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, 0}}) {
    EXPECT_EQ(ibv_rereg_mr(mr, one.flags, one.pd, memory_.data(), one.length, 0), IBV_REREG_MR_ERR_INPUT) << one.flags;
    EXPECT_EQ(errno, EINVAL);
  }
  EXPECT_EQ(write(at(4096), mr->rkey, mr->lkey), IBV_WC_SUCCESS) << "as it was";
  ASSERT_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, memory_.data(), 4096, 0), 0);
  EXPECT_EQ(mr->length, 4096U);
  EXPECT_EQ(write(at(4096), mr->rkey, mr->lkey), IBV_WC_REM_ACCESS_ERR) << "beyond it";
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

TEST_F(MemoryTest, no_region_is_not_deregistered) { EXPECT_EQ(ibv_dereg_mr(nullptr), EINVAL); }

TEST_F(MemoryTest, memory_that_peers_map_is_given_out_and_taken_back) {
  ibv_buf* buffer = nullptr;
  void* const bytes = ibv_alloc_buf(pd_, 4096, &buffer);
  ASSERT_NE(bytes, nullptr);
  ibv_mr* const mr = ibv_reg_buf_mr(pd_, buffer, bytes, 4096, kAllAccess);
  ASSERT_NE(mr, nullptr);
  std::strcpy(static_cast<char*>(bytes), "message");
  EXPECT_EQ(post(IBV_WR_RDMA_WRITE, {reinterpret_cast<uint64_t>(bytes), 8, mr->lkey},
                 reinterpret_cast<uint64_t>(bytes) + 64, mr->rkey),
            0);
  EXPECT_EQ(wait().status, IBV_WC_SUCCESS);
  EXPECT_STREQ(static_cast<char*>(bytes) + 64, "message");
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  ibv_free_buf(buffer);
  ibv_free_buf(nullptr);
}

TEST_F(MemoryTest, a_region_stays_while_a_window_is_bound_to_it) {
  ibv_mr* const mr = add(kAllAccess | IBV_ACCESS_MW_BIND);
  ibv_mw* const mw = ibv_alloc_mw(pd_, IBV_MW_TYPE_1);
  ASSERT_TRUE(mr != nullptr && mw != nullptr);
  const uint32_t before = mw->rkey;
  ibv_mw_bind wanted{};
  wanted.send_flags = IBV_SEND_SIGNALED;
  wanted.bind_info = {mr, at(0), 4096, IBV_ACCESS_REMOTE_WRITE};
  ASSERT_EQ(ibv_bind_mw(qps_[0], mw, &wanted), 0);
  EXPECT_EQ(wait().status, IBV_WC_SUCCESS);
  EXPECT_EQ(mw->rkey, ibv_inc_rkey(before));
  EXPECT_EQ(ibv_dereg_mr(mr), EBUSY);
  EXPECT_EQ(ibv_dealloc_mw(mw), 0);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

TEST_F(MemoryTest, an_event_of_a_queue_is_taken_and_acknowledged) {
  ibv_mr* const mr = add();
  receive({at(4096), 8, mr->lkey});
  ASSERT_EQ(ibv_req_notify_cq(cq_, 0), 0);
  std::strcpy(memory_.data(), "message");
  ASSERT_EQ(post(IBV_WR_SEND, {at(0), 8, mr->lkey}), 0);
  const ibv_wc first = wait();
  const ibv_wc second = wait();
  EXPECT_EQ(first.wr_id + second.wr_id, 3U) << "the send and the receive";
  EXPECT_STREQ(memory_.data() + 4096, "message");
  ibv_cq* of = nullptr;
  void* cq_context = nullptr;
  ASSERT_EQ(ibv_get_cq_event(channel_, &of, &cq_context), 0);
  EXPECT_EQ(of, cq_);
  EXPECT_EQ(cq_context, this);
  EXPECT_EQ(completions_of(*cq_).wait_for(std::chrono::milliseconds(0)), 1U);
  ibv_ack_cq_events(cq_, 1);
  EXPECT_EQ(completions_of(*cq_).wait_for(std::chrono::milliseconds(0)), 0U);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

TEST_F(MemoryTest, a_shared_queue_says_when_it_runs_low) {
  ibv_mr* const mr = add();
  receive({at(4096), 8, mr->lkey});
  receive({at(4104), 8, mr->lkey});
  ibv_srq_attr attributes{};
  attributes.srq_limit = 2;
  ASSERT_EQ(ibv_modify_srq(srq_, &attributes, IBV_SRQ_LIMIT), 0);
  ASSERT_EQ(ibv_query_srq(srq_, &attributes), 0);
  EXPECT_EQ(attributes.srq_limit, 2U);
  EXPECT_GE(attributes.max_wr, 8U);
  ASSERT_EQ(post(IBV_WR_SEND, {at(0), 8, mr->lkey}), 0);
  wait();
  wait();
  ibv_async_event event{};
  ASSERT_EQ(ibv_get_async_event(context_, &event), 0);
  EXPECT_EQ(event.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
  EXPECT_EQ(event.element.srq, srq_);
  EXPECT_EQ(asynchronous_of(*srq_).wait_for(std::chrono::milliseconds(0)), 1U);
  ibv_ack_async_event(&event);
  EXPECT_EQ(asynchronous_of(*srq_).wait_for(std::chrono::milliseconds(0)), 0U);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

TEST_F(MemoryTest, a_queue_is_made_longer_while_it_is_used) {
  EXPECT_EQ(ibv_resize_cq(cq_, 0), EINVAL);
  EXPECT_EQ(ibv_resize_cq(cq_, 64), 0);
  EXPECT_EQ(cq_->cqe, 64);
}

TEST_F(MemoryTest, a_query_gives_back_what_was_set) {
  ibv_qp_attr attributes{};
  ibv_qp_init_attr init{};
  ASSERT_EQ(ibv_query_qp(qps_[1], &attributes, IBV_QP_STATE, &init), 0);
  EXPECT_EQ(attributes.qp_state, IBV_QPS_RTS);
  EXPECT_EQ(attributes.dest_qp_num, qps_[0]->qp_num);
  EXPECT_EQ(init.send_cq, cq_);
  EXPECT_EQ(init.srq, srq_);
  EXPECT_EQ(ibv_qp_to_qp_ex(qps_[0]), nullptr) << "made by the classical call";
  uint64_t speed = 0;
  EXPECT_EQ(ibv_query_port_speed(context_, 2, &speed), EINVAL);
  EXPECT_EQ(ibv_query_port_speed(context_, 1, &speed), 0);
}

TEST_F(MemoryTest, the_connection_manager_is_told_of_ports_and_queue_pairs) {
  ringbolt_port_facts facts{};
  ASSERT_EQ(ringbolt_management_port(context_, &facts), 0);
  EXPECT_EQ(facts.netdev_index, 0U);
  EXPECT_EQ(facts.is_up, 1);
  EXPECT_EQ(facts.takes_any_local_address, 1) << "the default device stands for all addresses of the host";
  EXPECT_EQ(facts.is_on_interface, 0);
  ibv_gid gid{};
  ASSERT_EQ(ibv_query_gid(context_, 1, 0, &gid), 0);
  EXPECT_EQ(ringbolt_management_reaches(context_, &gid), 1);
  gid = {{0x20, 1}};
  EXPECT_EQ(ringbolt_management_reaches(context_, &gid), 0);
  constexpr uint32_t kNobody = 0xfffff1;
  EXPECT_EQ(ringbolt_management_has_unread(context_, kNobody), 0);
  EXPECT_EQ(ringbolt_management_awaits_answers(context_, kNobody), 0);
  EXPECT_EQ(ringbolt_management_has_queued_sends(context_, kNobody), 0);
  ibv_mr* const mr = add();
  receive({at(4096), 8, mr->lkey});
  ASSERT_EQ(post(IBV_WR_SEND, {at(0), 8, mr->lkey}), 0);
  wait();
  wait();
  EXPECT_EQ(ringbolt_management_has_unread(context_, qps_[1]->qp_num), 0);
  EXPECT_EQ(ringbolt_management_awaits_answers(context_, qps_[0]->qp_num), 0);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

TEST_F(MemoryTest, a_service_has_one_listener_at_an_address) {
  ringbolt_service one{};
  one.token = 1;
  one.service_id = 0x1234;
  one.address[15] = 1;
  ASSERT_EQ(ringbolt_management_bind(context_, &one), 0);
  ringbolt_service other = one;
  other.token = 2;
  EXPECT_EQ(ringbolt_management_bind(context_, &other), EADDRINUSE);
  other.service_id = 0x1235;
  EXPECT_EQ(ringbolt_management_bind(context_, &other), 0) << "another service";
  EXPECT_EQ(ringbolt_management_listen(context_, 1), 0);
  ringbolt_management_unbind(context_, 1);
  one.token = 3;
  EXPECT_EQ(ringbolt_management_bind(context_, &one), 0) << "free again";
  ringbolt_management_unbind(context_, 2);
  ringbolt_management_unbind(context_, 3);
}

}  // namespace
}  // namespace ringbolt::abi
