#include "device/qp_transitions.h"

#include <gtest/gtest.h>

namespace ringbolt::device {
namespace {

// The masks that JACCL uses, digit for digit.
TEST(Transitions, the_masks_of_a_known_program_pass) {
  EXPECT_TRUE(may_transition(IBV_QPT_UC, IBV_QPS_RESET, IBV_QPS_INIT, 0x39));
  EXPECT_TRUE(may_transition(IBV_QPT_UC, IBV_QPS_INIT, IBV_QPS_RTR, 0x101181));
  EXPECT_TRUE(may_transition(IBV_QPT_UC, IBV_QPS_RTR, IBV_QPS_RTS, 0x10001));
}

TEST(Transitions, what_rc_needs_is_missing_for_rc) {
  EXPECT_FALSE(may_transition(IBV_QPT_RC, IBV_QPS_INIT, IBV_QPS_RTR, 0x101181));
  EXPECT_FALSE(may_transition(IBV_QPT_RC, IBV_QPS_RTR, IBV_QPS_RTS, 0x10001));
}

TEST(Transitions, states_cannot_be_skipped) {
  const int init = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
  EXPECT_TRUE(may_transition(IBV_QPT_UD, IBV_QPS_RESET, IBV_QPS_INIT, init));
  EXPECT_FALSE(may_transition(IBV_QPT_UD, IBV_QPS_RESET, IBV_QPS_RTR, init));
  EXPECT_FALSE(may_transition(IBV_QPT_UD, IBV_QPS_RESET, IBV_QPS_RTS, IBV_QP_STATE | IBV_QP_SQ_PSN));
  EXPECT_FALSE(may_transition(IBV_QPT_UD, IBV_QPS_RTS, IBV_QPS_RTR, IBV_QP_STATE));
}

TEST(Transitions, every_state_leads_to_reset_and_error_without_attributes) {
  for (const ibv_qp_state from : {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_SQD, IBV_QPS_SQE,
                                  IBV_QPS_ERR}) {
    for (const ibv_qp_state to : {IBV_QPS_RESET, IBV_QPS_ERR}) {
      EXPECT_TRUE(may_transition(IBV_QPT_RC, from, to, IBV_QP_STATE));
      EXPECT_FALSE(may_transition(IBV_QPT_RC, from, to, IBV_QP_STATE | IBV_QP_PORT));
    }
  }
}

TEST(Transitions, an_attribute_that_the_step_does_not_know_is_refused) {
  EXPECT_FALSE(may_transition(IBV_QPT_UC, IBV_QPS_RESET, IBV_QPS_INIT, 0x39 | IBV_QP_QKEY));
  EXPECT_FALSE(may_transition(IBV_QPT_UC, IBV_QPS_RTR, IBV_QPS_RTS, 0x10001 | IBV_QP_TIMEOUT));
}

TEST(Transitions, types_that_the_device_does_not_have_go_nowhere) {
  EXPECT_FALSE(may_transition(IBV_QPT_RAW_PACKET, IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_STATE | IBV_QP_PORT));
}

}  // namespace
}  // namespace ringbolt::device
