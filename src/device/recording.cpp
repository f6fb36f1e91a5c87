#include "device/recording.h"

#include <algorithm>

namespace ringbolt::device {
namespace {

trace::Record record_of(trace::Kind kind, uint32_t object) {
  trace::Record what;
  what.kind = kind;
  what.object = object;
  return what;
}

void note_peer(const QueuePairCore& core, trace::QueuePairEntry& entry) {
  const ibv_ah_attr& route = core.attributes.ah_attr;
  entry.peer_qpn = core.attributes.dest_qp_num;
  std::ranges::copy(route.grh.dgid.raw, entry.peer_gid.begin());
  const auto addresses = core.port->addresses();
  if (const size_t own = route.grh.sgid_index; own < addresses->shown.size()) {
    std::ranges::copy(addresses->shown[own].raw, entry.gid.begin());
  }
}

bool is_of_queue_pair(ibv_event_type type) {
  return (type >= IBV_EVENT_QP_FATAL && type <= IBV_EVENT_PATH_MIG_ERR) || type == IBV_EVENT_QP_LAST_WQE_REACHED;
}

}  // namespace

void record_state(const QueuePairCore& core, ibv_qp_state state) {
  trace::Recorder* const to = trace::recorder();
  if (to == nullptr || core.qpn == 0) {
    return;
  }
  trace::Record what = record_of(trace::Kind::state, core.qpn);
  what.code = static_cast<uint8_t>(state);
  to->note(what);
  trace::QueuePairEntry* const entry = to->find(core.qpn);
  if (entry == nullptr) {
    return;
  }
  entry->state = static_cast<uint8_t>(state);
  if (state == IBV_QPS_RTR && core.type != IBV_QPT_UD) {
    note_peer(core, *entry);
  } else if (state == IBV_QPS_RESET) {
    entry->messages.store(0, std::memory_order_relaxed);
    entry->arrivals.store(0, std::memory_order_relaxed);
  }
}

void record_made_one(const ibv_wc& wc) {
  trace::Record what = record_of(trace::Kind::completion_made, wc.qp_num);
  what.code = static_cast<uint8_t>(wc.opcode);
  what.status = static_cast<uint8_t>(wc.status);
  what.bytes = wc.byte_len;
  trace::note(what);
}

void record_async_event(ibv_event_type type, const void* element) {
  const uint32_t object = is_of_queue_pair(type) ? static_cast<const ibv_qp*>(element)->qp_num : trace::id_of(element);
  trace::Record what = record_of(trace::Kind::async_event, object);
  what.code = static_cast<uint8_t>(type);
  trace::note(what);
}

void record_news(uint32_t qpn, const transport::RequesterCounters& now, const transport::RequesterCounters& told) {
  record_fate(trace::Kind::timed_out, qpn, now.timeouts - told.timeouts);
  record_fate(trace::Kind::not_ready, qpn, now.rnr_naks - told.rnr_naks);
  record_fate(trace::Kind::sequence_error, qpn,
              now.sequence_naks - told.sequence_naks + now.implied_naks - told.implied_naks);
  record_fate(trace::Kind::resent, qpn, now.resent - told.resent);
}

void record_news(uint32_t qpn, const transport::ResponderCounters& now, const transport::ResponderCounters& told) {
  record_fate(trace::Kind::duplicate, qpn, now.duplicates - told.duplicates);
}

void record_fault(uint32_t qpn, const fault::Verdict& verdict) {
  const auto bit = [](bool is_so, trace::Struck what) { return is_so ? static_cast<unsigned>(what) : 0U; };
  trace::Record what = record_of(trace::Kind::fault, qpn);
  what.flags =
      static_cast<uint8_t>(bit(verdict.is_lost, trace::kLost) | bit(verdict.hold_ns != 0, trace::kHeld) |
                           bit(verdict.is_harmed(), trace::kChanged) | bit(verdict.is_refused, trace::kRefused) |
                           bit(verdict.is_not_ready, trace::kNotReady) | bit(verdict.status != 0, trace::kStatus));
  if (what.flags != 0) {
    trace::note(what);
  }
}

}  // namespace ringbolt::device
