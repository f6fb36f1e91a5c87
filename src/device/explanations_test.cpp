#include "device/explanations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "device/gid_table.h"
#include "device/qp_transitions.h"

namespace ringbolt::device {
namespace {

using testing::HasSubstr;

Port port_with_peer() {
  Port port;
  port.name = "rdma_en2";
  port.known_gids = memory_gids(1, 0x0a000001);
  port.peer_gids = memory_gids(2, 0x0a000002);
  port.fabric = std::make_shared<Fabric>();
  return port;
}

ibv_ah_attr path_to(const ibv_gid& gid, uint8_t index) {
  ibv_ah_attr path{};
  path.is_global = 1;
  path.port_num = 1;
  path.grh.dgid = gid;
  path.grh.sgid_index = index;
  return path;
}

TEST(Explanations, a_path_says_which_index_would_do) {
  const Port port = port_with_peer();
  const auto why = why_path_refused(port, port.known_gids, path_to(port.peer_gids[1], 7));
  EXPECT_EQ(why.why, "GID index 7 is beyond the table: rdma_en2 has 3 GIDs, and ::ffff:10.0.0.1 is at index 1");
  EXPECT_EQ(why.fix, "set grh.sgid_index to 1, or look it up with ibv_query_gid");
}

TEST(Explanations, a_path_says_who_is_at_the_end_of_the_cable) {
  const Port port = port_with_peer();
  EXPECT_THAT(why_path_refused(port, port.known_gids, path_to(mapped_gid(0x0a000009), 1)).why,
              HasSubstr("does not reach ::ffff:10.0.0.9: at the end of its cable are "));
  EXPECT_THAT(why_path_refused(port, port.known_gids, path_to(ibv_gid{}, 1)).why, HasSubstr("all zeros"));
}

TEST(Explanations, a_step_names_what_it_lacks_and_what_is_too_much) {
  EXPECT_EQ(why_not(IBV_QPT_UC, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_STATE).why,
            "the step of a queue pair of type UC from RTR to RTS needs IBV_QP_SQ_PSN, which the mask lacks");
  EXPECT_THAT(why_not(IBV_QPT_RC, IBV_QPS_RTS, IBV_QPS_ERR, IBV_QP_STATE | IBV_QP_PORT).why,
              HasSubstr("takes no attributes, and IBV_QP_PORT came with it"));
  EXPECT_THAT(why_not(IBV_QPT_RC, IBV_QPS_ERR, IBV_QPS_RTS, IBV_QP_STATE).fix, HasSubstr("step to RESET"));
  EXPECT_THAT(why_not(IBV_QPT_RC, IBV_QPS_RTR, IBV_QPS_UNKNOWN, IBV_QP_STATE).why, HasSubstr("to a state that"));
}

TEST(Explanations, what_was_refused_on_purpose_is_called_nothing_else) {
  ibv_send_wr send{};
  send.opcode = IBV_WR_SEND;
  const SendQueue::Limits limits{4, 1, 0, false};
  EXPECT_THAT(why_send_refused(send, IBV_QPT_RC, IBV_QPS_RTS, limits, 0).why, HasSubstr("a fault, or the profile"));
  EXPECT_THAT(why_send_refused(send, IBV_QPT_RC, IBV_QPS_RTS, limits, 4).why, HasSubstr("full: 4 of 4"));
  EXPECT_THAT(why_receive_refused({}, 1, 2, 1).why, HasSubstr("a fault, or the profile"));
  EXPECT_THAT(why_receive_refused({}, 2, 2, 1).why, HasSubstr("full: it holds 2"));
}

TEST(Explanations, memory_says_what_is_wrong_with_it) {
  EXPECT_THAT(why_memory_refused(UINT64_MAX - 10, 100, true).why, HasSubstr("beyond the end of addresses"));
  EXPECT_THAT(why_access_refused(1U << 12U).why, HasSubstr("access 0x1000 has flags that mean nothing"));
}

}  // namespace
}  // namespace ringbolt::device
