#include "device/qp_transitions.h"

#include <algorithm>
#include <iterator>

namespace ringbolt::device {
namespace {

enum Types : unsigned { kRc = 1, kUc = 2, kUd = 4, kConnected = kRc | kUc, kAll = kConnected | kUd };

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
constexpr int kUcDrained = IBV_QP_AV | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PATH_MIG_STATE;
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

}  // namespace

bool may_transition(ibv_qp_type type, ibv_qp_state from, ibv_qp_state to, int mask) {
  const int attributes = mask & ~IBV_QP_STATE;
  if (to == IBV_QPS_RESET || to == IBV_QPS_ERR) {
    return attributes == 0;
  }
  const auto* step = std::ranges::find_if(kSteps, [&](const Step& one) {
    return one.from == from && one.to == to && (one.types & type_bit(type)) != 0;
  });
  return step != std::end(kSteps) && (attributes & step->required) == step->required &&
         (attributes & ~(step->required | step->optional)) == 0;
}

}  // namespace ringbolt::device
