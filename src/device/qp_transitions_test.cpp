#include "device/qp_transitions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <utility>

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
  for (const ibv_qp_state from :
       {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_SQD, IBV_QPS_SQE, IBV_QPS_ERR}) {
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

// --- Every step, with every attribute.

/// What ibv_modify_qp(3) lists as required, and what the specification (11.2.5.2) lets come along.
struct KnownStep {
  ibv_qp_type type;
  ibv_qp_state from;
  ibv_qp_state to;
  int required;
  int optional;
};

constexpr int kInitMask = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
constexpr int kRtrMask = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
constexpr int kRtrMore = IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX;
constexpr int kRtsMore = IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE;
constexpr KnownStep kKnownSteps[] = {
    {IBV_QPT_RC, IBV_QPS_RESET, IBV_QPS_INIT, kInitMask, 0},
    {IBV_QPT_UC, IBV_QPS_RESET, IBV_QPS_INIT, kInitMask, 0},
    {IBV_QPT_UD, IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, 0},
    {IBV_QPT_RC, IBV_QPS_INIT, IBV_QPS_RTR, kRtrMask | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER, kRtrMore},
    {IBV_QPT_UC, IBV_QPS_INIT, IBV_QPS_RTR, kRtrMask, kRtrMore},
    {IBV_QPT_UD, IBV_QPS_INIT, IBV_QPS_RTR, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},
    {IBV_QPT_RC, IBV_QPS_RTR, IBV_QPS_RTS,
     IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_TIMEOUT,
     kRtsMore | IBV_QP_MIN_RNR_TIMER},
    {IBV_QPT_UC, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN, kRtsMore},
    {IBV_QPT_UD, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN, IBV_QP_CUR_STATE | IBV_QP_QKEY},
    {IBV_QPT_RC, IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
    {IBV_QPT_UD, IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
    {IBV_QPT_RC, IBV_QPS_SQD, IBV_QPS_RTS, 0, kRtsMore | IBV_QP_MIN_RNR_TIMER},
    {IBV_QPT_UC, IBV_QPS_SQE, IBV_QPS_RTS, 0, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS},
    {IBV_QPT_UD, IBV_QPS_SQE, IBV_QPS_RTS, 0, IBV_QP_CUR_STATE | IBV_QP_QKEY},
};
constexpr int kLastAttribute = IBV_QP_DEST_QPN;

TEST(Transitions, each_step_takes_what_it_needs_and_no_attribute_less) {
  for (const KnownStep& step : kKnownSteps) {
    const auto may = [&](int mask) { return may_transition(step.type, step.from, step.to, mask); };
    EXPECT_TRUE(may(IBV_QP_STATE | step.required)) << step.type << " " << step.from << " " << step.to;
    EXPECT_TRUE(may(IBV_QP_STATE | step.required | step.optional));
    for (int bit = 1; bit <= kLastAttribute; bit *= 2) {
      if ((step.required & bit) != 0) {
        EXPECT_FALSE(may(IBV_QP_STATE | (step.required & ~bit))) << bit;
        EXPECT_FALSE(may(IBV_QP_STATE | step.optional | (step.required & ~bit))) << bit;
      }
    }
  }
}

TEST(Transitions, each_step_takes_what_may_come_along_and_no_other_attribute) {
  for (const KnownStep& step : kKnownSteps) {
    for (int bit = 1; bit <= 2 * kLastAttribute; bit *= 2) {
      const bool is_known = ((step.required | step.optional | IBV_QP_STATE) & bit) != 0;
      EXPECT_EQ(may_transition(step.type, step.from, step.to, IBV_QP_STATE | step.required | bit), is_known)
          << step.type << " " << step.from << " " << step.to << " " << bit;
    }
  }
}

// Figure 124 of the specification: beside these there are only RESET and ERR to go to, and staying.
TEST(Transitions, nothing_leads_where_the_specification_has_no_arrow) {
  constexpr std::pair<ibv_qp_state, ibv_qp_state> kArrows[] = {
      {IBV_QPS_RESET, IBV_QPS_INIT}, {IBV_QPS_INIT, IBV_QPS_INIT}, {IBV_QPS_INIT, IBV_QPS_RTR},
      {IBV_QPS_RTR, IBV_QPS_RTS},    {IBV_QPS_RTS, IBV_QPS_RTS},   {IBV_QPS_RTS, IBV_QPS_SQD},
      {IBV_QPS_SQD, IBV_QPS_SQD},    {IBV_QPS_SQD, IBV_QPS_RTS},   {IBV_QPS_SQE, IBV_QPS_RTS}};
  for (const ibv_qp_type type : {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD}) {
    for (int from = IBV_QPS_RESET; from <= IBV_QPS_ERR; ++from) {
      for (int to = IBV_QPS_INIT; to < IBV_QPS_ERR; ++to) {
        const std::pair arrow{static_cast<ibv_qp_state>(from), static_cast<ibv_qp_state>(to)};
        const bool leaves_sqe_on_rc = type == IBV_QPT_RC && from == IBV_QPS_SQE;  // RC never enters it
        if (std::ranges::find(kArrows, arrow) != std::end(kArrows) && !leaves_sqe_on_rc) {
          continue;
        }
        EXPECT_FALSE(may_transition(type, arrow.first, arrow.second, IBV_QP_STATE)) << from << " " << to;
        for (const KnownStep& step : kKnownSteps) {
          EXPECT_FALSE(may_transition(type, arrow.first, arrow.second, IBV_QP_STATE | step.required | step.optional));
        }
      }
    }
  }
}

TEST(Transitions, states_and_types_have_names) {
  EXPECT_STREQ(name_of(IBV_QPS_SQE), "SQE");
  EXPECT_STREQ(name_of(IBV_QPS_ERR), "ERR");
  EXPECT_STREQ(name_of(IBV_QPS_UNKNOWN), "a state that there is none of");
  EXPECT_STREQ(name_of(IBV_QPT_UC), "UC");
}

}  // namespace
}  // namespace ringbolt::device
