// For RINGBOLT_EXPLAIN: how far a queue pair is, and what it waits for.

#include "device/queue_pair_standing.h"

#include <optional>

#include <fmt/format.h>

#include "device/failure_notes.h"
#include "device/qp_transitions.h"
#include "device/receive_queue.h"
#include "device/send_queue.h"
#include "device/shared_receive_queue.h"

namespace ringbolt::device {

QueuePairStanding QueuePairExplainer::standing() const {
  QueuePairStanding now;
  const ReceiveGuard guard(core_.locks);
  now.state = core_.state();
  now.done = core_.sends.done.load(std::memory_order_relaxed);
  now.unfinished = core_.sends.unfinished();
  if (now.state == IBV_QPS_RESET) {
    return now;  // perhaps it is destroyed, and its shared receive queue, too
  }
  now.receives = core_.queues.shared != nullptr ? core_.queues.shared->count() : receives_.ring().count();
  return now;
}

std::string text_of(const QueuePairStanding& standing) {
  return fmt::format("{}, {} sends unfinished, {} receives posted", name_of(standing.state), standing.unfinished,
                     standing.receives);
}

void QueuePairExplainer::tell_standing(const QueuePairStanding& standing) const {
  const SendGuard guard(core_.locks);
  core_.when_noting([&](QueuePairNotes&) { tell_peer(core_, PeerNotes::Kind::state, text_of(standing)); });
}

std::string QueuePairExplainer::peer_standing() const {
  const SendGuard guard(core_.locks);
  const auto note = core_.notes == nullptr ? std::nullopt : peer_note(core_, PeerNotes::Kind::state, 0);
  return note ? fmt::format("queue pair {:#x} of process {}: {}", note->number, note->pid, note->text) : "";
}

std::string QueuePairExplainer::unsignaled_text() const {
  const SendGuard guard(core_.locks);
  if (core_.notes == nullptr || !core_.notes->has_sent() || sends_.limits().signals_all) {
    return "";
  }
  const QueuePairNotes::Send& last = core_.notes->send(core_.notes->last_send());
  return last.is_signaled ? ""
                          : fmt::format("; the last send, wr_id {}, was posted at {} without IBV_SEND_SIGNALED",
                                        last.wr_id, base::place_of(last.site));
}

bool QueuePairExplainer::explain_starvation() const {
  const SendGuard guard(core_.locks);
  bool is_told = false;
  core_.when_noting([&](QueuePairNotes&) RINGBOLT_NOT_ANALYSED {
    const uint32_t done = core_.sends.done.load(std::memory_order_relaxed);
    if (core_.sends.unfinished() != 0) {
      is_told = explain_starved_send(core_, sends_.place(done));
    }
  });
  return is_told;
}

}  // namespace ringbolt::device
