#include "device/queue_pair_attributes.h"

#include <cerrno>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "device/explanations.h"
#include "device/gid_table.h"
#include "device/limits.h"
#include "device/netdev.h"
#include "device/object_rules.h"
#include "device/qp_transitions.h"

namespace ringbolt::device {
namespace {

using profile::Rule;

constexpr const char* kCall = "ibv_modify_qp";
constexpr uint32_t kMaxPsn = 0xffffff;
constexpr uint32_t kMaxTimeout = 31;
constexpr uint32_t kMaxRetries = 7;

int check_path(const QueuePairCore& core, const ibv_ah_attr& path) {
  const Port& port = *core.port;
  const bool counts_frames = port.profile.limits.counts_frames;
  const ibv_global_route& route = path.grh;
  const auto addresses = port.addresses();
  const std::vector<ibv_gid>& gids = addresses->shown;
  if (gids.empty()) {
    return port.refuse(Rule::empty_gid_table, port.profile.knobs.empty_table_is_einval ? EINVAL : ENODATA,
                       "a path from a port whose GID table is empty");
  }
  const auto why = [&] { return why_path_refused(port, gids, path); };
  if (path.port_num != 1) {
    return base::refused(EINVAL, kCall, why);
  }
  if (path.is_global == 0 || route.sgid_index >= gids.size() || is_zero(gids[route.sgid_index])) {
    return counts_frames
               ? port.refuse(Rule::gid_index, EINVAL,
                             path.is_global == 0 ? std::string("a path without GIDs")
                                                 : fmt::format("a path from GID index {}", unsigned{route.sgid_index}))
               : base::refused(EINVAL, kCall, why);
  }
  if (counts_frames && is_zero(route.dgid)) {
    return port.refuse(Rule::gid_index, EINVAL, "a path to the GID of all zeros");
  }
  const ibv_gid& own = gids[route.sgid_index];
  if (!port.reaches(route.dgid) || (counts_frames && !port.owns(route.dgid) && is_ipv4(own) != is_ipv4(route.dgid))) {
    return counts_frames ? port.refuse(Rule::unreachable, ETIMEDOUT, "a path to a GID that is not at this cable's end")
                         : base::refused(ETIMEDOUT, kCall, why);
  }
  return port.is_remote(route.dgid) && is_ipv4(route.dgid) != is_ipv4(own) ? base::refused(EINVAL, kCall, why) : 0;
}

}  // namespace

int check_step(const QueuePairCore& core, ibv_qp_state from, ibv_qp_state to, int mask, bool is_allowed) {
  const Port& port = *core.port;
  if ((port.profile.limits.qp_types & type_bit(core.type)) == 0) {
    return port.refuse(Rule::qp_type, EOPNOTSUPP, "a queue pair of a type that the device lacks");
  }
  if (!is_allowed && port.profile.limits.counts_frames) {
    return port.refuse(Rule::attribute_mask, EINVAL,
                       fmt::format("the attributes given with the step from state {} to {}", static_cast<int>(from),
                                   static_cast<int>(to)));
  }
  return is_allowed ? 0 : base::refused(EINVAL, kCall, [&] { return why_not(core.type, from, to, mask); });
}

int check_attributes(const QueuePairCore& core, const ibv_qp_attr& attributes, int mask) {
  const auto wants = [&](int bit) { return (mask & bit) != 0; };
  const uint32_t read_atomic = profile::limited(core.port->profile.limits.read_atomic, kMaxReadAtomic);
  if ((wants(IBV_QP_PORT) && attributes.port_num != 1) || (wants(IBV_QP_PKEY_INDEX) && attributes.pkey_index != 0) ||
      (wants(IBV_QP_PATH_MTU) && (attributes.path_mtu < IBV_MTU_256 || attributes.path_mtu > IBV_MTU_4096)) ||
      (wants(IBV_QP_PATH_MTU) && attributes.path_mtu > core.port->mtu) ||
      (wants(IBV_QP_DEST_QPN) && attributes.dest_qp_num > kMaxPsn) ||
      (wants(IBV_QP_TIMEOUT) && attributes.timeout > kMaxTimeout) ||
      (wants(IBV_QP_RETRY_CNT) && attributes.retry_cnt > kMaxRetries) ||
      (wants(IBV_QP_RNR_RETRY) && attributes.rnr_retry > kMaxRetries) ||
      (wants(IBV_QP_MIN_RNR_TIMER) && attributes.min_rnr_timer > kMaxTimeout) ||
      (wants(IBV_QP_MAX_QP_RD_ATOMIC) && attributes.max_rd_atomic > read_atomic) ||
      (wants(IBV_QP_MAX_DEST_RD_ATOMIC) && attributes.max_dest_rd_atomic > read_atomic)) {
    return base::refused(EINVAL, kCall, [&] { return why_attribute_refused(*core.port, attributes, mask); });
  }
  return wants(IBV_QP_AV) ? check_path(core, attributes.ah_attr) : 0;
}

void store_attributes(const ibv_qp_attr& from, int mask, ibv_qp_attr& into) {
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

}  // namespace ringbolt::device
