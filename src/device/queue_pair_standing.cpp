// For RINGBOLT_EXPLAIN: how far a queue pair is, and what it waits for.

#include <fmt/format.h>

#include "device/failure_notes.h"
#include "device/qp_transitions.h"
#include "device/queue_pair.h"

namespace ringbolt::device {

QueuePair::Standing QueuePair::standing() {
  Standing now;
  const ReceiveGuard guard(core_.locks);
  now.state = core_.state();
  now.done = core_.sends.done.load(std::memory_order_relaxed);
  now.unfinished = core_.sends.unfinished();
  if (now.state == IBV_QPS_RESET) {
    return now;  // perhaps it is destroyed, and its shared receive queue, too
  }
  now.receives = core_.queues.shared != nullptr ? core_.queues.shared->count() : receive_.ring().count();
  return now;
}

std::string QueuePair::text_of(const Standing& standing) {
  return fmt::format("{}, {} sends unfinished, {} receives posted", name_of(standing.state), standing.unfinished,
                     standing.receives);
}

void QueuePair::tell_standing(const Standing& standing) {
  const SendGuard guard(core_.locks);
  core_.when_noting([&](QueuePairNotes&) { tell_peer(core_, PeerNotes::Kind::state, text_of(standing)); });
}

std::string QueuePair::peer_standing() {
  const SendGuard guard(core_.locks);
  const auto note = core_.notes == nullptr ? std::nullopt : peer_note(core_, PeerNotes::Kind::state, 0);
  return note ? fmt::format("queue pair {:#x} of process {}: {}", note->number, note->pid, note->text) : "";
}

std::string QueuePair::unsignaled_text() {
  const SendGuard guard(core_.locks);
  if (core_.notes == nullptr || !core_.notes->has_sent() || send_.limits().signals_all) {
    return "";
  }
  const QueuePairNotes::Send& last = core_.notes->send(core_.notes->last_send());
  return last.is_signaled ? ""
                          : fmt::format("; the last send, wr_id {}, was posted at {} without IBV_SEND_SIGNALED",
                                        last.wr_id, base::place_of(last.site));
}

bool QueuePair::explain_starvation() {
  const SendGuard guard(core_.locks);
  bool is_told = false;
  core_.when_noting([&](QueuePairNotes&) RINGBOLT_NOT_ANALYSED {
    const uint32_t done = core_.sends.done.load(std::memory_order_relaxed);
    if (core_.sends.unfinished() != 0) {
      is_told = explain_starved_send(core_, send_.place(done), send_.entry(done).wr_id);
    }
  });
  return is_told;
}

}  // namespace ringbolt::device
