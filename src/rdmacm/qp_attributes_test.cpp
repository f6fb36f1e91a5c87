// The steps of a queue pair, from what both sides have said (InfiniBand specification, 12.7: REQ and REP; table 91).

#include "rdmacm/qp_attributes.h"

#include <gtest/gtest.h>
#include <netinet/in.h>

#include <cerrno>
#include <cstring>

#include "cm/timing.h"
#include "rdmacm/connection_manager.h"

namespace ringbolt::rdmacm {
namespace {

constexpr int kConnectedSteps = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;

/// An identifier that has heard all there is to hear; each number is another one.
class QpSteps : public ::testing::Test {
 protected:
  QpSteps() {
    const base::LockGuard guard(manager.mutex());
    id.manager = &manager;
    id.c.qp_type = IBV_QPT_RC;
    id.handle = 1;
    id.has_reply = true;
    id.route = Route{0, 3, {}, wire::ipv4_address(192, 0, 2, 7), {}};
    id.request.local_qpn = 0x111;
    id.request.starting_psn = 0x222;
    id.request.path_mtu = 4;
    id.request.retry_count = 6;
    id.request.rnr_retry_count = 5;
    id.request.responder_resources = 9;
    id.request.initiator_depth = 8;
    id.request.primary.ack_timeout = 19;
    id.request.primary.hop_limit = 12;
    id.request.primary.traffic_class = 0x68;
    id.request.primary.flow_label = 0x12345;
    id.path.traffic_class = 0x20;
    id.path.flow_label = htonl(0x54321);
    id.reply.local_qpn = 0x333;
    id.reply.starting_psn = 0x444;
    id.reply.rnr_retry_count = 3;
    id.reply.responder_resources = 4;
    id.reply.initiator_depth = 2;
    id.reply.target_ack_delay = 16;
  }

