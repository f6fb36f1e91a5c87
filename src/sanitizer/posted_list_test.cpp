#include "sanitizer/posted_list.h"

#include <gtest/gtest.h>

#include <array>

#include "sanitizer/parts_test_support.h"
#include "sanitizer/request.h"

namespace ringbolt::sanitizer {
namespace {

using testing::Pair;
using testing::site;

TEST(PostedList, is_a_copy_that_may_be_changed) {
  std::array<ibv_sge, 3> pieces{{{1, 10, 100}, {2, 20, 200}, {3, 30, 300}}};
  std::array<ibv_send_wr, 3> own{};
  own[0].sg_list = pieces.data();
  own[0].num_sge = 2;
  own[0].next = &own[2];  // in the order of the links, not of their memory
  own[2].sg_list = pieces.data() + 2;
  own[2].num_sge = 1;
  own[2].wr_id = 9;
  PostedList<ibv_send_wr> list(own.data());
  ASSERT_EQ(list.requests().size(), 2U);
  ibv_send_wr* const second = list.first()->next;
  EXPECT_EQ(second, &list.requests()[1]);
  EXPECT_EQ(second->next, nullptr);
  EXPECT_EQ(second->wr_id, 9U);
  EXPECT_EQ(list.original(list.place_of(second)), &own[2]);
  EXPECT_EQ(list.first()->sg_list[1].addr, 2U);
  EXPECT_EQ(second->sg_list[0].lkey, 300U);
  second->sg_list[0] = {};
  second->wr_id = 1;
  EXPECT_EQ(pieces[2].addr, 3U);
  EXPECT_EQ(own[2].wr_id, 9U);
  EXPECT_EQ(own[0].next, &own[2]);
}

TEST(PostedList, leaves_lists_that_are_none_to_the_device) {
  ibv_sge one{1, 2, 3};
  for (const auto& [pieces, count] :
       {std::pair<ibv_sge*, int>{nullptr, 4}, {&one, -1}, {&one, kMostPieces + 1}, {&one, 0}}) {
    ibv_recv_wr own{};
    own.sg_list = pieces;
    own.num_sge = count;
    PostedList<ibv_recv_wr> list(&own);
    EXPECT_EQ(list.first()->sg_list, pieces);
    EXPECT_EQ(list.first()->num_sge, count);
  }
}

TEST(RequestOf, says_what_a_send_does) {
  Pair pair;
  pair.qp.peer = 33;
  ibv_sge pieces[] = {{1, 10, 100}, {2, 20, 200}};
  ibv_send_wr wr{};
  wr.wr_id = 4;
  wr.sg_list = pieces;
  wr.num_sge = 2;
  wr.opcode = IBV_WR_RDMA_WRITE;
  wr.send_flags = IBV_SEND_FENCE;
  wr.wr.rdma.remote_addr = 0x500;
  wr.wr.rdma.rkey = 6;
  const auto write = request_of(pair.qp, wr, site(1));
  EXPECT_EQ(write->wr_id, 4U);
  EXPECT_EQ(write->use, Use::send);
  EXPECT_TRUE(write->is_fenced && !write->is_signaled && write->is_one_sided());
  EXPECT_EQ(write->length, 30U);
  EXPECT_EQ(write->remote_address, 0x500U);
  EXPECT_EQ(write->rkey, 6U);
  EXPECT_EQ(write->peer, 33U);
  EXPECT_EQ(write->qpn, 5U);
  EXPECT_EQ(write->posted.returns[0], 1U);
  pair.qp.signals_all = true;
  EXPECT_TRUE(request_of(pair.qp, wr, site(1))->is_signaled) << "sq_sig_all";
  wr.opcode = IBV_WR_SEND;
  EXPECT_FALSE(request_of(pair.qp, wr, site(1))->is_one_sided());
  wr.opcode = IBV_WR_LOCAL_INV;
  EXPECT_EQ(request_of(pair.qp, wr, site(1))->length, 0U) << "its list means nothing";
}

TEST(RequestOf, an_atomic_has_its_address_elsewhere) {
  Pair pair;
  ibv_send_wr wr{};
  for (const ibv_wr_opcode opcode : {IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD}) {
    wr.opcode = opcode;
    wr.wr.atomic.remote_addr = 0x700;
    wr.wr.atomic.rkey = 8;
    const auto atomic = request_of(pair.qp, wr, site(1));
    EXPECT_EQ(atomic->use, Use::read) << "its answer is written here";
    EXPECT_TRUE(atomic->is_atomic() && atomic->is_one_sided());
    EXPECT_EQ(atomic->remote_address, 0x700U);
    EXPECT_EQ(atomic->rkey, 8U);
  }
}

TEST(RequestOf, a_receive_is_of_a_queue_pair_or_a_shared_queue) {
  Pair pair;
  SharedQueue srq;
  ibv_pd pd{};
  ibv_recv_wr wr{};
  wr.wr_id = 3;
  const auto own = request_of(&pair.qp, nullptr, &pd, wr, site(1));
  EXPECT_EQ(own->use, Use::receive);
  EXPECT_EQ(own->qpn, 5U);
  EXPECT_EQ(own->pd, &pd);
  const auto shared = request_of(nullptr, &srq, &pd, wr, site(1));
  EXPECT_EQ(shared->qp, nullptr);
  EXPECT_EQ(shared->srq, &srq);
  EXPECT_EQ(shared->wr_id, 3U);
}

TEST(UsesMemory, unless_it_is_inline_or_carries_no_data) {
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_SEND;
  EXPECT_TRUE(uses_memory(wr));
  wr.send_flags = IBV_SEND_INLINE;
  EXPECT_FALSE(uses_memory(wr));
  wr.send_flags = 0;
  wr.opcode = IBV_WR_BIND_MW;
  EXPECT_FALSE(uses_memory(wr));
}

}  // namespace
}  // namespace ringbolt::sanitizer
