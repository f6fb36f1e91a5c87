// What ends sends through a lane that have waited too long, and wakes peers that seem to sleep.

#include <algorithm>

#include <fmt/format.h>

#include "base/clock.h"
#include "device/failure_notes.h"
#include "device/failures.h"
#include "device/lane_transport.h"
#include "device/limits.h"
#include "device/send_queue.h"
#include "device/send_quirks.h"

namespace ringbolt::device {
namespace {

// The architecture lets a requester wait up to four times the programmed time; a peer that runs gets that much.
constexpr uint64_t kSlowPeerFactor = 4;
// A queue pair that was closed never answers; without a transport timer we say so after this time.
constexpr uint64_t kClosedPeerNs = 1'000'000'000;
// Pauses between bells for a peer that does not get on: each is twice the one before, from the first to the last.
constexpr uint64_t kFirstRingPauseNs = 250'000;
constexpr uint64_t kLastRingPauseNs = 20'000'000;

}  // namespace

uint64_t LaneTransport::patience_factor(bool has_lane) const {
  // The offer of a lane may lie unread: then it is our own service thread that is slow.
  return !has_lane && core_.process.is_behind() ? kSlowPeerFactor * kSlowPeerFactor : kSlowPeerFactor;
}

/// The receiver has said that it has no receive for us. `status`: that it said so too often.
bool LaneTransport::is_unready(uint64_t now_ns, ibv_wc_status& status) {
  constexpr uint32_t kForever = 7;
  if (!connection_.sender || !connection_.sender->waits_for_receive() ||
      connection_.peer_state.load() != PeerState::present) {
    not_ready_since_ns_ = 0;
    return false;
  }
  if (not_ready_since_ns_ == 0) {
    not_ready_since_ns_ = now_ns;
    core_.counts.note(kSharedReceivedRnr);
    record_fate(trace::Kind::not_ready, core_.qpn);
  }
  // By the clock, since there are no NAKs to count: as many pauses of the receiver's timer as rnr_retry says.
  const uint64_t pause_ns = uint64_t{connection_.sender->rnr_timer_us()} * 1000U;
  const uint8_t retries = core_.attributes.rnr_retry;
  const bool is_over = retries != kForever && now_ns - not_ready_since_ns_ >= pause_ns * retries;
  status = is_over ? IBV_WC_RNR_RETRY_EXC_ERR : IBV_WC_SUCCESS;
  return true;
}

ibv_wc_status LaneTransport::overdue(uint64_t now_ns) {
  ibv_wc_status status = IBV_WC_SUCCESS;
  if (is_unready(now_ns, status)) {
    return status;
  }
  const uint64_t waited = now_ns - connection_.progress_since_ns;
  const bool has_lane = connection_.sender.has_value();
  const bool has_timeout = core_.attributes.timeout != 0;
  const bool is_closed =
      connection_.peer_state.load() != PeerState::present || (has_lane && connection_.sender->is_closed());
  const uint64_t limit = has_timeout ? transport_timeout_ns(core_.attributes) : kClosedPeerNs;
  if (waited < limit || (!has_timeout && has_lane && !is_closed)) {
    return IBV_WC_SUCCESS;
  }
  const bool is_hopeless =
      is_closed || core_.cable.is_cut_off() || connection_.remote == nullptr || connection_.remote->peer().is_stopped();
  const bool is_over =
      waited >= limit * (is_hopeless ? 1 : patience_factor(has_lane)) && (is_closed || silence_.is_long_enough(now_ns));
  return is_over ? IBV_WC_RETRY_EXC_ERR : IBV_WC_SUCCESS;
}

void LaneTransport::take_last_word() {
  // The peer may have said it with a message to us alone, and whoever sends need not poll for messages.
  const ReceiveGuard guard(core_.locks);
  connection_.take_last_word();
}

/// True: the peer has got on, or something new was asked of it.
bool LaneTransport::look_for_progress(uint64_t now_ns) {
  uint32_t consumed = 0;
  if (connection_.sender) {
    connection_.sender->refresh();  // who looks was off its core perhaps: the answer may have come long ago
    if (now_ns >= next_ring_ns_) {
      take_last_word();
    }
    consumed = connection_.sender->consumed();
  }
  // A sum that wraps: each of the three only grows, so that any progress changes it.
  const uint32_t mark =
      consumed + core_.sends.done.load(std::memory_order_relaxed) + core_.sends.next.load(std::memory_order_relaxed);
  if (mark == progress_mark_ && connection_.progress_since_ns != 0) {
    return false;
  }
  progress_mark_ = mark;
  connection_.progress_since_ns = now_ns;
  silence_.begin(now_ns);
  not_ready_since_ns_ = 0;
  ring_pause_ns_ = kFirstRingPauseNs;
  next_ring_ns_ = now_ns + ring_pause_ns_;
  return true;
}

void LaneTransport::check_timers(SendQueue& queue, uint64_t now_ns) {
  if (core_.sends.unfinished() == 0 || !try_lock_send(core_.locks)) {
    return;
  }
  const SendGuard guard(core_.locks, base::kAdoptLock);
  // Some callers read their clock before another one did: a difference of unsigned numbers would be huge then.
  if (now_ns < connection_.progress_since_ns || look_for_progress(now_ns)) {
    return;
  }
  silence_.look(now_ns);
  queue.run();
  SendQuirks* const quirks = queue.quirks();
  if (core_.state() != IBV_QPS_RTS || (quirks != nullptr && quirks->is_next_held(queue))) {
    return;
  }
  if (now_ns >= next_ring_ns_ && connection_.remote != nullptr) {
    connection_.ring_service();
    ring_pause_ns_ = std::min(ring_pause_ns_ * 2, kLastRingPauseNs);
    next_ring_ns_ = now_ns + ring_pause_ns_;
  }
  if (core_.type == IBV_QPT_UC) {
    end_unanswered(queue, now_ns);
  } else if (const ibv_wc_status status = overdue(now_ns); status != IBV_WC_SUCCESS) {
    core_.when_noting([&](QueuePairNotes& notes) RINGBOLT_NOT_ANALYSED { explain_overdue(notes, status, now_ns); });
    core_.enter_error(status);
  }
}

/// Why its time is over.
void LaneTransport::explain_overdue(QueuePairNotes& notes, ibv_wc_status status, uint64_t now_ns) {
  if (status == IBV_WC_RNR_RETRY_EXC_ERR) {
    return notes.say_why_send(
        {fmt::format("{} had no receive for it for {} us: rnr_retry {} with its RNR timer of {} us", peer_text(core_),
                     (now_ns - not_ready_since_ns_) / 1000, core_.attributes.rnr_retry,
                     connection_.sender->rnr_timer_us()),
         remedy_of(status)});
  }
  const PeerState peer = connection_.peer_state.load();
  const bool has_process = connection_.remote != nullptr;
  const std::string what = peer == PeerState::left                   ? "its process has exited"
                           : peer == PeerState::died                 ? "its process was killed, or has crashed"
                           : peer == PeerState::withdrawn            ? "it was reset or destroyed"
                           : !has_process                            ? "no process has a queue pair of that number"
                           : core_.cable.is_cut_off()                ? "the cable is cut"
                           : connection_.remote->peer().is_stopped() ? "its process is stopped"
                           : !connection_.sender                     ? "it is not connected to this one"
                           : connection_.sender->is_closed()         ? "it is in the state ERR, or closed"
                                                                     : "its process does not get on";
  notes.say_why_send(why_unanswered(core_, connection_.waited_ns(now_ns), what));
}

/// UC knows no answer: what no peer takes is lost, and complete.
void LaneTransport::end_unanswered(SendQueue& queue, uint64_t now_ns) {
  const bool is_closed = connection_.sender && connection_.sender->is_closed();
  const uint64_t waited = now_ns - connection_.progress_since_ns;
  if ((is_closed && waited >= kLeastTimeoutNs) ||
      (!connection_.sender && silence_.is_long_enough(now_ns) && waited >= kLeastTimeoutNs * patience_factor(false))) {
    connection_.peer_state.store(PeerState::withdrawn);
    queue.run();
  }
}

QueuePairTransport::Delivery LaneTransport::delivery(const SendQueue& queue, uint32_t index) {
  const bool is_executed = static_cast<int32_t>(core_.sends.next.load(std::memory_order_relaxed) - index) > 0;
  if (is_executed && queue.entry(index).phase != SendPhase::failed) {
    return Delivery::delivered;  // what lies in the lane is the peer's
  }
  if (connection_.remote == nullptr || connection_.remote->peer().is_gone() ||
      connection_.peer_state.load() != PeerState::present) {
    return Delivery::stuck;
  }
  if (!connection_.sender) {
    return Delivery::underway;  // the offer of the lane is on its way
  }
  connection_.sender->refresh();
  if (connection_.sender->is_closed() || connection_.sender->waits_for_receive()) {
    return Delivery::stuck;
  }
  connection_.ring_service();  // its lane is full, and its program may sleep
  return Delivery::underway;
}

QueuePairTransport::Reception LaneTransport::reception(bool hurries) {
  if (!connection_.sender || connection_.peer_state.load() != PeerState::present) {
    return Reception::taken;
  }
  if (hurries) {
    connection_.ring_service();
  }
  link::LaneProducer& lane = *connection_.sender;
  lane.refresh();
  return lane.waits_for_receive()         ? Reception::starved
         : lane.is_done(lane.published()) ? Reception::taken
                                          : Reception::unknown;
}

uint32_t LaneTransport::rnr_timer_us() const {
  return connection_.sender ? connection_.sender->rnr_timer_us() : wire::rnr_timer_us(core_.attributes.min_rnr_timer);
}

}  // namespace ringbolt::device
