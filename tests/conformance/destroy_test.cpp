// Destruction: refused while in use, possible in every order that programs use otherwise.
#include <algorithm>
#include <memory>
#include <thread>

#include "deadline.h"
#include "far.h"

namespace ringbolt::conformance {
namespace {

class DestroyTest : public testing::Test {
 protected:
  DestroyTest() : device(open_device()), pd(make_pd(device)) {}

  Parts parts() const { return {pd.get(), nullptr, nullptr, nullptr}; }

  Device device;
  Pd pd;
};

TEST_F(DestroyTest, domain_with_a_queue_pair_is_busy) {
  const Endpoint endpoint(device, {}, parts());
  EXPECT_EQ(ibv_dealloc_pd(pd.get()), EBUSY);
}

TEST_F(DestroyTest, domain_with_a_region_is_busy) {
  const Region region(pd.get(), 64);
  EXPECT_EQ(ibv_dealloc_pd(pd.get()), EBUSY);
}

TEST_F(DestroyTest, domain_with_an_address_handle_is_busy) {
  const Ah ah = make_ah(device, pd.get(), device.gid);
  EXPECT_EQ(ibv_dealloc_pd(pd.get()), EBUSY);
}

TEST_F(DestroyTest, domain_with_a_shared_queue_is_busy) {
  ibv_srq_init_attr attr{nullptr, {16, 1, 0}};
  const Srq srq(must(ibv_create_srq(pd.get(), &attr), "ibv_create_srq"));
  EXPECT_EQ(ibv_dealloc_pd(pd.get()), EBUSY);
}

TEST_F(DestroyTest, domain_with_a_window_is_busy) {
  const Mw window(must(ibv_alloc_mw(pd.get(), IBV_MW_TYPE_1), "ibv_alloc_mw"));
  EXPECT_EQ(ibv_dealloc_pd(pd.get()), EBUSY);
}

TEST_F(DestroyTest, completion_queues_of_a_queue_pair_are_busy) {
  const Endpoint endpoint(device, {}, parts());
  EXPECT_EQ(ibv_destroy_cq(endpoint.send_cq()), EBUSY);
  EXPECT_EQ(ibv_destroy_cq(endpoint.recv_cq()), EBUSY);
}

TEST_F(DestroyTest, shared_queue_of_a_queue_pair_is_busy) {
  ibv_srq_init_attr attr{nullptr, {16, 1, 0}};
  const Srq srq(must(ibv_create_srq(pd.get(), &attr), "ibv_create_srq"));
  const Endpoint endpoint(device, {}, {pd.get(), nullptr, nullptr, srq.get()});
  EXPECT_EQ(ibv_destroy_srq(srq.get()), EBUSY);
}

TEST_F(DestroyTest, channel_of_a_completion_queue_is_busy) {
  const Channel channel = make_channel(device);
  const Cq cq = make_cq(device, 4, channel.get());
  EXPECT_EQ(ibv_destroy_comp_channel(channel.get()), EBUSY);
}

/// How a queue pair ends while what has come for it lies unpolled.
class EndTest : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(All, EndTest, testing::Values("error", "reset", "destroyed"),
                         [](const auto& one) { return std::string(one.param); });

TEST_P(EndTest, answers_what_has_come) {
  // A card has acknowledged the message by now, polled for or not: its sender must not find it flushed.
  const Device device = open_device();
  const Pd pd = make_pd(device);
  Endpoint a(device, {}, {pd.get(), nullptr, nullptr, nullptr});
  auto b = std::make_unique<Endpoint>(device, QpOptions{}, Parts{pd.get(), nullptr, nullptr, nullptr});
  connect(a, *b);
  Region memory(pd.get(), 64);
  // Once one message has come through, the next one is there as soon as it is posted.
  ASSERT_EQ(post_recv(b->qp(), 0, {}), 0);
  ASSERT_EQ(SendWr(0, IBV_WR_SEND, {}).post(a.qp()), 0);
  expect_success(wait_completion(b->recv_cq()), 0, IBV_WC_RECV);
  expect_success(wait_completion(a.send_cq()), 0, IBV_WC_SEND);
  ASSERT_EQ(post_recv(b->qp(), 1, {memory.sge(8, 8)}), 0);
  ASSERT_EQ(SendWr(2, IBV_WR_SEND, {memory.sge(0, 8)}).post(a.qp()), 0);
  if (GetParam() == std::string("destroyed")) {
    b.reset();
  } else {
    ASSERT_EQ(b->to_state(GetParam() == std::string("error") ? IBV_QPS_ERR : IBV_QPS_RESET), 0);
  }
  ASSERT_EQ(a.to_state(IBV_QPS_ERR), 0);
  expect_success(wait_completion(a.send_cq()), 2, IBV_WC_SEND);
}

TEST_P(EndTest, answers_all_of_a_lane_that_has_come) {
  constexpr uint64_t kMessages = 200;
  const Device device = open_device();
  const Pd pd = make_pd(device);
  QpOptions options;
  options.send_wr = options.recv_wr = 256;
  Endpoint a(device, options, {pd.get(), nullptr, nullptr, nullptr});
  auto b = std::make_unique<Endpoint>(device, options, Parts{pd.get(), nullptr, nullptr, nullptr});
  connect(a, *b);
  Region memory(pd.get(), 64);
  ASSERT_EQ(post_recv(b->qp(), 0, {}), 0);
  ASSERT_EQ(SendWr(0, IBV_WR_SEND, {}).post(a.qp()), 0);
  expect_success(wait_completion(b->recv_cq()), 0, IBV_WC_RECV);
  expect_success(wait_completion(a.send_cq()), 0, IBV_WC_SEND);
  for (uint64_t i = 1; i <= kMessages; ++i) {
    ASSERT_EQ(post_recv(b->qp(), i, {memory.sge(8, 8)}), 0);
  }
  for (uint64_t i = 1; i <= kMessages; ++i) {
    ASSERT_EQ(SendWr(i, IBV_WR_SEND, {memory.sge(0, 8)}).post(a.qp()), 0);
  }
  if (GetParam() == std::string("destroyed")) {
    b.reset();
  } else {
    ASSERT_EQ(b->to_state(GetParam() == std::string("error") ? IBV_QPS_ERR : IBV_QPS_RESET), 0);
  }
  ASSERT_EQ(a.to_state(IBV_QPS_ERR), 0);
  const std::vector<ibv_wc> done = wait_completions(a.send_cq(), kMessages);
  for (uint64_t i = 1; i <= kMessages; ++i) {
    expect_success(done[i - 1], i, IBV_WC_SEND);
  }
}

TEST_F(DestroyTest, region_with_a_bound_window_is_busy) {
  Endpoint a(device, {}, parts()), b(device, {}, parts());
  connect(a, b);
  Region region(pd.get(), 4096, kAllAccess | IBV_ACCESS_MW_BIND);
  const Mw window(must(ibv_alloc_mw(pd.get(), IBV_MW_TYPE_1), "ibv_alloc_mw"));
  ibv_mw_bind bind{1, IBV_SEND_SIGNALED, {region.mr.get(), region.address(), 64, IBV_ACCESS_REMOTE_WRITE}};
  ASSERT_EQ(ibv_bind_mw(a.qp(), window.get(), &bind), 0);
  expect_success(wait_completion(a.send_cq()), 1, IBV_WC_BIND_MW);
  const int error = ibv_dereg_mr(region.mr.get());
  if (error == 0) {
    (void)region.mr.release();
    FAIL() << "a region with a bound window was deregistered";
  }
  EXPECT_TRUE(error == EBUSY || error == EINVAL) << error;
  bind.bind_info.length = 0;
  ASSERT_EQ(ibv_bind_mw(a.qp(), window.get(), &bind), 0);
  expect_success(wait_completion(a.send_cq()), 1, IBV_WC_BIND_MW);
}

TEST_F(DestroyTest, dereg_of_nothing_is_invalid) { EXPECT_EQ(ibv_dereg_mr(nullptr), EINVAL); }

class DestroyPlacementTest : public testing::TestWithParam<Placement> {};
INSTANTIATE_TEST_SUITE_P(All, DestroyPlacementTest, testing::ValuesIn(kPlacements), parameter_name);

TEST_P(DestroyPlacementTest, queue_pair_with_posted_work_can_be_destroyed) {
  Link link(GetParam(), {}, 1 << 20);
  for (uint64_t i = 0; i < 16; ++i) {
    ASSERT_EQ(post_recv(link.near.qp(), i, {link.memory.sge(0, 64)}), 0);
    ASSERT_EQ(SendWr(i, IBV_WR_SEND, {link.memory.sge(0, 300000)}).post(link.near.qp()), 0);
  }
  link.near.destroy_qp();
}

TEST_P(DestroyPlacementTest, peer_with_posted_work_can_be_destroyed_first) {
  Link link(GetParam(), {}, 1 << 20);
  for (uint64_t i = 0; i < 16; ++i) {
    ASSERT_EQ(link.far.post_recv(i, {{0, 64}}), 0);
    ASSERT_EQ(SendWr(i, IBV_WR_SEND, {link.memory.sge(0, 64)}).post(link.near.qp()), 0);
  }
  link.far.destroy_qp();
  // The first sends may have made it; the others end with an error, none is forgotten.
  const std::vector<ibv_wc> done = wait_completions(link.near.send_cq(), 16);
  EXPECT_TRUE(done.front().status == IBV_WC_SUCCESS || done.front().status == IBV_WC_RETRY_EXC_ERR)
      << describe(done.front());
}

TEST_P(DestroyPlacementTest, regions_can_go_before_their_queue_pair) {
  constexpr uint32_t kBytes = 1 << 20;
  Link link(GetParam(), {}, kBytes);
  const std::vector<Piece> all{{0, kBytes}};
  link.memory.fill(all, 1);
  for (uint64_t i = 0; i < 4; ++i) {
    ASSERT_EQ(SendWr(i, IBV_WR_SEND, {link.memory.sge(0, kBytes)}).post(link.near.qp()), 0);
  }
  link.memory.mr.reset();
  link.memory.fill(all, 2);
  ASSERT_EQ(link.far.post_recv(1, {{0, kBytes}}), 0);
  // Data from memory that is no longer registered must not arrive as if it were. On a network what was registered when
  // it was posted may be under way, and then comes as it was; the others have no receive to go to.
  const std::vector<ibv_wc> done = wait_completions(link.near.send_cq(), 2);
  if (done[0].status == IBV_WC_SUCCESS) {
    EXPECT_EQ(link.far.check({{0, kBytes}}, kBytes, 1), "");
  }
  EXPECT_NE(done[1].status, IBV_WC_SUCCESS) << describe(done[1]);
}

// Once the queue pair and the registration are gone the memory is the program's alone.
TEST(Destroy, copy_under_way_ends_before_the_registration_does) {
  constexpr uint32_t kSize = 192U << 20U;
  constexpr uint32_t kEnd = 4096;
  for (const bool is_reset : {false, true}) {
    SCOPED_TRACE(is_reset ? "reset" : "destroyed");
    Link link(Placement::other_process, {}, kSize);
    const volatile uint8_t& first = link.memory.data()[0];
    const uint8_t before = first;
    link.far.set_word(0, ~link.memory.word(0));
    std::thread writer([&, address = link.memory.address(), rkey = link.memory.rkey()] {
      EXPECT_EQ(link.far.post_send(1, IBV_WR_RDMA_WRITE, {{0, kSize}}, IBV_SEND_SIGNALED, address, rkey), 0);
    });
    for (const Deadline deadline; first == before && !deadline.has_passed();) {
      // Not wait_until(), which gives the core away: the copy takes some 20 ms.
    }
    if (is_reset) {
      EXPECT_EQ(link.near.to_state(IBV_QPS_RESET), 0);
    } else {
      link.near.destroy_qp();
    }
    link.memory.mr.reset();
    const auto last = link.memory.bytes().subspan(kSize - kEnd);
    std::ranges::fill(last, uint8_t{0});
    writer.join();
    EXPECT_TRUE(std::ranges::all_of(last, [](uint8_t byte) { return byte == 0; })) << "the copy went on";
    link.far.destroy_qp();
  }
}

TEST(Destroy, completions_of_a_destroyed_queue_pair_do_no_harm) {
  const Device device = open_device();
  const Pd pd = make_pd(device);
  const Cq cq = make_cq(device, 64);
  Region memory(pd.get(), 64);
  const Parts parts{pd.get(), cq.get(), cq.get(), nullptr};
  auto a = std::make_unique<Endpoint>(device, QpOptions{}, parts);
  auto b = std::make_unique<Endpoint>(device, QpOptions{}, parts);
  connect(*a, *b);
  ASSERT_EQ(post_recv(b->qp(), 1, {memory.sge(0, 8)}), 0);
  ASSERT_EQ(SendWr(2, IBV_WR_SEND, {memory.sge(0, 8)}).post(a->qp()), 0);
  a.reset();
  b.reset();
  // They may be there or may have been taken away with their queue pair.
  ibv_wc wc[4];
  EXPECT_LE(ibv_poll_cq(cq.get(), 4, wc), 2);
}

TEST(Destroy, device_list_can_be_freed_before_use) {
  int count = 0;
  ibv_device** list = ibv_get_device_list(&count);
  ASSERT_NE(list, nullptr);
  ASSERT_GE(count, 1);
  EXPECT_EQ(list[count], nullptr);
  const Context first(must(ibv_open_device(list[0]), "ibv_open_device"));
  const Context second(must(ibv_open_device(list[0]), "ibv_open_device"));
  ibv_free_device_list(list);
  EXPECT_NE(first.get(), second.get());
  ibv_device_attr attr{};
  EXPECT_EQ(ibv_query_device(first.get(), &attr), 0);
  EXPECT_EQ(ibv_query_device(second.get(), &attr), 0);
  EXPECT_NE(ibv_get_device_name(first->device), nullptr);
}

// Two contexts of one process are as separate as two processes.
TEST(Destroy, keys_of_another_context_do_not_work) {
  const Device one = open_device();
  const Device two = open_device();
  Endpoint a(one, {}), b(one, {});
  connect(a, b);
  const Pd foreign = make_pd(two);
  const Region region(foreign.get(), 64);
  ASSERT_EQ(SendWr(1, IBV_WR_SEND, {region.sge(0, 8)}).post(a.qp()), 0);
  expect_status(wait_completion(a.send_cq()), 1, IBV_WC_LOC_PROT_ERR);
}

}  // namespace
}  // namespace ringbolt::conformance
