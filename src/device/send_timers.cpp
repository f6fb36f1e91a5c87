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
  const uint64_t once = 4096ULL << attributes_.timeout;
  return std::max<uint64_t>(kLeastTimeoutNs, once * (attributes_.retry_cnt + 1ULL));
}

ibv_wc_status QueuePair::overdue(uint64_t now_ns, Connection* connection) {
  const uint64_t waited = now_ns - progress_since_ns_;
  const bool has_lane = connection->sender.has_value();
  if (has_lane && connection->sender->waits_for_receive() &&
      connection->peer_state.load() == PeerState::present) {
    if (not_ready_since_ns_ == 0) {
      not_ready_since_ns_ = now_ns;
      counts_.note(kSharedReceivedRnr);
    }
    const uint64_t pause_ns = uint64_t{connection->sender->rnr_timer_us()} * 1000U;
    const bool is_over = attributes_.rnr_retry != 7 && now_ns - not_ready_since_ns_ >= pause_ns * attributes_.rnr_retry;
    return is_over ? IBV_WC_RNR_RETRY_EXC_ERR : IBV_WC_SUCCESS;
  }
  not_ready_since_ns_ = 0;
  const bool is_closed = connection->peer_state.load() != PeerState::present ||
                         (has_lane && connection->sender->is_closed());
  const uint64_t limit = attributes_.timeout == 0 ? kClosedPeerNs : transport_timeout_ns();
  if (waited < limit || (attributes_.timeout == 0 && has_lane && !is_closed)) {
    return IBV_WC_SUCCESS;
  }
  const bool is_hopeless = is_closed || is_cut_off() || connection->remote == nullptr ||
                           connection->remote->peer().is_stopped();
  const bool is_over =
      waited >= limit * (is_hopeless ? 1 : patience_factor(has_lane)) && (is_closed || vigil_.is_long_enough(now_ns));
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
  if (now_ns < progress_since_ns_) {
    return;  // the caller read its clock before another one did
  }
  Connection* connection = connection_.load(std::memory_order_relaxed);
  uint32_t consumed = 0;
  if (connection != nullptr && connection->sender) {
    connection->sender->refresh();  // it was off its core perhaps since it last looked: the answer may have come long ago
    if (now_ns >= next_ring_ns_) {
      // The peer may have said it with a message to us alone, and whoever sends need not poll for messages.
      const base::LockGuard receive_guard(receive_lock_);
      take_last_word(*connection);
    }
    consumed = connection->sender->consumed();
  }
  const uint32_t mark = consumed + done_.load(std::memory_order_relaxed) + next_.load(std::memory_order_relaxed);
  if (mark != progress_mark_ || progress_since_ns_ == 0) {
    progress_mark_ = mark;
    progress_since_ns_ = now_ns;
    vigil_.begin(now_ns);
    not_ready_since_ns_ = 0;
    ring_pause_ns_ = kFirstRingPauseNs;
    next_ring_ns_ = now_ns + ring_pause_ns_;
    return;
  }
  vigil_.look(now_ns);
  run_queue();
  if (connection == nullptr || state_.load(std::memory_order_relaxed) != IBV_QPS_RTS || is_next_held()) {
    return;
  }
  if (now_ns >= next_ring_ns_ && connection->remote != nullptr) {
    connection->remote->peer().ring();
    ring_pause_ns_ = std::min(ring_pause_ns_ * 2, kLastRingPauseNs);
    next_ring_ns_ = now_ns + ring_pause_ns_;
  }
  if (type_ == IBV_QPT_UC) {
    // UC knows no answer: what no peer takes is lost, and complete.
    const bool is_closed = connection->sender && connection->sender->is_closed();
    const uint64_t waited = now_ns - progress_since_ns_;
    if ((is_closed && waited >= kLeastTimeoutNs) ||
        (!connection->sender && vigil_.is_long_enough(now_ns) && waited >= kLeastTimeoutNs * patience_factor(false))) {
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
