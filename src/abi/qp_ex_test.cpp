#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "abi/ex_layer.h"

namespace ringbolt::abi {
namespace {

constexpr uint64_t kAllOps = 0x3ff;

/// What reached the classical post_send, copied as a device would copy it.
struct Posted {
  ibv_send_wr request;
  std::vector<ibv_sge> segments;
  std::string inline_bytes;
};

struct FakeQp {
  ExtendableQp qp;
  ibv_context context = {};
  std::vector<Posted> posted;
  int posts = 0;
  int answer = 0;

  explicit FakeQp(uint64_t ops = kAllOps,
                  ibv_qp_cap cap = {
                      .max_send_wr = 4, .max_recv_wr = 1, .max_send_sge = 2, .max_recv_sge = 1, .max_inline_data = 8}) {
    context.ops.post_send = [](ibv_qp* handle, ibv_send_wr* list, ibv_send_wr**) {
      auto& self = *static_cast<FakeQp*>(handle->qp_context);
      ++self.posts;
      for (; list != nullptr; list = list->next) {
        Posted copy = {*list, {}, {}};
        for (int i = 0; i < list->num_sge; ++i) {
          copy.segments.push_back(list->sg_list[i]);
          if ((list->send_flags & IBV_SEND_INLINE) != 0) {
            copy.inline_bytes.append(reinterpret_cast<const char*>(list->sg_list[i].addr), list->sg_list[i].length);
          }
        }
        self.posted.push_back(copy);
      }
      return self.answer;
    };
    qp.ex.qp_base.context = &context;
    qp.ex.qp_base.qp_context = this;
    EXPECT_EQ(init_qp_ex(qp, ops, cap), 0);
  }

