#include "rdmacm/qp_attributes.h"
#include "base/c_border.h"

#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "cm/timing.h"
#include "rdmacm/connection_manager.h"
#include "rdmacm/explanations.h"
#include "rdmacm/identifiers.h"

namespace ringbolt::rdmacm {
namespace {

constexpr int kAllAccess = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

// RC, and XRC as well: all that have acknowledgements and READs.
bool is_reliable(const Id& id) { return id.c.qp_type != IBV_QPT_UC && id.c.qp_type != IBV_QPT_UD; }

/// What this side answers and begins at most: the reply has the last word.
uint8_t responder_resources(const Id& id) RINGBOLT_REQUIRES(manager_lock) {
  return id.is_passive ? id.reply.responder_resources : id.reply.initiator_depth;
}
uint8_t initiator_depth(const Id& id) RINGBOLT_REQUIRES(manager_lock) {
  return id.is_passive ? id.reply.initiator_depth : id.reply.responder_resources;
}

QpStep init_step(const Id& id) RINGBOLT_REQUIRES(manager_lock) {
  QpStep step;
  step.attributes.qp_state = IBV_QPS_INIT;
  step.attributes.port_num = 1;
  step.mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
  if (id.is_datagram()) {
    step.attributes.qkey = RDMA_UDP_QKEY;
    step.mask |= IBV_QP_QKEY;
    return step;
  }
  step.mask |= IBV_QP_ACCESS_FLAGS;
  // Before a connection is known nothing may be accessed from outside.
  if (id.handle != 0) {
    // As the kernel's cma: who is to begin READs may also read.
    const bool reads = (id.is_passive ? id.request.initiator_depth : id.request.responder_resources) > 0;
    step.attributes.qp_access_flags = reads ? static_cast<unsigned>(kAllAccess) : unsigned{IBV_ACCESS_REMOTE_WRITE};
  }
  return step;
}

QpStep rtr_step(const Id& id) RINGBOLT_REQUIRES(manager_lock) {
  QpStep step;
  step.attributes.qp_state = IBV_QPS_RTR;
  step.attributes.ah_attr = address_vector(id);
  step.attributes.path_mtu = static_cast<ibv_mtu>(id.request.path_mtu);
  step.attributes.dest_qp_num = id.is_passive ? id.request.local_qpn : id.reply.local_qpn;
  // REQ and REP name the PSN with which the other side shall begin (Starting PSN of the InfiniBand specification).
  step.attributes.rq_psn = id.is_passive ? id.reply.starting_psn : id.request.starting_psn;
  step.mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  if (is_reliable(id)) {
    step.attributes.max_dest_rd_atomic = responder_resources(id);
    // 655 ms (InfiniBand specification, 9.7.5.2.8, table 45), as the kernel sets it.
    step.attributes.min_rnr_timer = 0;
    step.mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  }
  return step;
}

QpStep rts_step(const Id& id) RINGBOLT_REQUIRES(manager_lock) {
  QpStep step;
  step.attributes.qp_state = IBV_QPS_RTS;
  step.attributes.sq_psn = id.is_passive ? id.request.starting_psn : id.reply.starting_psn;
  step.mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
  if (is_reliable(id)) {
    const auto lifetime = static_cast<uint8_t>(std::max(1, int{id.request.primary.ack_timeout}) - 1);
    // The peer's delay is what its REP says; a REQ has no place for it.
    const uint8_t delay = id.is_passive ? cm::kAckDelay : id.reply.target_ack_delay;
    step.attributes.timeout = id.ack_timeout.value_or(cm::ack_timeout(delay, lifetime));
    step.attributes.retry_cnt = id.request.retry_count;
    step.attributes.rnr_retry = id.is_passive ? id.request.rnr_retry_count : id.reply.rnr_retry_count;
    step.attributes.max_rd_atomic = initiator_depth(id);
    step.mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
  }
  return step;
}

}  // namespace

ibv_ah_attr address_vector(const Id& id) {
  ibv_ah_attr attributes{};
  attributes.is_global = 1;
  attributes.port_num = 1;
  attributes.grh.sgid_index = id.route->gid_index;
  // 64 where the REQ has none to speak of: 0 and 1 would not pass a router.
  attributes.grh.hop_limit = id.is_passive && id.request.primary.hop_limit > 1 ? id.request.primary.hop_limit : 64;
  attributes.grh.traffic_class = id.is_passive ? id.request.primary.traffic_class : id.path.traffic_class;
  attributes.grh.flow_label = id.is_passive ? id.request.primary.flow_label : ntohl(id.path.flow_label);
  std::memcpy(attributes.grh.dgid.raw, id.route->remote_gid.data(), id.route->remote_gid.size());
  return attributes;
}

std::optional<QpStep> qp_step(const Id& id, ibv_qp_state state) {
  const bool knows_peer = id.handle != 0 && (id.is_passive || id.has_reply);
  switch (state) {
    case IBV_QPS_INIT:
      return init_step(id);
    case IBV_QPS_RTR:
      return knows_peer ? std::optional(rtr_step(id)) : std::nullopt;
    case IBV_QPS_RTS:
      return knows_peer ? std::optional(rts_step(id)) : std::nullopt;
    default:
      return std::nullopt;
  }
}

int prepare_queue_pair(Id& id) {
  for (const ibv_qp_state state : {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS}) {
    auto step = qp_step(id, state);
    if (!step) {
      return EINVAL;
    }
    if (const int error = ibv_modify_qp(id.c.qp, &step->attributes, step->mask)) {
      return error;
    }
  }
  return 0;
}

int initialize_queue_pair(Id& id, ibv_qp* qp) {
  auto step = qp_step(id, IBV_QPS_INIT);
  if (const int error = ibv_modify_qp(qp, &step->attributes, step->mask)) {
    return error;
  }
  if (!id.is_datagram()) {
    return 0;
  }
  // Datagrams need nothing of a peer: all three steps at once (ibv_modify_qp(3)). The first PSN is 0.
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTR;
  if (const int error = ibv_modify_qp(qp, &attributes, IBV_QP_STATE)) {
    return error;
  }
  attributes.qp_state = IBV_QPS_RTS;
  return ibv_modify_qp(qp, &attributes, IBV_QP_STATE | IBV_QP_SQ_PSN);
}

void flush_queue_pair(Id& id) {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_ERR;
  static_cast<void>(ibv_modify_qp(id.c.qp, &attributes, IBV_QP_STATE));
}

}  // namespace ringbolt::rdmacm

extern "C" {

int rdma_init_qp_attr(rdma_cm_id* c, ibv_qp_attr* attributes, int* mask) try {
  using namespace ringbolt::rdmacm;
  namespace base = ringbolt::base;
  const Id& id = Id::of(c);
  if (!is_ours(id)) {
    return -1;
  }
  const base::LockGuard guard(id.manager->mutex());
  if (!id.route) {
    return result(wrong_phase("rdma_init_qp_attr", id, "resolved to an address, or that of a CONNECT_REQUEST"));
  }
  const auto step = qp_step(id, attributes->qp_state);
  if (!step) {
    return result(wrong_phase("rdma_init_qp_attr", id, "connecting with the peer's answer there, for RTR and RTS"));
  }
  *attributes = step->attributes;
  *mask = step->mask;
  return 0;
} catch (...) {
  return ringbolt::base::caught_minus_one();
}

}  // extern "C"