  ConnectionManager& manager = ConnectionManager::get();
  Id id;
};

TEST_F(QpSteps, each_side_takes_the_others_numbers) {
  const base::LockGuard guard(manager.mutex());
  for (const bool is_passive : {false, true}) {
    id.is_passive = is_passive;
    const auto rtr = qp_step(id, IBV_QPS_RTR);
    const auto rts = qp_step(id, IBV_QPS_RTS);
    ASSERT_TRUE(rtr && rts);
    EXPECT_EQ(rtr->mask, kConnectedSteps | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    EXPECT_EQ(rtr->attributes.dest_qp_num, is_passive ? 0x111U : 0x333U);
    // Each side's starting PSN is what it is sent with: of the REQ the passive one's, of the REP the active one's.
    EXPECT_EQ(rtr->attributes.rq_psn, is_passive ? 0x444U : 0x222U);
    EXPECT_EQ(rts->attributes.sq_psn, is_passive ? 0x222U : 0x444U);
    EXPECT_EQ(rtr->attributes.path_mtu, IBV_MTU_2048);
    // What one side starts the other answers.
    EXPECT_EQ(rtr->attributes.max_dest_rd_atomic, is_passive ? 4 : 2);
    EXPECT_EQ(rts->attributes.max_rd_atomic, is_passive ? 2 : 4);
    EXPECT_EQ(rts->attributes.rnr_retry, is_passive ? 5 : 3);
    EXPECT_EQ(rts->attributes.retry_cnt, 6);
    EXPECT_EQ(rts->attributes.timeout, cm::ack_timeout(is_passive ? cm::kAckDelay : 16, 18));
  }
}

TEST_F(QpSteps, unreliable_ones_have_no_attributes_of_reliability) {
  const base::LockGuard guard(manager.mutex());
  id.c.qp_type = IBV_QPT_UC;
  EXPECT_EQ(qp_step(id, IBV_QPS_RTR)->mask, kConnectedSteps);
  EXPECT_EQ(qp_step(id, IBV_QPS_RTS)->mask, IBV_QP_STATE | IBV_QP_SQ_PSN);
}

TEST_F(QpSteps, datagrams_have_the_key_of_all_who_use_the_connection_manager) {
  const base::LockGuard guard(manager.mutex());
  id.c.qp_type = IBV_QPT_UD;
  const auto step = qp_step(id, IBV_QPS_INIT);
  ASSERT_TRUE(step);
  EXPECT_EQ(step->attributes.qkey, static_cast<uint32_t>(RDMA_UDP_QKEY));
  EXPECT_EQ(step->mask, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
}

TEST_F(QpSteps, peers_may_read_only_if_somebody_said_that_they_will) {
  const base::LockGuard guard(manager.mutex());
  const auto access = [&]() RINGBOLT_REQUIRES(manager_lock) {
    return qp_step(id, IBV_QPS_INIT)->attributes.qp_access_flags;
  };
  constexpr unsigned kAll = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
  for (const bool is_passive : {false, true}) {
    id.is_passive = is_passive;
    EXPECT_EQ(access(), kAll);
    uint8_t& depth = is_passive ? id.request.initiator_depth : id.request.responder_resources;
    depth = 0;
    EXPECT_EQ(access(), unsigned{IBV_ACCESS_REMOTE_WRITE});
    depth = 1;
  }
  id.handle = 0;
  EXPECT_EQ(access(), 0U) << "of no connection yet";
}

TEST_F(QpSteps, have_their_time) {
  const base::LockGuard guard(manager.mutex());
  id.has_reply = false;
  EXPECT_TRUE(qp_step(id, IBV_QPS_INIT));
  EXPECT_FALSE(qp_step(id, IBV_QPS_RTR)) << "the peer's answer is not there";
  EXPECT_FALSE(qp_step(id, IBV_QPS_RTS));
  id.is_passive = true;
  EXPECT_TRUE(qp_step(id, IBV_QPS_RTR)) << "who was asked knows the other from the start";
  id.handle = 0;
  EXPECT_FALSE(qp_step(id, IBV_QPS_RTR));
  for (const ibv_qp_state state : {IBV_QPS_RESET, IBV_QPS_SQD, IBV_QPS_ERR, IBV_QPS_UNKNOWN}) {
    EXPECT_FALSE(qp_step(id, state)) << state;
  }
}

TEST_F(QpSteps, a_programs_timeout_and_odd_ones_of_peers) {
  const base::LockGuard guard(manager.mutex());
  const auto timeout = [&]() RINGBOLT_REQUIRES(manager_lock) { return qp_step(id, IBV_QPS_RTS)->attributes.timeout; };
  id.request.primary.ack_timeout = 0;  // as a peer may send it: no wrap-around to 255
  id.is_passive = true;
  EXPECT_EQ(timeout(), cm::ack_timeout(cm::kAckDelay, 0));
  id.request.primary.ack_timeout = 31;
  EXPECT_EQ(timeout(), 31) << "the field has five bits";
  id.ack_timeout = 7;
  EXPECT_EQ(timeout(), 7);
  id.ack_timeout = 0;
  EXPECT_EQ(timeout(), 0) << "for ever, if that is what it wants";
}

TEST_F(QpSteps, address_the_peer_as_the_path_says) {
  const base::LockGuard guard(manager.mutex());
  const ibv_ah_attr active = address_vector(id);
  EXPECT_EQ(active.is_global, 1) << "RoCE has nothing but global addresses";
  EXPECT_EQ(active.grh.sgid_index, 3);
  EXPECT_EQ(active.grh.traffic_class, 0x20);
  EXPECT_EQ(active.grh.flow_label, 0x54321U);
  EXPECT_EQ(active.grh.hop_limit, 64);
  EXPECT_EQ(std::memcmp(active.grh.dgid.raw, id.route->remote_gid.data(), 16), 0);
  id.is_passive = true;
  const ibv_ah_attr passive = address_vector(id);
  EXPECT_EQ(passive.grh.traffic_class, 0x68);
  EXPECT_EQ(passive.grh.flow_label, 0x12345U);
  EXPECT_EQ(passive.grh.hop_limit, 12);
  for (const uint8_t useless : {uint8_t{0}, uint8_t{1}}) {  // what an answer would not get through a router with
    id.request.primary.hop_limit = useless;
    EXPECT_EQ(address_vector(id).grh.hop_limit, 64);
  }
}

TEST_F(QpSteps, the_c_function_writes_on_success_alone) {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTR;
  int mask = 4711;
  {
    const base::LockGuard guard(manager.mutex());
    id.has_reply = false;
  }
  errno = 0;
  EXPECT_EQ(rdma_init_qp_attr(&id.c, &attributes, &mask), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(mask, 4711);
  {
    const base::LockGuard guard(manager.mutex());
    id.has_reply = true;
  }
  EXPECT_EQ(rdma_init_qp_attr(&id.c, &attributes, &mask), 0);
  EXPECT_EQ(attributes.dest_qp_num, 0x333U);
  {
    const base::LockGuard guard(manager.mutex());
    id.route.reset();
  }
  EXPECT_EQ(rdma_init_qp_attr(&id.c, &attributes, &mask), -1);
  EXPECT_EQ(errno, EINVAL);
}

}  // namespace
}  // namespace ringbolt::rdmacm
