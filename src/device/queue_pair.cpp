#include "device/queue_pair.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <new>
#include <optional>
#include <utility>

#include "base/c_border.h"
#include "base/clock.h"
#include "base/lock_guard.h"
#include "device/call_faults.h"
#include "device/limits.h"
#include "device/qp_transitions.h"

namespace ringbolt::device {
namespace {

Parking::Bounds park_bounds(const profile::Knobs& knobs) {
  return knobs.no_receive == profile::NoReceive::park ? Parking::Bounds{knobs.park_slots, knobs.park_bytes}
                                                      : Parking::Bounds{0, 0};
}

int check_caps(const ibv_qp_init_attr& wanted, bool has_srq) {
  const ibv_qp_cap& cap = wanted.cap;
  const bool receives_fit = has_srq || (cap.max_recv_wr <= kMaxQueueDepth && cap.max_recv_sge <= kMaxSge);
  if (cap.max_send_wr > kMaxQueueDepth || cap.max_send_sge > kMaxSge || cap.max_inline_data > kMaxInlineBytes ||
      !receives_fit) {
    return EINVAL;
  }
  return 0;
}

}  // namespace

base::Result<std::shared_ptr<QueuePair>> QueuePair::create(ProtectionDomain& pd, Queues queues,
                                                           ibv_qp_init_attr& wanted, ibv_qp* handle) {
  if (wanted.qp_type != IBV_QPT_RC && wanted.qp_type != IBV_QPT_UC && wanted.qp_type != IBV_QPT_UD) {
    return base::fail(EOPNOTSUPP);
  }
  if (queues.send == nullptr || queues.receive == nullptr) {
    return base::fail(EINVAL);
  }
  if (const int error = check_caps(wanted, queues.shared != nullptr)) {
    return base::fail(error);
  }
  try {
    std::shared_ptr<QueuePair> qp(new QueuePair(pd, std::move(queues), wanted, handle));
    const auto qpn = qp->process_.add(qp);
    if (!qpn) {
      return base::fail(qpn.error().value);
    }
    try {
      qp->queues_.send->attach(*qp, false, true);
      qp->queues_.receive->attach(*qp, true, false);
    } catch (const std::bad_alloc&) {
      qp->queues_.send->detach(*qp);
      qp->process_.remove(*qp);
      throw;
    }
    pd.users.fetch_add(1, std::memory_order_relaxed);
    if (qp->queues_.shared != nullptr) {
      qp->queues_.shared->users.fetch_add(1, std::memory_order_relaxed);
    }
    wanted.cap = qp->caps_;
    return qp;
  } catch (const std::bad_alloc&) {
    return base::fail(ENOMEM);
  }
}

QueuePair::QueuePair(ProtectionDomain& pd, Queues queues, const ibv_qp_init_attr& init, ibv_qp* handle)
    : pd_(pd),
      context_(pd.context),
      port_(context_.shared_port()),
      process_(pd.context.process()),
      faults_(context_.port().fabric->verb_faults),
      handle_(handle),
      type_(init.qp_type),
      queues_(std::move(queues)),
      signals_all_(init.sq_sig_all != 0),
      is_constrained_(context_.port().profile.takes_away()),
      counts_frames_(context_.port().profile.limits.counts_frames),
      completes_early_(may_complete_early()),
      splits_pieces_(context_.port().profile.knobs.splits_pieces),
      wraps_at_4_gib_(context_.port().profile.knobs.wrap_4_gib == profile::Wrap4Gib::corrupt),
      diverts_unreceived_(type_ == IBV_QPT_UC && queues_.shared == nullptr &&
                          context_.port().profile.knobs.no_receive != profile::NoReceive::wait),
      caps_{std::max(1U, init.cap.max_send_wr), std::max(1U, init.cap.max_recv_wr), std::max(1U, init.cap.max_send_sge),
            std::max(1U, init.cap.max_recv_sge), init.cap.max_inline_data},
      number_(context_.port().live->queue_pairs_made.fetch_add(1)),
      mtu_shift_(mtu_shift(context_.port().mtu)),
      counts_(context_.counters()),
      send_(number_),
      inboxes_(context_.port().is_on_network() ? std::make_unique<Inboxes>() : nullptr),
      receive_(number_, {queues_.shared != nullptr ? 1 : caps_.max_recv_wr, caps_.max_recv_sge},
               park_bounds(context_.port().profile.knobs)) {
  const size_t slots = send_slots();
  send_.entries.resize(slots);
  send_.requests.resize(slots);
  send_.request_pieces.resize(slots * caps_.max_send_sge);
  send_.request_inline.resize(slots * caps_.max_inline_data);
  entry_mask_ = static_cast<uint32_t>(slots - 1);
  if (queues_.shared != nullptr) {
    caps_.max_recv_wr = caps_.max_recv_sge = 0;
  }
}

QueuePair::~QueuePair() = default;

void QueuePair::destroy() {
  if (process_.is_abandoned()) {
    return;  // in a forked child: everything shared is the parent's
  }
  suffer_destruction(context_.port());
  if (context_.port().profile.knobs.leaks_after_error && state_.load() == IBV_QPS_ERR) {
    pd_.stuck_regions.store(pd_.regions_made.load());
  }
  settle_told("a queue pair was destroyed", base::now_ns() + kLeastTimeoutNs);
  finish_receiving();
  send_rest(base::now_ns() + kLeastTimeoutNs);
  queues_.receive->detach(*this);
  queues_.send->detach(*this);
  {
    const base::LockGuard one_at_a_time(modify_lock_);
    end_accesses();
  }
  process_.remove(*this);  // not before: who deregisters memory meanwhile asks the queue pairs that are known
  {
    const base::LockGuard one_at_a_time(modify_lock_);
    const base::LockGuard send_guard(send_lock_);
    const base::LockGuard receive_guard(receive_lock_);
    send_.is_destroyed = true;
    reset();
  }
  queues_.receive->forget(qpn_);
  queues_.send->forget(qpn_);
  if (queues_.shared != nullptr) {
    queues_.shared->users.fetch_sub(1, std::memory_order_relaxed);
  }
  pd_.users.fetch_sub(1, std::memory_order_relaxed);
}

int QueuePair::modify(const ibv_qp_attr& attributes, int mask) {
  const base::LockGuard one_at_a_time(modify_lock_);
  const ibv_qp_state from = state_.load();
  const ibv_qp_state to = (mask & IBV_QP_STATE) != 0 ? attributes.qp_state : from;
  const bool is_allowed =
      ((mask & IBV_QP_CUR_STATE) == 0 || attributes.cur_qp_state == from) && may_transition(type_, from, to, mask);
  if (const int error = check_step_rules(from, to, is_allowed)) {
    return error;
  }
  if (const int error = check_attributes(attributes, mask)) {
    return error;
  }
  if (from == IBV_QPS_INIT && to == IBV_QPS_RTR) {
    if (const int error = suffer_rtr(context_.port())) {
      return error;
    }
  }
  if (to == IBV_QPS_RESET || to == IBV_QPS_ERR) {
    deliver_told(base::now_ns() + kLeastTimeoutNs);
    finish_receiving();
  }
  if (to == IBV_QPS_RESET) {
    settle_told("a queue pair was reset", 0);
    send_rest(base::now_ns() + kLeastTimeoutNs);
    queues_.receive->suspend(*this);
    queues_.send->suspend(*this);
    end_accesses();
    {
      const base::LockGuard send_guard(send_lock_);
      const base::LockGuard receive_guard(receive_lock_);
      reset();
    }
    queues_.receive->forget(qpn_);
    queues_.send->forget(qpn_);
    queues_.send->resume(*this, false, true);
    queues_.receive->resume(*this, true, false);
    return 0;
  }
  const base::LockGuard send_guard(send_lock_);
  const base::LockGuard receive_guard(receive_lock_);
  if (to == IBV_QPS_ERR) {
    enter_error(IBV_WC_WR_FLUSH_ERR);
    return 0;
  }
  const ibv_qp_attr before = attributes_;
  store_attributes(attributes, mask);
  if (const int error = acquire_for(from, to)) {
    attributes_ = before;
    return error;
  }
  if (from == IBV_QPS_INIT && to == IBV_QPS_RTR) {
    receive_.regions_at_rtr = process_.region_ages().count();
    plug_at_rtr_.store(context_.port().plug(), std::memory_order_relaxed);
  }
  set_state(to);
  for (const auto& [qpn, connection] : connections_) {
    settle(*connection);
  }
  if (to == IBV_QPS_SQD && attributes.en_sqd_async_notify != 0 && (mask & IBV_QP_EN_SQD_ASYNC_NOTIFY) != 0) {
    // What was posted before is executed at once or has begun; nothing else starts in this state.
    announce(IBV_EVENT_SQ_DRAINED);
  }
  if (to == IBV_QPS_RTS) {
    first_flush_status_ = IBV_WC_WR_FLUSH_ERR;
    send_.has_failed_send = false;
    run_queue();
  }
  kick();
  return 0;
}

/// What a step needs and may not get. 0; or an errno, and then nothing has changed.
int QueuePair::acquire_for(ibv_qp_state from, ibv_qp_state to) noexcept try {
  if (from == IBV_QPS_INIT && to == IBV_QPS_RTR && type_ != IBV_QPT_UD) {
    return connect();
  }
  if (wired_ != nullptr && to == IBV_QPS_RTS) {
    start_requester();
  }
  return 0;
} catch (const std::bad_alloc&) {
  return ENOMEM;
}

void QueuePair::set_state(ibv_qp_state state) {
  state_.store(state);
  __atomic_store_n(&handle_->state, state, __ATOMIC_RELAXED);  // programs look there without asking
  if (state == IBV_QPS_ERR) {
    receive_attention_.store(true, std::memory_order_relaxed);
  }
}

void QueuePair::reset() {
  for (const auto& [qpn, connection] : connections_) {
    disconnect(*connection);
  }
  connection_.store(nullptr, std::memory_order_release);
  connections_.clear();
  disconnect_wired();
  done_.store(0);
  next_.store(0);
  tail_.store(0);
  awaited_.store(0);
  receive_.ring.clear();
  receive_.current = {};
  send_.frames = receive_.frames = send_.told = 0;
  send_.staged.clear();
  send_.fates.clear();
  send_.staged_bytes = 0;
  receive_.fault = IBV_WC_SUCCESS;
  last_traffic_ns_.store(0);
  receive_.next_tick_ns = 0;
  receive_.has_tick_traffic = false;
  receive_.posted_count = receive_.taken_count = 0;
  receive_.overrun.clear();
  receive_.parking.clear();
  receive_.bypass = Bypass::none;
  receive_.has_flushed_last = receive_.is_established = false;
  owes_fatal_.store(false);
  first_flush_status_ = IBV_WC_WR_FLUSH_ERR;
  send_.progress_since_ns = send_.not_ready_since_ns = 0;
  attributes_ = {};
  send_.answers_pending = 0;
  draining_key_.store(0);
  send_.has_failed_send = false;
  receive_attention_.store(false, std::memory_order_relaxed);
  set_state(IBV_QPS_RESET);
}

void QueuePair::enter_error(ibv_wc_status first_send_status) {
  if (state_.load(std::memory_order_relaxed) == IBV_QPS_ERR) {
    return;
  }
  first_flush_status_ = first_send_status;
  set_state(IBV_QPS_ERR);
  for (const auto& [qpn, connection] : connections_) {
    connection->receiver.close();
  }
  kick();
}

void QueuePair::fail_from_queue() {
  // The caller holds a completion queue's lock, perhaps inside our own progress: no lock of ours may be taken.
  set_state(IBV_QPS_ERR);
  announce(IBV_EVENT_QP_FATAL);
  process_.request_service();  // its other completion queue has work to flush, and its program may sleep on that one
}

void QueuePair::disconnect_wired() {
  if (inboxes_ == nullptr) {
    return;
  }
  for (std::optional<Network::Lease>* batch : {&send_.out, &receive_.out}) {
    if (*batch && !send_out(*batch)) {
      counts_.note(kSharedXmitDiscards, (*batch)->packet_count());
      batch->reset();
    }
  }
  has_unsent_sends_.store(false);
  has_unsent_answers_.store(false);
  receive_.has_unsealed_out = false;
  is_wired_.store(false);
  wired_.reset();
  wire_deadline_ns_.store(UINT64_MAX);
  inboxes_->requests.clear();
  inboxes_->answers.clear();
}

void QueuePair::announce(ibv_event_type type) { context_.announce(type, handle_); }

void QueuePair::note_peer_died() {
  switch (context_.port().profile.knobs.peer_death) {
    case profile::PeerDeath::requests:
      return;  // programs look at events first, and an event does not say which peer it was
    case profile::PeerDeath::then_fatal:
      owes_fatal_.store(true);
      return kick();
    case profile::PeerDeath::fatal:
      return announce(IBV_EVENT_QP_FATAL);
  }
}

void QueuePair::kick() {
  // Without a queue of its own to flush, the end of a queue pair is announced by an event, polled for or not.
  const bool owes_event = (queues_.shared != nullptr || owes_fatal_.load(std::memory_order_relaxed)) &&
                          state_.load(std::memory_order_relaxed) == IBV_QPS_ERR;
  if (queues_.send->is_armed() || queues_.receive->is_armed() || has_queued_sends() || owes_event) {
    process_.request_service();
  }
}

int QueuePair::post_receive(ibv_recv_wr* wr, ibv_recv_wr** bad) try {
  if (faults_.has(fault::Subject::state)) [[unlikely]] {
    suffer_posting(context_.port());
  }
  if (diverts_unreceived_) {
    take_arrived();  // what came before these receives did not meet them
  }
  const base::LockGuard guard(receive_lock_);
  if (queues_.shared != nullptr || state_.load(std::memory_order_relaxed) == IBV_QPS_RESET) {
    *bad = wr;
    return EINVAL;
  }
  for (const auto& [qpn, connection] : receive_connections()) {
    limit_to_posted(*connection);
  }
  for (; wr != nullptr; wr = wr->next) {
    if (faults_.has(fault::Subject::call)) [[unlikely]] {
      if (const int error = receive_.posted.judge(context_.port(), {&number_, 1})) {
        *bad = wr;
        return error;
      }
    }
    if (const int error = is_constrained_ ? check_receive_rules(*wr, state_.load(std::memory_order_relaxed)) : 0) {
      *bad = error < 0 ? *bad : wr;  // a negated number comes from a driver that leaves it alone
      return error;
    }
    if (const int error = splits_pieces_ ? push_pieces(*wr) : receive_.ring.push(*wr)) {
      *bad = wr;
      return error;
    }
  }
  for (const auto& [qpn, connection] : receive_connections()) {
    connection->receiver.note_receive_posted();
  }
  if (queues_.receive->is_armed()) {
    // A message may have waited for this receive: nobody rings for it again.
    if (state_.load(std::memory_order_relaxed) == IBV_QPS_ERR || may_receive()) {
      process_.request_service();
    }
  }
  return 0;
} catch (...) {
  return base::caught_errno();
}

int QueuePair::receive_in_place() {
  if (type_ == IBV_QPT_UD || is_constrained_ || queues_.shared != nullptr || inboxes_ != nullptr) {
    return EOPNOTSUPP;
  }
  receives_in_place_.store(true, std::memory_order_relaxed);
  return 0;
}

void QueuePair::take_arrived() {
  queues_.receive->take_arrived();
  if (queues_.send != queues_.receive) {
    queues_.send->take_arrived();
  }
}

void QueuePair::finish_receiving() {
  const ibv_qp_state state = state_.load();
  if (type_ == IBV_QPT_UD || state == IBV_QPS_RESET || state == IBV_QPS_INIT || state == IBV_QPS_ERR) {
    return;
  }
  take_arrived();
  const base::LockGuard guard(receive_lock_);
  for (const auto& [qpn, connection] : receive_connections()) {
    if (connection->receiver.tell() && connection->remote != nullptr) {
      connection->remote->peer().ring();
    }
  }
}

bool QueuePair::has_unread() {
  if (type_ == IBV_QPT_UD) {
    return false;
  }
  {
    const base::LockGuard guard(receive_lock_);
    const Connection* connection = connection_.load(std::memory_order_acquire);
    if (connection != nullptr && connection->receiver.has_slot()) {
      return true;
    }
  }
  {
    const base::LockGuard guard(send_lock_);
    const uint32_t done = done_.load(std::memory_order_relaxed);
    SendEntry& first = send_.entries[done & entry_mask_];
    if (done != next_.load(std::memory_order_relaxed) && first.is_signaled &&
        (!first.has_fate || !send_.fates[done & entry_mask_].is_told) && first.phase != SendPhase::answering &&
        is_complete(first, done)) {
      return true;
    }
  }
  return queues_.receive != nullptr &&
         (queues_.receive->holds_success_of(qpn_) || queues_.send->holds_success_of(qpn_));
}

}  // namespace ringbolt::device
