// What ibv_modify_qp sets and ibv_query_qp tells.

#include <cerrno>

#include "base/lock_guard.h"
#include "device/limits.h"
#include "device/queue_pair.h"

namespace ringbolt::device {
namespace {

constexpr uint32_t kMaxPsn = 0xffffff;
constexpr uint32_t kMaxTimeout = 31;
constexpr uint32_t kMaxRetries = 7;

}  // namespace

int QueuePair::check_attributes(const ibv_qp_attr& attributes, int mask) const {
  const auto wants = [&](int bit) { return (mask & bit) != 0; };
  const uint32_t read_atomic = profile::limited(context_.port().profile.limits.read_atomic, kMaxReadAtomic);
  if ((wants(IBV_QP_PORT) && attributes.port_num != 1) || (wants(IBV_QP_PKEY_INDEX) && attributes.pkey_index != 0) ||
      (wants(IBV_QP_PATH_MTU) && (attributes.path_mtu < IBV_MTU_256 || attributes.path_mtu > IBV_MTU_4096)) ||
      (wants(IBV_QP_PATH_MTU) && attributes.path_mtu > context_.port().mtu) ||
      (wants(IBV_QP_DEST_QPN) && attributes.dest_qp_num > kMaxPsn) ||
      (wants(IBV_QP_TIMEOUT) && attributes.timeout > kMaxTimeout) ||
      (wants(IBV_QP_RETRY_CNT) && attributes.retry_cnt > kMaxRetries) ||
      (wants(IBV_QP_RNR_RETRY) && attributes.rnr_retry > kMaxRetries) ||
      (wants(IBV_QP_MIN_RNR_TIMER) && attributes.min_rnr_timer > kMaxTimeout) ||
      (wants(IBV_QP_MAX_QP_RD_ATOMIC) && attributes.max_rd_atomic > read_atomic) ||
      (wants(IBV_QP_MAX_DEST_RD_ATOMIC) && attributes.max_dest_rd_atomic > read_atomic)) {
    return EINVAL;
  }
  return wants(IBV_QP_AV) ? check_path(attributes.ah_attr) : 0;
}

void QueuePair::store_attributes(const ibv_qp_attr& from, int mask) {
  ibv_qp_attr& into = attributes_;
  const auto take = [&](int bit, auto member) {
    if ((mask & bit) != 0) {
      into.*member = from.*member;
    }
  };
  take(IBV_QP_ACCESS_FLAGS, &ibv_qp_attr::qp_access_flags);
  take(IBV_QP_PKEY_INDEX, &ibv_qp_attr::pkey_index);
  take(IBV_QP_PORT, &ibv_qp_attr::port_num);
  take(IBV_QP_QKEY, &ibv_qp_attr::qkey);
  take(IBV_QP_AV, &ibv_qp_attr::ah_attr);
  take(IBV_QP_PATH_MTU, &ibv_qp_attr::path_mtu);
  take(IBV_QP_TIMEOUT, &ibv_qp_attr::timeout);
  take(IBV_QP_RETRY_CNT, &ibv_qp_attr::retry_cnt);
  take(IBV_QP_RNR_RETRY, &ibv_qp_attr::rnr_retry);
  take(IBV_QP_RQ_PSN, &ibv_qp_attr::rq_psn);
  take(IBV_QP_MAX_QP_RD_ATOMIC, &ibv_qp_attr::max_rd_atomic);
  take(IBV_QP_MIN_RNR_TIMER, &ibv_qp_attr::min_rnr_timer);
  take(IBV_QP_SQ_PSN, &ibv_qp_attr::sq_psn);
  take(IBV_QP_MAX_DEST_RD_ATOMIC, &ibv_qp_attr::max_dest_rd_atomic);
  take(IBV_QP_PATH_MIG_STATE, &ibv_qp_attr::path_mig_state);
  take(IBV_QP_DEST_QPN, &ibv_qp_attr::dest_qp_num);
}

void QueuePair::query(ibv_qp_attr& attributes, ibv_qp_init_attr& init) {
  const base::LockGuard one_at_a_time(modify_lock_);
  attributes = kept_attributes();
  attributes.qp_state = attributes.cur_qp_state = state_.load();
  attributes.cap = caps_;
  init = {};
  init.cap = caps_;
  init.qp_type = type_;
  init.sq_sig_all = signals_all_ ? 1 : 0;
}

}  // namespace ringbolt::device
