// Objects of one process on the default device: what stands between them, and in which order they may go.

#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "abi/objects.h"

namespace ringbolt::abi {
namespace {

/// The default device, in a runtime folder of its own.
class ContextTest : public ::testing::Test {
 protected:
  ContextTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "rb-context-XXXXXX").string();
    EXPECT_NE(::mkdtemp(pattern.data()), nullptr);
    runtime_ = pattern;
    ::setenv("RINGBOLT_RUNTIME_DIR", runtime_.c_str(), 1);
    context_ = open();
  }
  ~ContextTest() override {
    if (context_ != nullptr) {
      EXPECT_TRUE(Context::of(context_).objects.is_empty()) << "an object was counted that is gone";
      ibv_close_device(context_);
    }
    ::unsetenv("RINGBOLT_RUNTIME_DIR");
    std::filesystem::remove_all(runtime_);
  }
  void SetUp() override { ASSERT_NE(context_, nullptr); }

  static ibv_context* open() {
    int count = 0;
    ibv_device** const list = ibv_get_device_list(&count);
    ibv_context* const context = count == 1 ? ibv_open_device(list[0]) : nullptr;
    ibv_free_device_list(list);
    return context;
  }
  bool is_empty() const { return Context::of(context_).objects.is_empty(); }

  std::string runtime_;
  ibv_context* context_ = nullptr;
  alignas(4096) std::array<std::byte, 4096> memory_{};
};

TEST_F(ContextTest, begins_without_objects_and_outlives_its_list) {
  EXPECT_TRUE(is_empty());
  EXPECT_EQ(wide_verbs_context(context_)->known.sz, sizeof(WideVerbsContext));
  EXPECT_EQ(context_->abi_compat, kHasVerbsContext);
  EXPECT_GT(context_->num_comp_vectors, 0);
  EXPECT_STREQ(ibv_get_device_name(context_->device), context_->device->name) << "though its list is freed";
}

TEST_F(ContextTest, each_object_counts_until_it_is_destroyed) {
  ibv_pd* const pd = ibv_alloc_pd(context_);
  ASSERT_NE(pd, nullptr);
  EXPECT_FALSE(is_empty());
  ibv_mr* const mr = ibv_reg_mr(pd, memory_.data(), memory_.size(), IBV_ACCESS_LOCAL_WRITE);
  ASSERT_NE(mr, nullptr);
  EXPECT_EQ(ibv_dealloc_pd(pd), EBUSY);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  EXPECT_FALSE(is_empty()) << "the domain";
  EXPECT_EQ(ibv_dealloc_pd(pd), 0);
  EXPECT_TRUE(is_empty());
  ibv_comp_channel* const channel = ibv_create_comp_channel(context_);
  ibv_cq* const cq = ibv_create_cq(context_, 4, nullptr, channel, 0);
  ASSERT_NE(cq, nullptr);
  EXPECT_EQ(ibv_destroy_comp_channel(channel), EBUSY);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
  EXPECT_EQ(ibv_destroy_comp_channel(channel), 0);
  EXPECT_TRUE(is_empty());
}

TEST_F(ContextTest, queues_go_when_nothing_is_on_them) {
  ibv_pd* const pd = ibv_alloc_pd(context_);
  ibv_cq* const cq = ibv_create_cq(context_, 4, nullptr, nullptr, 0);
  ibv_srq_init_attr shared{};
  shared.attr = {4, 1, 0};
  ibv_srq* const srq = ibv_create_srq(pd, &shared);
  ASSERT_NE(srq, nullptr);
  ibv_qp_init_attr wanted{};
  wanted.send_cq = wanted.recv_cq = cq;
  wanted.srq = srq;
  wanted.qp_type = IBV_QPT_RC;
  wanted.cap = {4, 0, 1, 0, 0};
  ibv_qp* const qp = ibv_create_qp(pd, &wanted);
  ASSERT_NE(qp, nullptr);
  EXPECT_EQ(ibv_destroy_cq(cq), EBUSY);
  EXPECT_EQ(ibv_destroy_srq(srq), EBUSY);
  EXPECT_EQ(ibv_dealloc_pd(pd), EBUSY);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
  EXPECT_EQ(ibv_destroy_srq(srq), 0);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
  EXPECT_EQ(ibv_dealloc_pd(pd), 0);
}

TEST_F(ContextTest, what_is_refused_counts_nowhere) {
  ibv_pd* const pd = ibv_alloc_pd(context_);
  EXPECT_EQ(ibv_reg_mr(pd, memory_.data(), memory_.size(), IBV_ACCESS_REMOTE_WRITE), nullptr)
      << "10.6.3: remote write needs local write";
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(ibv_create_cq(context_, 0, nullptr, nullptr, 0), nullptr);
  EXPECT_EQ(ibv_create_cq(context_, 1, nullptr, nullptr, context_->num_comp_vectors), nullptr);
  ibv_ah_attr nowhere{};
  EXPECT_EQ(ibv_create_ah(pd, &nowhere), nullptr);
  EXPECT_EQ(ibv_dealloc_pd(pd), 0) << "nothing uses it";
}

