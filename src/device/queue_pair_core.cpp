#include "device/queue_pair_core.h"

#include <utility>

#include "device/queue_pair_transport.h"
#include "device/recording.h"

namespace ringbolt::device {

QueuePairCore::QueuePairCore(ProtectionDomain& domain, CompletionQueues completion_queues, const ibv_qp_init_attr& init,
                             ibv_qp* c_object)
    : pd(domain),
      context(domain.context),
      port(context.shared_port()),
      process(context.process()),
      faults(port->fabric->verb_faults),
      handle(c_object),
      type(init.qp_type),
      queues(std::move(completion_queues)),
      number(port->live->queue_pairs_made.fetch_add(1)),
      counts(context.counters()),
      cable(*port, faults, type),
      mtu_shift(device::mtu_shift(port->mtu)) {}

void QueuePairCore::set_state(ibv_qp_state state) {
  state_.store(state);
  show_state(state);
}

bool QueuePairCore::set_state_unless_failed(ibv_qp_state state) {
  ibv_qp_state before = state_.load();
  do {
    if (before == IBV_QPS_ERR) {
      return false;
    }
  } while (!state_.compare_exchange_weak(before, state));
  show_state(state);
  return true;
}

/// Programs look at the C object without asking. Sequentially consistent: of two that change the state at once, the
/// later one writes last there, or the earlier one sees that it has been overtaken.
void QueuePairCore::show_state(ibv_qp_state state) {
  if (trace::recorder() != nullptr) [[unlikely]] {
    record_state(*this, state);
  }
  __atomic_store_n(&handle->state, state, __ATOMIC_SEQ_CST);
  if (const ibv_qp_state newest = state_.load(); newest != state) [[unlikely]] {
    __atomic_store_n(&handle->state, newest, __ATOMIC_SEQ_CST);
  }
  if (state == IBV_QPS_ERR) {
    ask_for_look();
  }
}

void QueuePairCore::enter_error(ibv_wc_status first_send_status) {
  if (state() == IBV_QPS_ERR) {
    return;
  }
  first_flush_status = first_send_status;
  set_state(IBV_QPS_ERR);
  if (QueuePairTransport* const known = transport.load(std::memory_order_acquire)) {
    known->close();
  }
  kick();
}

void QueuePairCore::note_peer_died() {
  switch (port->profile.knobs.peer_death) {
    case profile::PeerDeath::requests:
      return;  // programs look at events first, and an event does not say which peer it was
    case profile::PeerDeath::then_fatal:
      owes_fatal.store(true);
      return kick();
    case profile::PeerDeath::fatal:
      return announce(IBV_EVENT_QP_FATAL);
  }
}

void QueuePairCore::kick() {
  queues.receive->mark_receiver(receive_place);
  queues.send->mark_sender(send_place);
  // Without a queue of its own to flush, the end of a queue pair is announced by an event, polled for or not.
  const bool owes_event =
      (queues.shared != nullptr || owes_fatal.load(std::memory_order_relaxed)) && state() == IBV_QPS_ERR;
  if (queues.send->is_armed() || queues.receive->is_armed() || sends.has_queued() || owes_event) {
    process.request_service(*queues.send);
    process.request_service(*queues.receive);
  }
}

/// Pieces without bytes have no key that could be wrong (InfiniBand Architecture Specification, 9.7.4.1.4 has it so for
/// remote keys), and are left out, so that `count` is at most kMaxSge.
bool QueuePairCore::translate_each(std::span<const ibv_sge> from, bool is_inline, uint32_t access,
                                   Pieces& pieces) const {
  for (const ibv_sge& piece : from) {
    if (piece.length == 0) {
      continue;
    }
    link::RegionTableView::Place place;
    place.host = piece.addr;
    if (!is_inline) {
      if (!process.regions().locate(piece.lkey, pd.key, link::kAnyQueuePair, access, piece.addr, piece.length, place)) {
        return false;
      }
      // Only a message in one piece can be named by its place in an arena; the others are copied.
      pieces.arena = {pieces.count == 0 ? place.arena_id : 0, place.arena_offset};
    }
    pieces.at[pieces.count++] = {reinterpret_cast<void*>(place.host), piece.length};
  }
  return true;
}

std::byte* QueuePairCore::find_local(uint64_t address, uint64_t length, uint32_t key, uint32_t access) const {
  link::Region region;
  if ((attributes.qp_access_flags & access) != access || !process.regions().find(key, region) ||
      region.pd_key != pd.key || (region.access & access) != access || !region.holds(address, length) ||
      (region.bound_qpn != link::kAnyQueuePair && region.bound_qpn != qpn)) {
    return nullptr;
  }
  return reinterpret_cast<std::byte*>(region.host_first + (address - region.first));
}

void QueuePairCore::note_overlong(uint32_t length) {
  if (port->live->overlong_messages.note(qpn, length)) {
    process.tell_soon();
  }
}

}  // namespace ringbolt::device