  ibv_qp_ex* ex() { return &qp.ex; }
};

TEST(QpEx, batch_of_a_queue_pair_that_is_gone_is_refused) {
  FakeQp fake;
  const auto use = [&fake] {
    ibv_wr_send(fake.ex());
    ibv_wr_set_sge(fake.ex(), 1, 2, 3);
    ibv_wr_rdma_write(fake.ex(), 1, 2);
    ibv_wr_set_inline_data(fake.ex(), nullptr, 0);
    return ibv_wr_complete(fake.ex());
  };
  ibv_wr_start(fake.ex());
  ibv_wr_send(fake.ex());
  end_qp_ex(fake.qp);  // in the middle
  EXPECT_EQ(use(), EINVAL);
  ibv_wr_start(fake.ex());
  EXPECT_EQ(use(), EINVAL);
  ibv_wr_start(fake.ex());
  ibv_wr_abort(fake.ex());
  EXPECT_EQ(fake.posts, 0);
}

TEST(QpEx, lists_requests_in_order_with_id_and_flags_of_their_moment) {
  FakeQp fake;
  ibv_wr_start(fake.ex());
  fake.ex()->wr_id = 7;
  fake.ex()->wr_flags = IBV_SEND_SIGNALED;
  ibv_wr_rdma_write(fake.ex(), 0xabc, 0x1000);
  ibv_wr_set_sge(fake.ex(), 1, 0x20, 3);
  fake.ex()->wr_id = 8;
  fake.ex()->wr_flags = IBV_SEND_FENCE;
  ibv_wr_send_imm(fake.ex(), 99);
  const std::array<ibv_sge, 2> list = {{{0x30, 4, 5}, {0x40, 6, 7}}};
  ibv_wr_set_sge_list(fake.ex(), list.size(), list.data());
  EXPECT_EQ(fake.posts, 0);
  ASSERT_EQ(ibv_wr_complete(fake.ex()), 0);
  ASSERT_EQ(fake.posts, 1);
  ASSERT_EQ(fake.posted.size(), 2U);
  EXPECT_EQ(fake.posted[0].request.wr_id, 7U);
  EXPECT_EQ(fake.posted[0].request.send_flags, static_cast<unsigned>(IBV_SEND_SIGNALED));
  EXPECT_EQ(fake.posted[0].request.opcode, IBV_WR_RDMA_WRITE);
  EXPECT_EQ(fake.posted[0].request.wr.rdma.rkey, 0xabcU);
  EXPECT_EQ(fake.posted[0].request.wr.rdma.remote_addr, 0x1000U);
  ASSERT_EQ(fake.posted[0].segments.size(), 1U);
  EXPECT_EQ(fake.posted[0].segments[0].lkey, 1U);
  EXPECT_EQ(fake.posted[1].request.wr_id, 8U);
  EXPECT_EQ(fake.posted[1].request.opcode, IBV_WR_SEND_WITH_IMM);
  EXPECT_EQ(fake.posted[1].request.imm_data, 99U);
  ASSERT_EQ(fake.posted[1].segments.size(), 2U);
  EXPECT_EQ(fake.posted[1].segments[1].addr, 0x40U);
}

TEST(QpEx, every_operation_carries_its_arguments) {
  FakeQp fake;
  ibv_wr_start(fake.ex());
  ibv_wr_atomic_cmp_swp(fake.ex(), 1, 2, 3, 4);
  ibv_wr_atomic_fetch_add(fake.ex(), 5, 6, 7);
  ibv_wr_rdma_write_imm(fake.ex(), 8, 9, 10);
  ibv_wr_rdma_read(fake.ex(), 11, 12);
  ASSERT_EQ(ibv_wr_complete(fake.ex()), 0);
  ibv_mw window = {};
  const ibv_mw_bind_info info = {.mr = nullptr, .addr = 13, .length = 14, .mw_access_flags = 15};
  ibv_wr_start(fake.ex());
  ibv_wr_bind_mw(fake.ex(), &window, 16, &info);
  ibv_wr_local_inv(fake.ex(), 17);
  ibv_wr_send_inv(fake.ex(), 18);
  ibv_wr_send(fake.ex());
  ASSERT_EQ(ibv_wr_complete(fake.ex()), 0);
  ASSERT_EQ(fake.posted.size(), 8U);
  const auto request = [&fake](size_t i) -> const ibv_send_wr& { return fake.posted[i].request; };
  EXPECT_EQ(request(0).opcode, IBV_WR_ATOMIC_CMP_AND_SWP);
  EXPECT_EQ(request(0).wr.atomic.rkey, 1U);
  EXPECT_EQ(request(0).wr.atomic.remote_addr, 2U);
  EXPECT_EQ(request(0).wr.atomic.compare_add, 3U);
  EXPECT_EQ(request(0).wr.atomic.swap, 4U);
  EXPECT_EQ(request(1).opcode, IBV_WR_ATOMIC_FETCH_AND_ADD);
  EXPECT_EQ(request(1).wr.atomic.rkey, 5U);
  EXPECT_EQ(request(1).wr.atomic.remote_addr, 6U);
  EXPECT_EQ(request(1).wr.atomic.compare_add, 7U);
  EXPECT_EQ(request(2).opcode, IBV_WR_RDMA_WRITE_WITH_IMM);
  EXPECT_EQ(request(2).imm_data, 10U);
  EXPECT_EQ(request(3).opcode, IBV_WR_RDMA_READ);
  EXPECT_EQ(request(3).wr.rdma.remote_addr, 12U);
  EXPECT_EQ(request(4).opcode, IBV_WR_BIND_MW);
  EXPECT_EQ(request(4).bind_mw.mw, &window);
  EXPECT_EQ(request(4).bind_mw.rkey, 16U);
  EXPECT_EQ(request(4).bind_mw.bind_info.length, 14U);
  EXPECT_EQ(request(5).opcode, IBV_WR_LOCAL_INV);
  EXPECT_EQ(request(5).invalidate_rkey, 17U);
  EXPECT_EQ(request(6).opcode, IBV_WR_SEND_WITH_INV);
  EXPECT_EQ(request(6).invalidate_rkey, 18U);
  EXPECT_EQ(request(7).opcode, IBV_WR_SEND);
}

TEST(QpEx, datagrams_carry_their_address) {
  FakeQp fake;
  ibv_ah ah = {};
  ibv_wr_start(fake.ex());
  ibv_wr_send(fake.ex());
  ibv_wr_set_ud_addr(fake.ex(), &ah, 21, 22);
  ASSERT_EQ(ibv_wr_complete(fake.ex()), 0);
  EXPECT_EQ(fake.posted[0].request.wr.ud.ah, &ah);
  EXPECT_EQ(fake.posted[0].request.wr.ud.remote_qpn, 21U);
  EXPECT_EQ(fake.posted[0].request.wr.ud.remote_qkey, 22U);
}

TEST(QpEx, inline_data_is_copied_when_it_is_set) {
  FakeQp fake;
  std::string buffer = "12345678";
  ibv_wr_start(fake.ex());
  ibv_wr_send(fake.ex());
  ibv_wr_set_inline_data(fake.ex(), buffer.data(), buffer.size());
  buffer = "abcdefgh";
  ibv_wr_send(fake.ex());
  const std::array<ibv_data_buf, 3> list = {{{buffer.data(), 2}, {nullptr, 0}, {&buffer[5], 3}}};
  ibv_wr_set_inline_data_list(fake.ex(), list.size(), list.data());
  buffer = "xxxxxxxx";
  ibv_wr_send(fake.ex());
  ibv_wr_set_inline_data(fake.ex(), nullptr, 0);
  ASSERT_EQ(ibv_wr_complete(fake.ex()), 0);
  EXPECT_EQ(fake.posted[0].inline_bytes, "12345678");
  EXPECT_EQ(fake.posted[1].inline_bytes, "abfgh");
  EXPECT_EQ(fake.posted[2].inline_bytes, "");
  EXPECT_NE(fake.posted[2].request.send_flags & IBV_SEND_INLINE, 0U);
}

TEST(QpEx, one_inline_byte_too_many_posts_nothing) {
  FakeQp fake;
  std::string buffer = "123456789";
  ibv_wr_start(fake.ex());
  ibv_wr_send(fake.ex());
  ibv_wr_set_inline_data(fake.ex(), buffer.data(), buffer.size());
  EXPECT_EQ(ibv_wr_complete(fake.ex()), EINVAL);
  EXPECT_EQ(fake.posts, 0);
}

TEST(QpEx, one_segment_too_many_posts_nothing) {
  FakeQp fake;
  const std::array<ibv_sge, 3> list = {};
  ibv_wr_start(fake.ex());
  ibv_wr_send(fake.ex());
  ibv_wr_set_sge_list(fake.ex(), list.size(), list.data());
  EXPECT_EQ(ibv_wr_complete(fake.ex()), EINVAL);
  EXPECT_EQ(fake.posts, 0);
}

TEST(QpEx, a_full_batch_passes_and_one_more_posts_nothing) {
  FakeQp fake;
  for (const int requests : {4, 5}) {
    ibv_wr_start(fake.ex());
    for (int i = 0; i < requests; ++i) {
      ibv_wr_send(fake.ex());
      ibv_wr_set_sge(fake.ex(), 1, 2, 3);
    }
    EXPECT_EQ(ibv_wr_complete(fake.ex()), requests == 4 ? 0 : ENOMEM);
    EXPECT_EQ(fake.posted.size(), 4U);
  }
}

TEST(QpEx, empty_batch_posts_nothing) {
  FakeQp fake;
  ibv_wr_start(fake.ex());
  EXPECT_EQ(ibv_wr_complete(fake.ex()), 0);
  EXPECT_EQ(fake.posts, 0);
}

TEST(QpEx, abort_drops_the_batch) {
  FakeQp fake;
  ibv_wr_start(fake.ex());
  ibv_wr_send(fake.ex());
  ibv_wr_abort(fake.ex());
  ibv_wr_start(fake.ex());
  ASSERT_EQ(ibv_wr_complete(fake.ex()), 0);
  EXPECT_EQ(fake.posts, 0);
}

TEST(QpEx, setters_before_any_operation_are_refused) {
  FakeQp fake;
  ibv_wr_start(fake.ex());
  ibv_wr_set_sge(fake.ex(), 1, 2, 3);
  ibv_wr_send(fake.ex());
  EXPECT_EQ(ibv_wr_complete(fake.ex()), EINVAL);
  EXPECT_EQ(fake.posts, 0);
}

TEST(QpEx, an_error_is_gone_with_its_batch) {
  FakeQp fake;
  ibv_wr_start(fake.ex());
  ibv_wr_set_sge(fake.ex(), 1, 2, 3);
  EXPECT_EQ(ibv_wr_complete(fake.ex()), EINVAL);
  ibv_wr_start(fake.ex());
  ibv_wr_send(fake.ex());
  EXPECT_EQ(ibv_wr_complete(fake.ex()), 0);
}

TEST(QpEx, the_error_of_the_classical_post_comes_through) {
  FakeQp fake;
  fake.answer = ENOMEM;
  ibv_wr_start(fake.ex());
  ibv_wr_send(fake.ex());
  EXPECT_EQ(ibv_wr_complete(fake.ex()), ENOMEM);
  EXPECT_TRUE(fake.qp.state.building.try_lock());
}

TEST(QpEx, builders_that_were_not_asked_for_refuse_and_never_crash) {
  FakeQp fake(IBV_QP_EX_WITH_SEND);
  const auto refused = [&fake](auto&& build) {
    ibv_wr_start(fake.ex());
    build();
    ibv_wr_set_sge(fake.ex(), 1, 2, 3);
    EXPECT_EQ(ibv_wr_complete(fake.ex()), EOPNOTSUPP);
  };
  const ibv_mw_bind_info info = {};
  refused([&] { ibv_wr_rdma_write(fake.ex(), 1, 2); });
  refused([&] { ibv_wr_rdma_write_imm(fake.ex(), 1, 2, 3); });
  refused([&] { ibv_wr_rdma_read(fake.ex(), 1, 2); });
  refused([&] { ibv_wr_atomic_cmp_swp(fake.ex(), 1, 2, 3, 4); });
  refused([&] { ibv_wr_atomic_fetch_add(fake.ex(), 1, 2, 3); });
  refused([&] { ibv_wr_bind_mw(fake.ex(), nullptr, 1, &info); });
  refused([&] { ibv_wr_local_inv(fake.ex(), 1); });
  refused([&] { ibv_wr_send_imm(fake.ex(), 1); });
  refused([&] { ibv_wr_send_inv(fake.ex(), 1); });
  refused([&] { ibv_wr_send_tso(fake.ex(), nullptr, 1, 2); });
  refused([&] { fake.ex()->wr_atomic_write(fake.ex(), 1, 2, nullptr); });
  refused([&] { ibv_wr_set_xrc_srqn(fake.ex(), 1); });
  EXPECT_EQ(fake.posts, 0);
}

TEST(QpEx, is_marked_as_extended) {
  FakeQp fake;
  EXPECT_EQ(fake.qp.marks, ExtendableQp::kIsExtended);
  EXPECT_EQ(ExtendableQp().marks, 0U);
}

ibv_qp_init_attr_ex wanted_ex(ibv_qp_type type, uint64_t ops) {
  static ibv_pd pd = {};
  ibv_qp_init_attr_ex wanted = {};
  wanted.qp_type = type;
  wanted.pd = &pd;
  wanted.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  wanted.send_ops_flags = ops;
  return wanted;
}

TEST(QpEx, operations_follow_the_type) {
  EXPECT_EQ(check_qp_ex(wanted_ex(IBV_QPT_RC, kAllOps)), 0);
  EXPECT_EQ(check_qp_ex(wanted_ex(IBV_QPT_UC, IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_SEND)), 0);
  EXPECT_EQ(check_qp_ex(wanted_ex(IBV_QPT_UD, IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM)), 0);
  EXPECT_EQ(check_qp_ex(wanted_ex(IBV_QPT_UC, IBV_QP_EX_WITH_RDMA_READ)), EOPNOTSUPP);
  EXPECT_EQ(check_qp_ex(wanted_ex(IBV_QPT_UC, IBV_QP_EX_WITH_SEND_WITH_INV)), EOPNOTSUPP);
  EXPECT_EQ(check_qp_ex(wanted_ex(IBV_QPT_UD, IBV_QP_EX_WITH_RDMA_WRITE)), EOPNOTSUPP);
  EXPECT_EQ(check_qp_ex(wanted_ex(IBV_QPT_RC, IBV_QP_EX_WITH_TSO)), EOPNOTSUPP);
  EXPECT_EQ(check_qp_ex(wanted_ex(IBV_QPT_RC, IBV_QP_EX_WITH_ATOMIC_WRITE)), EOPNOTSUPP);
  EXPECT_EQ(check_qp_ex(wanted_ex(IBV_QPT_XRC_SEND, IBV_QP_EX_WITH_SEND)), EOPNOTSUPP);
}

TEST(QpEx, attributes_that_we_lack_are_refused) {
  for (const uint32_t bit :
       {IBV_QP_INIT_ATTR_XRCD, IBV_QP_INIT_ATTR_MAX_TSO_HEADER, IBV_QP_INIT_ATTR_IND_TABLE, IBV_QP_INIT_ATTR_RX_HASH}) {
    ibv_qp_init_attr_ex wanted = wanted_ex(IBV_QPT_RC, 0);
    wanted.comp_mask |= bit;
    EXPECT_EQ(check_qp_ex(wanted), EOPNOTSUPP) << bit;
  }
  ibv_qp_init_attr_ex wanted = wanted_ex(IBV_QPT_RC, 0);
  wanted.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
  EXPECT_EQ(check_qp_ex(wanted), 0);
  wanted.create_flags = IBV_QP_CREATE_SOURCE_QPN;
  EXPECT_EQ(check_qp_ex(wanted), EOPNOTSUPP);
  wanted = wanted_ex(IBV_QPT_RC, 0);
  wanted.pd = nullptr;
  EXPECT_EQ(check_qp_ex(wanted), EINVAL);
}

}  // namespace
}  // namespace ringbolt::abi
