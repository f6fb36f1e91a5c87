// Memory windows of both types: binding, rights, range, invalidation.
#include "far.h"

namespace ringbolt::conformance {
namespace {

constexpr uint64_t kRegion = 8192;
constexpr unsigned kBindable = kAllAccess | IBV_ACCESS_MW_BIND;

using WindowCase = std::tuple<ibv_mw_type, Placement>;

class WindowTest : public testing::TestWithParam<WindowCase> {
 protected:
  static ibv_mw_type type() { return std::get<0>(GetParam()); }
  static Placement placement() { return std::get<1>(GetParam()); }

  WindowTest() : link(placement(), {}, {}, kRegion, kBindable) {}

  void bind(uint64_t offset, uint64_t length, unsigned access) {
    const ibv_wc wc = link.far.bind_window(type(), offset, length, access);
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS) << describe(wc);
    EXPECT_EQ(wc.opcode, IBV_WC_BIND_MW);
  }

  ibv_wc_status run(ibv_wr_opcode opcode, uint64_t offset, uint32_t length = 8) {
    SendWr wr(1, opcode, {link.memory.sge(0, length)});
    wr.remote(link.far.region_address(offset), link.far.window_rkey());
    must_succeed(wr.post(link.near.qp()), "ibv_post_send");
    return wait_completion(link.near.send_cq()).status;
  }