TEST_F(ContextTest, an_address_handle_to_the_port_itself) {
  ibv_pd* const pd = ibv_alloc_pd(context_);
  ibv_ah_attr attributes{};
  attributes.is_global = 1;
  attributes.port_num = 1;
  ASSERT_EQ(ibv_query_gid(context_, 1, 0, &attributes.grh.dgid), 0);
  ibv_ah* const ah = ibv_create_ah(pd, &attributes);
  ASSERT_NE(ah, nullptr);
  EXPECT_TRUE(device::AddressHandle::of(ah).is_loopback);
  EXPECT_FALSE(device::AddressHandle::of(ah).is_remote);
  EXPECT_EQ(ibv_dealloc_pd(pd), EBUSY);
  EXPECT_EQ(ibv_destroy_ah(ah), 0);
  EXPECT_EQ(ibv_dealloc_pd(pd), 0);
}

TEST_F(ContextTest, objects_work_on_when_their_context_is_closed) {
  ibv_context* const other = open();
  ASSERT_NE(other, nullptr);
  ibv_pd* const pd = ibv_alloc_pd(other);
  ibv_mr* const mr = ibv_reg_mr(pd, memory_.data(), memory_.size(), IBV_ACCESS_LOCAL_WRITE);
  EXPECT_EQ(ibv_close_device(other), 0);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  EXPECT_EQ(ibv_dealloc_pd(pd), 0);
}

/// What `act` returns in a child, which ends with it; -1: it did not end in time.
template <class Act>
int in_child(Act&& act) {
  const pid_t child = ::fork();
  if (child == 0) {
    constexpr unsigned kDeadlineSeconds = 20;
    ::alarm(kDeadlineSeconds);
    ::_exit(act() & 0xff);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_F(ContextTest, what_is_left_of_a_closed_one_does_not_work_in_a_child) {
  // The memory of its queues is the parent's: a child that polled would take the parent's completions.
  ibv_context* const other = open();
  ASSERT_NE(other, nullptr);
  ibv_cq* const cq = ibv_create_cq(other, 4, nullptr, nullptr, 0);
  ASSERT_NE(cq, nullptr);
  EXPECT_EQ(ibv_close_device(other), 0);
  ibv_wc wc{};
  EXPECT_EQ(ibv_poll_cq(cq, 1, &wc), 0);
  EXPECT_EQ(in_child([&] { return ibv_req_notify_cq(cq, 0); }), ENODEV);
  EXPECT_EQ(in_child([&] { return ibv_poll_cq(cq, 1, &wc) < 0 ? 7 : 0; }), 7);
  EXPECT_EQ(ibv_poll_cq(cq, 1, &wc), 0) << "it works on here";
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
}

TEST_F(ContextTest, a_child_waits_for_no_event_that_its_parent_took) {
  ibv_pd* const pd = ibv_alloc_pd(context_);
  ibv_srq_init_attr wanted{};
  wanted.attr = {4, 1, 0};
  ibv_srq* const srq = ibv_create_srq(pd, &wanted);
  ASSERT_NE(srq, nullptr);
  asynchronous_of(*srq).take();  // as ibv_get_async_event does in another thread, which the child has not
  EXPECT_EQ(in_child([&] { return ibv_destroy_srq(srq); }), 0);
  ibv_async_event event{};
  event.event_type = IBV_EVENT_SRQ_LIMIT_REACHED;
  event.element.srq = srq;
  ibv_ack_async_event(&event);
  EXPECT_EQ(ibv_destroy_srq(srq), 0);
  EXPECT_EQ(ibv_dealloc_pd(pd), 0);
}

TEST_F(ContextTest, a_region_counts_where_its_domain_is) {
  ibv_context* const other = open();
  ASSERT_NE(other, nullptr);
  ibv_pd* const pd = ibv_alloc_pd(context_);
  ibv_pd* const elsewhere = ibv_alloc_pd(other);
  ibv_mr* const mr = ibv_reg_mr(pd, memory_.data(), memory_.size(), IBV_ACCESS_LOCAL_WRITE);
  ASSERT_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, elsewhere, nullptr, 0, 0), 0);
  EXPECT_EQ(mr->context, other);
  EXPECT_EQ(ibv_dealloc_pd(pd), 0);
  EXPECT_TRUE(is_empty()) << "nothing of it is here";
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  EXPECT_EQ(ibv_dealloc_pd(elsewhere), 0);
  EXPECT_TRUE(Context::of(other).objects.is_empty()) << "nor less than nothing there";
  EXPECT_EQ(ibv_close_device(other), 0);
}

TEST_F(ContextTest, gid_and_pkey_tables_end_where_they_say) {
  ibv_gid gid{};
  ibv_port_attr port{};
  ASSERT_EQ(ibv_query_port(context_, 1, &port), 0);
  EXPECT_EQ(ibv_query_gid(context_, 1, port.gid_tbl_len - 1, &gid), 0);
  EXPECT_EQ(ibv_query_gid(context_, 1, port.gid_tbl_len, &gid), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(ibv_query_gid(context_, 1, -1, &gid), -1);
  EXPECT_EQ(ibv_query_gid(context_, 2, 0, &gid), -1);
  __be16 pkey = 0;
  EXPECT_EQ(ibv_query_pkey(context_, 1, 0, &pkey), 0);
  EXPECT_EQ(pkey, 0xffff) << "the default P_Key (10.9.1.2), full member";
  EXPECT_EQ(ibv_query_pkey(context_, 1, 1, &pkey), -1);
  EXPECT_EQ(ibv_get_pkey_index(context_, 1, 0xffff), 0);
  EXPECT_EQ(ibv_get_pkey_index(context_, 1, 0x1234), -1);
}

}  // namespace
}  // namespace ringbolt::abi
