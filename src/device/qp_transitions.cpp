#include "device/qp_transitions.h"

#include <algorithm>
#include <iterator>
#include <string>

#include <fmt/format.h>

namespace ringbolt::device {
namespace {

enum Types : unsigned { kRc = 1, kUc = 2, kUd = 4, kConnected = kRc | kUc, kAll = kConnected | kUd };

/// A row of the tables for Modify Queue Pair (InfiniBand Architecture Specification, 11.2.5.2), as man ibv_modify_qp
/// has them: `required` and `optional` are masks of ibv_qp_attr_mask.
struct Step {
  ibv_qp_state from;
  ibv_qp_state to;
  unsigned types;
  int required;
  int optional;
};

constexpr int kPath = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
constexpr int kConnectedInit = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
constexpr int kDatagramInit = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
constexpr int kUcRunning = IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE;
constexpr int kRcRunning = kUcRunning | IBV_QP_MIN_RNR_TIMER;
constexpr int kUdRunning = IBV_QP_CUR_STATE | IBV_QP_QKEY;
constexpr int kUcDrained =
    IBV_QP_AV | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PATH_MIG_STATE;
constexpr int kRcRetries = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
constexpr int kRcDrained = kUcDrained | IBV_QP_PORT | kRcRetries | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;

constexpr Step kSteps[] = {
    {IBV_QPS_RESET, IBV_QPS_INIT, kConnected, kConnectedInit, 0},
    {IBV_QPS_RESET, IBV_QPS_INIT, kUd, kDatagramInit, 0},
    {IBV_QPS_INIT, IBV_QPS_INIT, kConnected, 0, kConnectedInit},
    {IBV_QPS_INIT, IBV_QPS_INIT, kUd, 0, kDatagramInit},
    {IBV_QPS_INIT, IBV_QPS_RTR, kUc, kPath, IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
    {IBV_QPS_INIT, IBV_QPS_RTR, kRc, kPath | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
     IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
    {IBV_QPS_INIT, IBV_QPS_RTR, kUd, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},
    {IBV_QPS_RTR, IBV_QPS_RTS, kUc, IBV_QP_SQ_PSN, kUcRunning},
    {IBV_QPS_RTR, IBV_QPS_RTS, kRc, IBV_QP_SQ_PSN | kRcRetries, kRcRunning},
    {IBV_QPS_RTR, IBV_QPS_RTS, kUd, IBV_QP_SQ_PSN, kUdRunning},
    {IBV_QPS_RTS, IBV_QPS_RTS, kUc, 0, kUcRunning},
    {IBV_QPS_RTS, IBV_QPS_RTS, kRc, 0, kRcRunning},
    {IBV_QPS_RTS, IBV_QPS_RTS, kUd, 0, kUdRunning},
    {IBV_QPS_RTS, IBV_QPS_SQD, kAll, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
    {IBV_QPS_SQD, IBV_QPS_RTS, kUc, 0, kUcRunning},
    {IBV_QPS_SQD, IBV_QPS_RTS, kRc, 0, kRcRunning},
    {IBV_QPS_SQD, IBV_QPS_RTS, kUd, 0, kUdRunning},
    {IBV_QPS_SQD, IBV_QPS_SQD, kUc, 0, kUcDrained},
    {IBV_QPS_SQD, IBV_QPS_SQD, kRc, 0, kRcDrained},
    {IBV_QPS_SQD, IBV_QPS_SQD, kUd, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},
    {IBV_QPS_SQE, IBV_QPS_RTS, kUc, 0, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS},
    {IBV_QPS_SQE, IBV_QPS_RTS, kUd, 0, kUdRunning},
};

unsigned type_bit(ibv_qp_type type) {
  switch (type) {
    case IBV_QPT_RC:
      return kRc;
    case IBV_QPT_UC:
      return kUc;
    case IBV_QPT_UD:
      return kUd;
    default:
      return 0;
  }
}

constexpr struct {
  int bit;
  const char* name;
} kAttributes[] = {
    {IBV_QP_CUR_STATE, "IBV_QP_CUR_STATE"},
    {IBV_QP_EN_SQD_ASYNC_NOTIFY, "IBV_QP_EN_SQD_ASYNC_NOTIFY"},
    {IBV_QP_ACCESS_FLAGS, "IBV_QP_ACCESS_FLAGS"},
    {IBV_QP_PKEY_INDEX, "IBV_QP_PKEY_INDEX"},
    {IBV_QP_PORT, "IBV_QP_PORT"},
    {IBV_QP_QKEY, "IBV_QP_QKEY"},
    {IBV_QP_AV, "IBV_QP_AV"},
    {IBV_QP_PATH_MTU, "IBV_QP_PATH_MTU"},
    {IBV_QP_TIMEOUT, "IBV_QP_TIMEOUT"},
    {IBV_QP_RETRY_CNT, "IBV_QP_RETRY_CNT"},
    {IBV_QP_RNR_RETRY, "IBV_QP_RNR_RETRY"},
    {IBV_QP_RQ_PSN, "IBV_QP_RQ_PSN"},
    {IBV_QP_MAX_QP_RD_ATOMIC, "IBV_QP_MAX_QP_RD_ATOMIC"},
    {IBV_QP_ALT_PATH, "IBV_QP_ALT_PATH"},
    {IBV_QP_MIN_RNR_TIMER, "IBV_QP_MIN_RNR_TIMER"},
    {IBV_QP_SQ_PSN, "IBV_QP_SQ_PSN"},
    {IBV_QP_MAX_DEST_RD_ATOMIC, "IBV_QP_MAX_DEST_RD_ATOMIC"},
    {IBV_QP_PATH_MIG_STATE, "IBV_QP_PATH_MIG_STATE"},
    {IBV_QP_DEST_QPN, "IBV_QP_DEST_QPN"},
};

std::string names_of(int attributes) {
  std::string names;
  for (const auto& one : kAttributes) {
    if ((attributes & one.bit) != 0) {
      names += (names.empty() ? "" : ", ") + std::string(one.name);
      attributes &= ~one.bit;
    }
  }
  return attributes == 0 ? names : names + fmt::format("{}{:#x}", names.empty() ? "" : ", ", attributes);
}

const Step* find_step(ibv_qp_type type, ibv_qp_state from, ibv_qp_state to) {
  const auto* step = std::ranges::find_if(
      kSteps, [&](const Step& one) { return one.from == from && one.to == to && (one.types & type_bit(type)) != 0; });
  return step == std::end(kSteps) ? nullptr : step;
}

}  // namespace

const char* name_of(ibv_qp_state state) {
  constexpr const char* kNames[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
  return state >= IBV_QPS_RESET && state <= IBV_QPS_ERR ? kNames[state] : "a state that there is none of";
}

const char* name_of(ibv_qp_type type) { return type == IBV_QPT_RC ? "RC" : type == IBV_QPT_UC ? "UC" : "UD"; }

base::Explanation why_not(ibv_qp_type type, ibv_qp_state from, ibv_qp_state to, int mask) {
  const int attributes = mask & ~IBV_QP_STATE;
  const std::string step_text =
      fmt::format("the step of a queue pair of type {} from {} to {}", name_of(type), name_of(from), name_of(to));
  if (to == IBV_QPS_RESET || to == IBV_QPS_ERR) {
    return {fmt::format("{} takes no attributes, and {} came with it", step_text, names_of(attributes)),
            "give IBV_QP_STATE alone"};
  }
  const Step* const step = find_step(type, from, to);
  if (step == nullptr) {
    return {fmt::format("there is no such thing as {}", step_text),
            from == IBV_QPS_ERR || from == IBV_QPS_SQE ? "step to RESET, and from there by INIT and RTR to RTS"
                                                       : "step from RESET by INIT and RTR to RTS, one call each"};
  }
  if (const int missing = step->required & ~attributes; missing != 0) {
    return {fmt::format("{} needs {}, which the mask lacks", step_text, names_of(missing)),
            "set these members, and their bits in the mask"};
  }
  const int excess = attributes & ~(step->required | step->optional);
  return {fmt::format("{} does not take {}", step_text, names_of(excess)), "leave these bits out of the mask"};
}

bool may_transition(ibv_qp_type type, ibv_qp_state from, ibv_qp_state to, int mask) {
  const int attributes = mask & ~IBV_QP_STATE;
  if (to == IBV_QPS_RESET || to == IBV_QPS_ERR) {
    return attributes == 0;
  }
  const Step* const step = find_step(type, from, to);
  return step != nullptr && (attributes & step->required) == step->required &&
         (attributes & ~(step->required | step->optional)) == 0;
}

}  // namespace ringbolt::device