  Link link;
};

INSTANTIATE_TEST_SUITE_P(All, WindowTest,
                         testing::Combine(testing::Values(IBV_MW_TYPE_1, IBV_MW_TYPE_2),
                                          testing::ValuesIn(kPlacements)),
                         [](const testing::TestParamInfo<WindowCase>& parameter) {
                           return "type_" + std::to_string(std::get<0>(parameter.param)) + "_" +
                                  placement_name(std::get<1>(parameter.param));
                         });

TEST_P(WindowTest, opens_its_range) {
  bind(1024, 512, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
  EXPECT_NE(link.far.window_rkey(), link.far.rkey());
  link.memory.fill(std::vector<Piece>{{0, 512}}, 3);
  EXPECT_EQ(run(IBV_WR_RDMA_WRITE, 1024, 512), IBV_WC_SUCCESS);
  EXPECT_EQ(link.far.check({{1024, 512}}, 512, 3), "");
  EXPECT_EQ(run(IBV_WR_RDMA_READ, 1200), IBV_WC_SUCCESS);
}

TEST_P(WindowTest, closes_what_lies_before_it) {
  bind(1024, 512, IBV_ACCESS_REMOTE_WRITE);
  EXPECT_EQ(run(IBV_WR_RDMA_WRITE, 1020), IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(link.far.check({}, 0, 0), "");
}

TEST_P(WindowTest, closes_what_lies_behind_it) {
  bind(1024, 512, IBV_ACCESS_REMOTE_WRITE);
  EXPECT_EQ(run(IBV_WR_RDMA_WRITE, 1532), IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(link.far.check({}, 0, 0), "");
}

TEST_P(WindowTest, grants_only_its_rights) {
  bind(1024, 512, IBV_ACCESS_REMOTE_READ);
  EXPECT_EQ(run(IBV_WR_RDMA_READ, 1024), IBV_WC_SUCCESS);
  EXPECT_EQ(run(IBV_WR_RDMA_WRITE, 1024), IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(link.far.check({}, 0, 0), "");
}

/// Everything here: the binder's own view.
class LocalWindowTest : public testing::Test {
 protected:
  LocalWindowTest()
      : device(open_device()),
        pd(make_pd(device)),
        a(device, {}, {pd.get(), nullptr, nullptr, nullptr}),
        b(device, {}, {pd.get(), nullptr, nullptr, nullptr}),
        memory(pd.get(), kRegion, kBindable),
        source(pd.get(), 4096) {
    connect(a, b);
  }

  Mw allocate(ibv_mw_type type) { return Mw(must(ibv_alloc_mw(pd.get(), type), "ibv_alloc_mw")); }

  ibv_wc bind(ibv_mw* window, ibv_mr* mr, uint64_t address, uint64_t length, unsigned access) {
    SendWr wr(7, IBV_WR_BIND_MW, {});
    wr.wr.bind_mw.mw = window;
    wr.wr.bind_mw.rkey = ibv_inc_rkey(window->rkey);
    wr.wr.bind_mw.bind_info = {mr, address, length, access};
    must_succeed(wr.post(b.qp()), "ibv_post_send(BIND_MW)");
    const ibv_wc wc = wait_completion(b.send_cq());
    if (wc.status == IBV_WC_SUCCESS) {
      window->rkey = wr.wr.bind_mw.rkey;
    }
    return wc;
  }

  ibv_wc_status write(uint64_t address, uint32_t rkey) {
    SendWr wr(1, IBV_WR_RDMA_WRITE, {source.sge(0, 8)});
    must_succeed(wr.remote(address, rkey).post(a.qp()), "ibv_post_send");
    return wait_completion(a.send_cq()).status;
  }

  Device device;
  Pd pd;
  Endpoint a;
  Endpoint b;
  Region memory;
  Region source;
};

TEST_F(LocalWindowTest, allocated_window_opens_nothing) {
  const Mw window = allocate(IBV_MW_TYPE_2);
  EXPECT_EQ(window->type, IBV_MW_TYPE_2);
  EXPECT_EQ(window->pd, pd.get());
  EXPECT_EQ(write(memory.address(), window->rkey), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(LocalWindowTest, rebinding_type_1_moves_the_window_and_changes_the_key) {
  const Mw window = allocate(IBV_MW_TYPE_1);
  ibv_mw_bind request{
      5, IBV_SEND_SIGNALED, {memory.mr.get(), memory.address(), 64, IBV_ACCESS_REMOTE_WRITE}};
  ASSERT_EQ(ibv_bind_mw(b.qp(), window.get(), &request), 0);
  expect_success(wait_completion(b.send_cq()), 5, IBV_WC_BIND_MW);
  const uint32_t first = window->rkey;
  request.bind_info.addr = memory.address(1024);
  ASSERT_EQ(ibv_bind_mw(b.qp(), window.get(), &request), 0);
  expect_success(wait_completion(b.send_cq()), 5, IBV_WC_BIND_MW);
  EXPECT_NE(window->rkey, first);
  EXPECT_EQ(write(memory.address(1024), window->rkey), IBV_WC_SUCCESS);
  EXPECT_EQ(write(memory.address(), first), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(LocalWindowTest, length_zero_closes_type_1) {
  const Mw window = allocate(IBV_MW_TYPE_1);
  ibv_mw_bind request{
      5, IBV_SEND_SIGNALED, {memory.mr.get(), memory.address(), 64, IBV_ACCESS_REMOTE_WRITE}};
  ASSERT_EQ(ibv_bind_mw(b.qp(), window.get(), &request), 0);
  expect_success(wait_completion(b.send_cq()), 5, IBV_WC_BIND_MW);
  EXPECT_EQ(write(memory.address(), window->rkey), IBV_WC_SUCCESS);
  request.bind_info = {nullptr, 0, 0, 0};
  ASSERT_EQ(ibv_bind_mw(b.qp(), window.get(), &request), 0);
  expect_success(wait_completion(b.send_cq()), 5, IBV_WC_BIND_MW);
  EXPECT_EQ(write(memory.address(), window->rkey), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(LocalWindowTest, type_2_is_not_for_ibv_bind_mw) {
  const Mw window = allocate(IBV_MW_TYPE_2);
  ibv_mw_bind request{
      5, IBV_SEND_SIGNALED, {memory.mr.get(), memory.address(), 64, IBV_ACCESS_REMOTE_WRITE}};
  EXPECT_EQ(ibv_bind_mw(b.qp(), window.get(), &request), EINVAL);
}

TEST_F(LocalWindowTest, local_invalidation_closes_type_2) {
  const Mw window = allocate(IBV_MW_TYPE_2);
  EXPECT_EQ(bind(window.get(), memory.mr.get(), memory.address(), 64, IBV_ACCESS_REMOTE_WRITE)
                .status,
            IBV_WC_SUCCESS);
  EXPECT_EQ(write(memory.address(), window->rkey), IBV_WC_SUCCESS);
  SendWr wr(8, IBV_WR_LOCAL_INV, {});
  ASSERT_EQ(wr.invalidate(window->rkey).post(b.qp()), 0);
  expect_success(wait_completion(b.send_cq()), 8, IBV_WC_LOCAL_INV);
  EXPECT_EQ(write(memory.address(), window->rkey), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(LocalWindowTest, invalidated_type_2_can_be_bound_again) {
  const Mw window = allocate(IBV_MW_TYPE_2);
  for (int round = 0; round < 5; ++round) {
    EXPECT_EQ(bind(window.get(), memory.mr.get(), memory.address(), 64, IBV_ACCESS_REMOTE_WRITE)
                  .status,
              IBV_WC_SUCCESS);
    EXPECT_EQ(write(memory.address(), window->rkey), IBV_WC_SUCCESS);
    SendWr wr(8, IBV_WR_LOCAL_INV, {});
    ASSERT_EQ(wr.invalidate(window->rkey).post(b.qp()), 0);
    expect_success(wait_completion(b.send_cq()), 8, IBV_WC_LOCAL_INV);
  }
}

TEST_F(LocalWindowTest, send_with_invalidate_closes_type_2) {
  const Mw window = allocate(IBV_MW_TYPE_2);
  EXPECT_EQ(bind(window.get(), memory.mr.get(), memory.address(), 64, IBV_ACCESS_REMOTE_WRITE)
                .status,
            IBV_WC_SUCCESS);
  ASSERT_EQ(post_recv(b.qp(), 3, {memory.sge(128, 64)}), 0);
  source.fill(std::vector<Piece>{{0, 64}}, 6);
  SendWr wr(4, IBV_WR_SEND_WITH_INV, {source.sge(0, 64)});
  ASSERT_EQ(wr.invalidate(window->rkey).post(a.qp()), 0);
  expect_success(wait_completion(a.send_cq()), 4, IBV_WC_SEND);
  const ibv_wc wc = wait_completion(b.recv_cq());
  expect_success(wc, 3, IBV_WC_RECV);
  EXPECT_NE(wc.wc_flags & IBV_WC_WITH_INV, 0u);
  EXPECT_EQ(wc.invalidated_rkey, window->rkey);
  EXPECT_EQ(memory.check(std::vector<Piece>{{128, 64}}, 64, 6), "");
  EXPECT_EQ(write(memory.address(), window->rkey), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(LocalWindowTest, send_with_invalidate_of_nothing_is_a_remote_access_error) {
  ASSERT_EQ(post_recv(b.qp(), 3, {memory.sge(128, 64)}), 0);
  SendWr wr(4, IBV_WR_SEND_WITH_INV, {source.sge(0, 64)});
  ASSERT_EQ(wr.invalidate(0x12345678).post(a.qp()), 0);
  expect_status(wait_completion(a.send_cq()), 4, IBV_WC_REM_ACCESS_ERR);
}

TEST_F(LocalWindowTest, region_must_allow_windows) {
  const Mw window = allocate(IBV_MW_TYPE_2);
  Region closed(pd.get(), 4096, kAllAccess);
  const ibv_wc wc =
      bind(window.get(), closed.mr.get(), closed.address(), 64, IBV_ACCESS_REMOTE_WRITE);
  EXPECT_TRUE(wc.status == IBV_WC_MW_BIND_ERR || wc.status == IBV_WC_LOC_PROT_ERR ||
              wc.status == IBV_WC_LOC_QP_OP_ERR)
      << describe(wc);
}

TEST_F(LocalWindowTest, window_must_lie_in_its_region) {
  const Mw window = allocate(IBV_MW_TYPE_2);
  const ibv_wc wc = bind(window.get(), memory.mr.get(), memory.address(kRegion - 8), 16,
                         IBV_ACCESS_REMOTE_WRITE);
  EXPECT_TRUE(wc.status == IBV_WC_MW_BIND_ERR || wc.status == IBV_WC_LOC_PROT_ERR ||
              wc.status == IBV_WC_LOC_QP_OP_ERR)
      << describe(wc);
}

TEST_F(LocalWindowTest, remote_write_needs_local_write_in_the_region) {
  const Mw window = allocate(IBV_MW_TYPE_2);
  Region constant(pd.get(), 4096, IBV_ACCESS_MW_BIND | IBV_ACCESS_REMOTE_READ);
  const ibv_wc wc =
      bind(window.get(), constant.mr.get(), constant.address(), 64, IBV_ACCESS_REMOTE_WRITE);
  EXPECT_NE(wc.status, IBV_WC_SUCCESS);
}

TEST_F(LocalWindowTest, what_is_no_key_of_the_window_is_not_bound) {
  const Mw other = allocate(IBV_MW_TYPE_2);
  ASSERT_EQ(bind(other.get(), memory.mr.get(), memory.address(512), 64, IBV_ACCESS_REMOTE_WRITE).status,
            IBV_WC_SUCCESS);
  const uint32_t kWrong[] = {memory.rkey(), source.rkey(), other->rkey, 0, 0x12345678};
  for (const uint32_t wrong : kWrong) {
    for (const ibv_mw_type type : {IBV_MW_TYPE_1, IBV_MW_TYPE_2}) {
      const Mw window = allocate(type);
      SendWr wr(7, IBV_WR_BIND_MW, {});
      wr.wr.bind_mw.mw = window.get();
      wr.wr.bind_mw.rkey = wrong;
      wr.wr.bind_mw.bind_info = {memory.mr.get(), memory.address(1024), 64, IBV_ACCESS_REMOTE_WRITE};
      ASSERT_EQ(wr.post(b.qp()), 0);
      expect_status(wait_completion(b.send_cq()), 7, IBV_WC_MW_BIND_ERR);
      EXPECT_EQ(b.state(), IBV_QPS_ERR);
      ASSERT_EQ(a.to_state(IBV_QPS_RESET), 0);
      ASSERT_EQ(b.to_state(IBV_QPS_RESET), 0);
      connect(a, b);
      EXPECT_EQ(write(memory.address(), memory.rkey()), IBV_WC_SUCCESS) << "the region is gone";
    }
  }
}

TEST_F(LocalWindowTest, binding_that_fails_leaves_the_window_as_it_was) {
  const Mw window = allocate(IBV_MW_TYPE_1);
  ASSERT_EQ(bind(window.get(), memory.mr.get(), memory.address(), 64, IBV_ACCESS_REMOTE_WRITE).status, IBV_WC_SUCCESS);
  EXPECT_NE(bind(window.get(), memory.mr.get(), memory.address(kRegion - 8), 16, IBV_ACCESS_REMOTE_WRITE).status,
            IBV_WC_SUCCESS);
  ASSERT_EQ(a.to_state(IBV_QPS_RESET), 0);
  ASSERT_EQ(b.to_state(IBV_QPS_RESET), 0);
  connect(a, b);
  EXPECT_EQ(write(memory.address(), window->rkey), IBV_WC_SUCCESS);
}

TEST_F(LocalWindowTest, deallocated_window_is_closed) {
  uint32_t rkey = 0;
  {
    const Mw window = allocate(IBV_MW_TYPE_1);
    ibv_mw_bind request{
        5, IBV_SEND_SIGNALED, {memory.mr.get(), memory.address(), 64, IBV_ACCESS_REMOTE_WRITE}};
    ASSERT_EQ(ibv_bind_mw(b.qp(), window.get(), &request), 0);
    expect_success(wait_completion(b.send_cq()), 5, IBV_WC_BIND_MW);
    rkey = window->rkey;
    EXPECT_EQ(write(memory.address(), rkey), IBV_WC_SUCCESS);
  }
  EXPECT_EQ(write(memory.address(), rkey), IBV_WC_REM_ACCESS_ERR);
}

// Type 2A and 2B alike: the window belongs to the queue pair that bound it.
TEST_F(LocalWindowTest, type_2_serves_the_queue_pair_that_bound_it_only) {
  const Mw window = allocate(IBV_MW_TYPE_2);
  EXPECT_EQ(bind(window.get(), memory.mr.get(), memory.address(), 64, IBV_ACCESS_REMOTE_WRITE)
                .status,
            IBV_WC_SUCCESS);
  const Parts parts{pd.get(), nullptr, nullptr, nullptr};
  Endpoint c(device, {}, parts), d(device, {}, parts);
  connect(c, d);
  SendWr wr(1, IBV_WR_RDMA_WRITE, {source.sge(0, 8)});
  ASSERT_EQ(wr.remote(memory.address(), window->rkey).post(c.qp()), 0);
  expect_status(wait_completion(c.send_cq()), 1, IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(write(memory.address(), window->rkey), IBV_WC_SUCCESS);
}

}  // namespace
}  // namespace ringbolt::conformance
