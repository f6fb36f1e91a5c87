#include "sanitizer/queues.h"

#include <gtest/gtest.h>

#include "sanitizer/parts_test_support.h"

namespace ringbolt::sanitizer {
namespace {

using testing::request;
using testing::site;

/// Two completion queues, a shared queue, and a queue pair on them, as their program made them.
class QueuesTest : public ::testing::Test {
 protected:
  QueuesTest() {
    send_c_.cqe = 8;
    receive_c_.cqe = 16;
    send_cq_ = &queues_.add(send_c_, site(1));
    receive_cq_ = &queues_.add(receive_c_, site(2));
    srq_ = &queues_.add(srq_c_);
  }
  QueuePair& pair(ibv_qp& c, bool is_shared = false) {
    ibv_qp_init_attr wanted{};
    wanted.send_cq = &send_c_;
    wanted.recv_cq = &receive_c_;
    wanted.srq = is_shared ? &srq_c_ : nullptr;
    c.qp_num = 77;
    c.qp_type = IBV_QPT_UC;
    return queues_.add(c, wanted, {5, 6, 1, 1, 0});
  }

  ibv_cq send_c_{};
  ibv_cq receive_c_{};
  ibv_srq srq_c_{};
  ibv_qp c_{};
  Queues queues_;
  CompletionQueue* send_cq_ = nullptr;
  CompletionQueue* receive_cq_ = nullptr;
  SharedQueue* srq_ = nullptr;
};

TEST_F(QueuesTest, are_found_by_the_programs_pointers_until_they_go) {
  QueuePair& qp = pair(c_, true);
  EXPECT_EQ(queues_.find(&c_), &qp);
  EXPECT_EQ(qp.send_cq, send_cq_);
  EXPECT_EQ(qp.receive_cq, receive_cq_);
  EXPECT_EQ(qp.srq, srq_);
  EXPECT_EQ(qp.qpn, 77U);
  EXPECT_EQ(qp.type, IBV_QPT_UC);
  EXPECT_EQ(qp.caps.max_send_wr, 5U);
  EXPECT_EQ(qp.told, IBV_QPS_RESET);
  const ibv_qp other{};
  EXPECT_EQ(queues_.find(&other), nullptr);
  queues_.remove(c_);
  queues_.remove(srq_c_);
  queues_.remove(send_c_);
  EXPECT_EQ(queues_.find(&c_), nullptr);
  EXPECT_EQ(queues_.find(&srq_c_), nullptr);
  EXPECT_EQ(queues_.find(&send_c_), nullptr);
  EXPECT_EQ(queues_.find(&receive_c_), receive_cq_);
  queues_.clear();
  EXPECT_EQ(queues_.find(&receive_c_), nullptr);
}

TEST_F(QueuesTest, a_queue_pair_on_queues_that_nobody_told_of_has_none) {
  ibv_cq unknown{};
  ibv_qp_init_attr wanted{};
  wanted.send_cq = wanted.recv_cq = &unknown;
  const QueuePair& qp = queues_.add(c_, wanted, {});
  EXPECT_EQ(qp.send_cq, nullptr);
  EXPECT_EQ(qp.receive_cq, nullptr);
  EXPECT_EQ(qp.srq, nullptr);
}

TEST_F(QueuesTest, requests_count_where_they_complete) {
  QueuePair& qp = pair(c_);
  auto signaled = request(1, Use::send);
  auto silent = request(2, Use::send);
  auto receive = request(3, Use::receive);
  silent->is_signaled = false;
  for (Request* one : {signaled.get(), silent.get(), receive.get()}) {
    one->qp = &qp;
    count_in(*one);
  }
  EXPECT_EQ(send_cq_->expected(), 1U) << "the silent one completes to nothing";
  EXPECT_EQ(receive_cq_->expected(), 1U);
  EXPECT_EQ(qp.sends.count(), 2U);
  EXPECT_EQ(qp.receives, 1U);
  for (Request* one : {signaled.get(), silent.get(), receive.get()}) {
    count_out(*one);
  }
  EXPECT_EQ(send_cq_->expected() + receive_cq_->expected(), 0U);
  EXPECT_EQ(qp.sends.count() + qp.receives, 0U);
}

TEST_F(QueuesTest, receives_of_a_shared_queue_count_there_alone) {
  pair(c_, true);
  auto receive = request(3, Use::receive);
  receive->srq = srq_;
  count_in(*receive);
  EXPECT_EQ(srq_->posted, 1U);
  EXPECT_EQ(receive_cq_->expected(), 0U) << "which queue pair takes it up shows when it completes";
  count_out(*receive);
  EXPECT_EQ(srq_->posted, 0U);
}

TEST_F(QueuesTest, something_may_complete_where_a_queue_pair_in_the_right_state_has_requests) {
  QueuePair& qp = pair(c_);
  EXPECT_FALSE(queues_.may_complete_to(*receive_cq_));
  qp.receives = 1;
  EXPECT_FALSE(queues_.may_complete_to(*receive_cq_)) << "RESET receives nothing";
  for (const auto& [state, receives] :
       {std::pair{IBV_QPS_INIT, false}, {IBV_QPS_RTR, true}, {IBV_QPS_RTS, true}, {IBV_QPS_ERR, false}}) {
    qp.told = state;
    EXPECT_EQ(queues_.may_complete_to(*receive_cq_), receives) << state;
    EXPECT_FALSE(queues_.may_complete_to(*send_cq_)) << state;
  }
  qp.told = IBV_QPS_RTS;
  qp.sends.post(1, false);
  EXPECT_FALSE(queues_.may_complete_to(*send_cq_));
  qp.sends.post(2, true);
  EXPECT_TRUE(queues_.may_complete_to(*send_cq_));
  qp.told = IBV_QPS_RTR;
  EXPECT_FALSE(queues_.may_complete_to(*send_cq_));
}

TEST_F(QueuesTest, a_shared_queue_is_served_by_any_of_its_queue_pairs) {
  ibv_qp second{};
  ibv_qp stranger{};
  QueuePair& one = pair(c_, true);
  QueuePair& two = pair(second, true);
  pair(stranger).told = IBV_QPS_RTS;
  auto receive = request(3, Use::receive);
  receive->srq = srq_;
  srq_->posted = 1;
  EXPECT_FALSE(queues_.may_execute(*receive));
  EXPECT_FALSE(queues_.may_complete_to(*receive_cq_));
  two.told = IBV_QPS_RTR;
  EXPECT_TRUE(queues_.may_execute(*receive));
  EXPECT_TRUE(queues_.may_complete_to(*receive_cq_));
  two.told = IBV_QPS_ERR;
  EXPECT_FALSE(queues_.may_execute(*receive));
  size_t count = 0;
  queues_.each_of(*srq_, [&](const QueuePair& qp) { count += &qp == &one || &qp == &two ? 1U : 100U; });
  EXPECT_EQ(count, 2U);
}

TEST(QueuePairOutcome, the_first_failure_stays_and_those_that_say_nothing_are_left_out) {
  testing::Pair pair;
  pair.qp.note_outcome(IBV_WC_SUCCESS, site(1));
  EXPECT_FALSE(pair.qp.failed);
  pair.qp.type = IBV_QPT_UD;
  pair.qp.note_outcome(IBV_WC_LOC_LEN_ERR, site(2));
  EXPECT_FALSE(pair.qp.failed) << "goes on";
  pair.qp.type = IBV_QPT_RC;
  pair.qp.told = IBV_QPS_ERR;
  pair.qp.note_outcome(IBV_WC_WR_FLUSH_ERR, site(3));
  EXPECT_FALSE(pair.qp.failed) << "its program has ended it";
  pair.qp.told = IBV_QPS_RTS;
  pair.qp.note_outcome(IBV_WC_RETRY_EXC_ERR, site(4));
  pair.qp.note_outcome(IBV_WC_WR_FLUSH_ERR, site(5));
  EXPECT_EQ(pair.qp.failed.returns[0], 4U);
  EXPECT_EQ(pair.qp.failure, IBV_WC_RETRY_EXC_ERR);
}

TEST(PeerOf, is_the_process_on_one_host_and_the_address_beyond) {
  ibv_qp_attr one{};
  one.dest_qp_num = 9U << 14U | 3;
  ibv_qp_attr other = one;
  other.dest_qp_num = 9U << 14U | 4;
  other.ah_attr.grh.dgid.raw[15] = 1;
  EXPECT_NE(peer_of(one, false), 0U);
  EXPECT_EQ(peer_of(one, false), peer_of(other, false)) << "another queue pair of that process, by another port";
  EXPECT_NE(peer_of(one, true), peer_of(other, true));
  other.ah_attr = one.ah_attr;
  EXPECT_EQ(peer_of(one, true), peer_of(other, true));
  other.dest_qp_num = 10U << 14U | 3;
  EXPECT_NE(peer_of(one, false), peer_of(other, false));
}

}  // namespace
}  // namespace ringbolt::sanitizer
