#include "verbs/queue_pair.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "base/assert.h"
#include "verbs/refusal.h"

namespace ringbolt::verbs {
namespace {

bool is_zero(const ibv_gid& gid) {
  return std::all_of(std::begin(gid.raw), std::end(gid.raw), [](uint8_t byte) { return byte == 0; });
}

// 0, or what the provider returned or left in errno, as a positive number. May block in the driver: all callers hold a
// DriverCall, which tells a watchdog where.
int modify(const Calls& calls, ibv_qp* qp, ibv_qp_attr& attributes, int mask) {
  errno = 0;
  const int returned = calls.modify_qp(qp, &attributes, mask);
  return error_of(returned, errno);
}

}  // namespace

UnconnectedQueuePair::UnconnectedQueuePair(const ProtectionDomain& pd, const QueuePairPlan& plan)
    : context_(&pd.context()) {
  RINGBOLT_ASSERT(plan.send_cq != nullptr && plan.receive_cq != nullptr);
  ibv_qp_init_attr wanted{};
  wanted.send_cq = plan.send_cq->get();
  wanted.recv_cq = plan.receive_cq->get();
  wanted.qp_type = plan.type;
  wanted.sq_sig_all = plan.is_each_signalled ? 1 : 0;
  wanted.cap.max_send_wr = plan.send_depth;
  wanted.cap.max_recv_wr = plan.receive_depth;
  wanted.cap.max_send_sge = plan.send_pieces;
  wanted.cap.max_recv_sge = plan.receive_pieces;
  wanted.cap.max_inline_data = plan.inline_bytes;
  const DriverCall at(Step::kCreateQp, context_->device());
  errno = 0;
  ibv_qp* made = context_->calls().create_qp(pd.get(), &wanted);
  if (made == nullptr) {
    // Before formatting, which may change it.
    const int error = errno;
    refuse(Step::kCreateQp, error,
           fmt::format("{}, a {} queue pair of {} sends and {} receives, {} and {} pieces, {} bytes inline",
                       context_->device(), text_of(plan.type), plan.send_depth, plan.receive_depth, plan.send_pieces,
                       plan.receive_pieces, plan.inline_bytes));
  }
  qp_ = Owned<ibv_qp>(made, Close(context_->library()));
  // create_qp writes back what it has granted (ibv_create_qp(3)).
  depths_ = wanted.cap;
  learn_depths(plan);
}

void UnconnectedQueuePair::learn_depths(const QueuePairPlan& plan) {
  // A device may grant what create_qp does not write back (TN3205). One that can't be asked has granted what was asked.
  if (const Calls& calls = context_->calls(); calls.query_qp != nullptr) {
    ibv_qp_attr attributes{};
    ibv_qp_init_attr init{};
    const DriverCall at(Step::kQueryQp, context_->device());
    if (calls.query_qp(get(), &attributes, IBV_QP_CAP, &init) == 0 && init.cap.max_send_wr != 0 &&
        init.cap.max_recv_wr != 0) {
      depths_ = init.cap;
    }
  }
  if (depths_.max_send_wr == 0 || depths_.max_recv_wr == 0) {
    depths_.max_send_wr = plan.send_depth;
    depths_.max_recv_wr = plan.receive_depth;
  }
}

void UnconnectedQueuePair::to_init(const Path& path) {
  // The state that this object believes in: nobody else may modify the queue pair.
  RINGBOLT_ASSERT(state_ == State::kReset);
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  // The default partition, which RoCE has alone.
  attributes.pkey_index = 0;
  attributes.port_num = path.port;
  // As of regions: remote write is refused where local write is not granted (ibv_reg_mr(3)).
  attributes.qp_access_flags = path.remote_access == 0 ? 0U : path.remote_access | IBV_ACCESS_LOCAL_WRITE;
  constexpr int kMask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
  const DriverCall at(Step::kToInit, name());
  if (const int error = modify(context_->calls(), get(), attributes, kMask)) {
    refuse(Step::kToInit, error, fmt::format("{}, port {}, access {:#x}", name(), path.port, path.remote_access));
  }
  path_ = path;
  state_ = State::kInit;
}

int UnconnectedQueuePair::try_to_rtr(const Peer& peer) {
  RINGBOLT_ASSERT(state_ == State::kInit);
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTR;
  attributes.path_mtu = path_.mtu;
  attributes.dest_qp_num = peer.qp_number;
  attributes.rq_psn = peer.psn;
  attributes.ah_attr.dlid = peer.lid;
  attributes.ah_attr.sl = path_.service_level;
  attributes.ah_attr.port_num = path_.port;
  if (!is_zero(peer.gid)) {  // an InfiniBand subnet does without
    attributes.ah_attr.is_global = 1;
    attributes.ah_attr.grh.dgid = peer.gid;
    attributes.ah_attr.grh.sgid_index = path_.gid_index;
    attributes.ah_attr.grh.hop_limit = path_.hop_limit;
  }
  int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  // UC has neither acknowledgements nor READs, and strict devices refuse attributes that do not belong
  // (ibv_modify_qp(3)).
  if (type() == IBV_QPT_RC) {
    attributes.max_dest_rd_atomic = path_.reads_as_target;
    attributes.min_rnr_timer = path_.min_rnr_timer;
    mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  }
  const DriverCall at(Step::kToRtr, name());
  // On an error the queue pair stays in INIT (ibv_modify_qp(3)), and another peer or GID can be tried.
  const int error = modify(context_->calls(), get(), attributes, mask);
  if (error == 0) {
    peer_ = peer;
    state_ = State::kRtr;
  }
  return error;
}

void UnconnectedQueuePair::to_rtr(const Peer& peer) {
  if (const int error = try_to_rtr(peer)) {
    // For words alone: it is what people have set wrong most often.
    const auto own_gid = context_->query_gid(path_.port, path_.gid_index);
    refuse(Step::kToRtr, error,
           fmt::format("{}, port {}, from GID {} at index {} to queue pair {:#x} at {}, LID {}", name(), path_.port,
                       own_gid ? text_of(*own_gid) : "unknown", path_.gid_index, peer.qp_number, text_of(peer.gid),
                       peer.lid));
  }
}

// Allowed from each state. What was posted is gone, without completions.
void UnconnectedQueuePair::to_reset() {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RESET;
  const DriverCall at(Step::kToReset, name());
  if (const int error = modify(context_->calls(), get(), attributes, IBV_QP_STATE)) {
    refuse(Step::kToReset, error, name());
  }
  state_ = State::kReset;
  peer_ = {};
}

QueuePair UnconnectedQueuePair::to_rts() && {
  RINGBOLT_ASSERT(state_ == State::kRtr);
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTS;
  attributes.sq_psn = path_.psn;
  int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
  if (type() == IBV_QPT_RC) {
    attributes.timeout = path_.timeout;
    attributes.retry_cnt = path_.retry_count;
    attributes.rnr_retry = path_.rnr_retry;
    attributes.max_rd_atomic = path_.reads_as_initiator;
    mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
  }
  const DriverCall at(Step::kToRts, name());
  if (const int error = modify(context_->calls(), get(), attributes, mask)) {
    refuse(Step::kToRts, error, fmt::format("{} to {:#x} at {}", name(), peer_.qp_number, text_of(peer_.gid)));
  }
  // Only after all that may throw: on an error this one still owns the queue pair.
  return QueuePair(std::move(*this));
}

QueuePair UnconnectedQueuePair::connect(const Path& path, const Peer& peer) && {
  // Goes on from where the queue pair is, so that a call that failed may be made again.
  if (state_ == State::kReset) {
    to_init(path);
  }
  if (state_ == State::kInit) {
    to_rtr(peer);
  }
  return std::move(*this).to_rts();
}

std::string UnconnectedQueuePair::name() const {
  return fmt::format("{}, {} queue pair {:#x}", context_->device(), text_of(type()), number());
}

// For the end of a connection, where everything outstanding is to be flushed.
int QueuePair::to_error() const {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_ERR;
  const DriverCall at("ibv_modify_qp to ERR");
  return modify(unconnected_.context_->calls(), get(), attributes, IBV_QP_STATE);
}

UnconnectedQueuePair QueuePair::reset() && {
  unconnected_.to_reset();
  return std::move(unconnected_);
}

std::string QueuePair::name() const {
  return fmt::format("{} to {:#x} at {}", unconnected_.name(), peer().qp_number, text_of(peer().gid));
}

std::string text_of(ibv_qp_type type) {
  switch (type) {
    case IBV_QPT_RC:
      return "RC";
    case IBV_QPT_UC:
      return "UC";
    case IBV_QPT_UD:
      return "UD";
    default:
      return fmt::format("type {}", static_cast<int>(type));
  }
}

}  // namespace ringbolt::verbs
