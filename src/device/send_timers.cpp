// What ends sends that have waited too long, and wakes peers that seem to sleep.

#include <algorithm>

#include "base/lock_guard.h"
#include "device/limits.h"
#include "device/queue_pair.h"

namespace ringbolt::device {
namespace {

// The architecture lets a requester wait up to four times the programmed time; a peer that runs gets that much.
constexpr uint64_t kSlowPeerFactor = 4;
// A queue pair that was closed never answers; without a transport timer we say so after this time.
constexpr uint64_t kClosedPeerNs = 1'000'000'000;
constexpr uint64_t kFirstRingPauseNs = 250'000;
constexpr uint64_t kLastRingPauseNs = 20'000'000;

}  // namespace

uint64_t QueuePair::transport_timeout_ns() const {
  const uint64_t once = 4096ULL << send_attributes().timeout;
  return std::max<uint64_t>(kLeastTimeoutNs, once * (send_attributes().retry_cnt + 1ULL));
}

ibv_wc_status QueuePair::overdue(uint64_t now_ns, Connection* connection) {
  const uint64_t waited = now_ns - send_.progress_since_ns;
  const bool has_lane = connection->sender.has_value();
  if (has_lane && connection->sender->waits_for_receive() &&
      connection->peer_state.load() == PeerState::present) {
    if (send_.not_ready_since_ns == 0) {
      send_.not_ready_since_ns = now_ns;
      counts_.note(kSharedReceivedRnr);
    }
    const uint64_t pause_ns = uint64_t{connection->sender->rnr_timer_us()} * 1000U;
    const bool is_over =
        send_attributes().rnr_retry != 7 && now_ns - send_.not_ready_since_ns >= pause_ns * send_attributes().rnr_retry;
    return is_over ? IBV_WC_RNR_RETRY_EXC_ERR : IBV_WC_SUCCESS;
  }
  send_.not_ready_since_ns = 0;
  const bool is_closed = connection->peer_state.load() != PeerState::present ||
                         (has_lane && connection->sender->is_closed());
  const uint64_t limit = send_attributes().timeout == 0 ? kClosedPeerNs : transport_timeout_ns();
  if (waited < limit || (send_attributes().timeout == 0 && has_lane && !is_closed)) {
    return IBV_WC_SUCCESS;
  }
  const bool is_hopeless = is_closed || is_cut_off() || connection->remote == nullptr ||
                           connection->remote->peer().is_stopped();
  const bool is_over = waited >= limit * (is_hopeless ? 1 : patience_factor(has_lane)) &&
                       (is_closed || send_.vigil.is_long_enough(now_ns));
  return is_over ? IBV_WC_RETRY_EXC_ERR : IBV_WC_SUCCESS;
}

uint64_t QueuePair::patience_factor(bool has_lane) {
  // The offer of a lane may lie unread: then it is our own service thread that is slow.
  return !has_lane && process_.is_behind() ? kSlowPeerFactor * kSlowPeerFactor : kSlowPeerFactor;
}

void QueuePair::check_timers(uint64_t now_ns) {
  if (is_wired_.load(std::memory_order_relaxed) || !has_unfinished_sends() || !send_lock_.try_lock()) {
    return;
  }
  const base::LockGuard guard(send_lock_, base::kAdoptLock);
  if (now_ns < send_.progress_since_ns) {
    return;  // the caller read its clock before another one did
  }
  Connection* connection = connection_.load(std::memory_order_relaxed);
  uint32_t consumed = 0;
  if (connection != nullptr && connection->sender) {
    connection->sender->refresh();  // it was off its core perhaps since it last looked: the answer may have come long ago
    if (now_ns >= send_.next_ring_ns) {
      // The peer may have said it with a message to us alone, and whoever sends need not poll for messages.
      const base::LockGuard receive_guard(receive_lock_);
      take_last_word(*connection);
    }
    consumed = connection->sender->consumed();
  }
  const uint32_t mark = consumed + done_.load(std::memory_order_relaxed) + next_.load(std::memory_order_relaxed);
  if (mark != send_.progress_mark || send_.progress_since_ns == 0) {
    send_.progress_mark = mark;
    send_.progress_since_ns = now_ns;
    send_.vigil.begin(now_ns);
    send_.not_ready_since_ns = 0;
    send_.ring_pause_ns = kFirstRingPauseNs;
    send_.next_ring_ns = now_ns + send_.ring_pause_ns;
    return;
  }
  send_.vigil.look(now_ns);
  run_queue();
  if (connection == nullptr || state_.load(std::memory_order_relaxed) != IBV_QPS_RTS || is_next_held()) {
    return;
  }
  if (now_ns >= send_.next_ring_ns && connection->remote != nullptr) {
    connection->remote->peer().ring();
    send_.ring_pause_ns = std::min(send_.ring_pause_ns * 2, kLastRingPauseNs);
    send_.next_ring_ns = now_ns + send_.ring_pause_ns;
  }
  if (type_ == IBV_QPT_UC) {
    // UC knows no answer: what no peer takes is lost, and complete.
    const bool is_closed = connection->sender && connection->sender->is_closed();
    const uint64_t waited = now_ns - send_.progress_since_ns;
    if ((is_closed && waited >= kLeastTimeoutNs) || (!connection->sender && send_.vigil.is_long_enough(now_ns) &&
                                                     waited >= kLeastTimeoutNs * patience_factor(false))) {
      connection->peer_state.store(PeerState::withdrawn);
      run_queue();
    }
    return;
  }
  if (const ibv_wc_status status = overdue(now_ns, connection); status != IBV_WC_SUCCESS) {
    enter_error(status);
  }
}

}  // namespace ringbolt::device
