// The steps of ibv_modify_qp, and what each acquires and ends.

#include <cerrno>
#include <memory>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/explain.h"
#include "base/lock_guard.h"
#include "device/call_faults.h"
#include "device/failure_notes.h"
#include "device/lane_transport.h"
#include "device/limits.h"
#include "device/qp_transitions.h"
#include "device/queue_pair.h"
#include "device/queue_pair_attributes.h"
#include "device/send_quirks.h"
#include "device/wire_transport.h"

namespace ringbolt::device {

int QueuePair::modify(const ibv_qp_attr& attributes, int mask) {
  const base::LockGuard one_at_a_time(modify_lock_);
  const ibv_qp_state from = core_.state();
  const ibv_qp_state to = (mask & IBV_QP_STATE) != 0 ? attributes.qp_state : from;
  if ((mask & IBV_QP_CUR_STATE) != 0 && attributes.cur_qp_state != from) {
    return base::refused(EINVAL, "ibv_modify_qp", [&] {
      return base::Explanation{fmt::format("cur_qp_state says {}, and the queue pair is in {}",
                                           name_of(attributes.cur_qp_state), name_of(from)),
                               "leave IBV_QP_CUR_STATE out, or ask with ibv_query_qp"};
    });
  }
  if (const int error = check_step(core_, from, to, mask, may_transition(core_.type, from, to, mask))) {
    return error;
  }
  if (const int error = check_attributes(core_, attributes, mask)) {
    return error;
  }
  if (from == IBV_QPS_INIT && to == IBV_QPS_RTR) {
    if (const int error = inject_at_rtr(*core_.port)) {
      return error;
    }
  }
  // Before the locks of the halves: both take these themselves, and the first waits for the peer without them.
  if (to == IBV_QPS_RESET || to == IBV_QPS_ERR) {
    if (SendQuirks* const early = send_.early()) {
      early->deliver_told(send_, base::now_ns() + kLeastTimeoutNs);
    }
    finish_receiving();
  }
  if (to == IBV_QPS_RESET) {
    reset_whole();
    return 0;
  }
  return step(from, to, attributes, mask);
}

int QueuePair::step(ibv_qp_state from, ibv_qp_state to, const ibv_qp_attr& attributes, int mask) {
  const SendGuard send_guard(core_.locks);
  const ReceiveGuard receive_guard(core_.locks);
  if (to == IBV_QPS_ERR) {
    core_.enter_error(IBV_WC_WR_FLUSH_ERR);
    return 0;
  }
  // Stored before anything is acquired, since that goes by them; put back if it fails.
  const ibv_qp_attr before = core_.attributes;
  store_attributes(attributes, mask, core_.attributes);
  if (const int error = acquire_for(from, to)) {
    core_.attributes = before;
    return error;
  }
  if (from == IBV_QPS_INIT && to == IBV_QPS_RTR) {
    receive_.note_rtr();
    core_.cable.connect();
  }
  core_.when_noting([&](QueuePairNotes&) {
    if (to == IBV_QPS_RTR && core_.type != IBV_QPT_UD) {
      tell_peer(core_, PeerNotes::Kind::queue_pair_made, fmt::format("it was connected at {}", base::calling_place()));
    }
  });
  if (!core_.set_state_unless_failed(to)) {
    // It has failed since the call began: as if that had come right after the step. Who failed it may have looked for
    // the transport before there was one.
    if (transport_ != nullptr) {
      transport_->close();
    }
    core_.kick();
    return 0;
  }
  lanes_.publish_attributes();
  if (to == IBV_QPS_SQD && attributes.en_sqd_async_notify != 0 && (mask & IBV_QP_EN_SQD_ASYNC_NOTIFY) != 0) {
    // What was posted before is executed at once or has begun; nothing else starts in this state.
    core_.announce(IBV_EVENT_SQ_DRAINED);
  }
  if (to == IBV_QPS_RTS) {
    send_.resume();
  }
  core_.kick();
  return 0;
}

void QueuePair::reset_whole() {
  core_.when_noting([&](QueuePairNotes& notes) {
    tell_peer(core_, PeerNotes::Kind::queue_pair_gone, fmt::format("it was reset at {}", base::calling_place()));
    notes.clear();
  });
  settle_told("a queue pair was reset", 0);
  send_rest(base::now_ns() + kLeastTimeoutNs);
  // From here on no completion queue looks at it, so that the transport can end.
  core_.queues.receive->suspend(core_.receive_place, true);
  core_.queues.send->suspend(core_.send_place, false);
  lanes_.end_accesses();
  {
    const SendGuard send_guard(core_.locks);
    const ReceiveGuard receive_guard(core_.locks);
    reset();
  }
  core_.queues.receive->forget(core_.qpn);
  core_.queues.send->forget(core_.qpn);
  core_.queues.send->resume(*this, core_.send_place, false);
  core_.queues.receive->resume(*this, core_.receive_place, true);
}

/// What a step needs and may not get. 0; or an errno, and then nothing has changed.
int QueuePair::acquire_for(ibv_qp_state from, ibv_qp_state to) noexcept try {
  if (from == IBV_QPS_INIT && to == IBV_QPS_RTR) {
    if (core_.type != IBV_QPT_UD) {
      return connect();
    }
    if (inboxes_ != nullptr) {
      inboxes_->is_open.store(true, std::memory_order_release);  // who sees it sees the places in the completion queues
    }
  }
  if (to == IBV_QPS_RTS) {
    // There is a transport from RTR on, and the steps lead to RTS over that.
    transport_->start(send_.slots());
  }
  return 0;
} catch (const std::bad_alloc&) {
  return ENOMEM;
}

/// Throws std::bad_alloc. If it fails, either way, nothing has changed.
int QueuePair::connect() {
  if (!core_.port->is_remote(core_.attributes.ah_attr.grh.dgid)) {
    return connect_lane();
  }
  auto made = WireTransport::connect(core_, *inboxes_);
  if (!made) {
    return made.error().value;
  }
  install(std::move(*made));
  return 0;
}

int QueuePair::connect_lane() {
  std::unique_ptr<CountingCell> peer_counts;
  if (const Port& port = *core_.port; !port.owns(core_.attributes.ah_attr.grh.dgid)) {
    peer_counts = std::make_unique<CountingCell>(
        core_.process.counters(port.peer_counter_path, cluster::CounterPage::Port::peers));
  }
  const auto connection = lanes_.connect();
  if (!connection) {
    return connection.error().value;
  }
  try {
    install(std::make_unique<LaneTransport>(core_, **connection, std::move(peer_counts)));
  } catch (...) {
    lanes_.disconnect();
    throw;
  }
  return 0;
}

void QueuePair::install(std::unique_ptr<QueuePairTransport> transport) {
  // Before the transport can be found, whose messages are counted by it.
  core_.mtu_shift = mtu_shift(core_.attributes.path_mtu);
  transport_ = std::move(transport);
  core_.transport.store(transport_.get(), std::memory_order_seq_cst);
}

void QueuePair::reset() {
  if (transport_ != nullptr) {
    transport_->disconnect();
  }
  if (core_.type != IBV_QPT_UD) {
    core_.transport.store(nullptr, std::memory_order_release);
    transport_.reset();
  }
  lanes_.disconnect();
  send_.reset();
  receive_.reset();
  core_.cable.reset();
  core_.owes_fatal.store(false);
  core_.attributes = {};
  core_.receive_attention.store(false, std::memory_order_relaxed);
  core_.set_state(IBV_QPS_RESET);
}

}  // namespace ringbolt::device
