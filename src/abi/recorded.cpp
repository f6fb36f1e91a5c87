#include "abi/recorded.h"

namespace ringbolt::abi {

// record_sends() and record_polled() do the common case, one request or completion, without a call, and leave all else
// to their twins.
namespace {

constexpr uint32_t bit_of(ibv_wr_opcode opcode) { return 1U << static_cast<uint32_t>(opcode); }
// Those that take a receive at the peer, and are numbered to match it there.
constexpr uint32_t kTaking = bit_of(IBV_WR_SEND) | bit_of(IBV_WR_SEND_WITH_IMM) | bit_of(IBV_WR_SEND_WITH_INV) |
                             bit_of(IBV_WR_RDMA_WRITE_WITH_IMM);
constexpr uint32_t kWithoutPieces = bit_of(IBV_WR_BIND_MW) | bit_of(IBV_WR_LOCAL_INV);
static_assert(IBV_SEND_SIGNALED == int{trace::kSignaled} && IBV_SEND_SOLICITED == int{trace::kSolicited} &&
              IBV_SEND_INLINE == int{trace::kInline} && IBV_SEND_FENCE == int{trace::kFenced});

uint32_t length_of(const ibv_sge* pieces, int count) {
  uint32_t bytes = 0;
  for (int i = 0; i < count; ++i) {
    bytes += pieces[i].length;
  }
  return bytes;
}

/// Not as one step: to count a message twice, or not, when two threads post to a queue pair at once costs an arrow.
uint32_t next_of(std::atomic<uint32_t>& count) {
  const uint32_t next = count.load(std::memory_order_relaxed) + 1;
  count.store(next, std::memory_order_relaxed);
  return next;
}

[[gnu::always_inline]] inline void put_send(trace::Recorder& to, const ibv_qp* c, const ibv_send_wr& wr, uint32_t bytes,
                                            uint64_t at, uint64_t place) {
  const trace::Recorder::Slot slot = to.begin();
  const bool takes = (kTaking >> (static_cast<uint32_t>(wr.opcode) & 31U) & 1U) != 0;
  trace::QueuePairEntry* const known = takes ? Qp::of(const_cast<ibv_qp*>(c)).traced : nullptr;
  slot.record.wr_id = wr.wr_id;
  slot.record.place = place;
  slot.record.object = c->qp_num;
  slot.record.bytes = bytes;
  slot.record.kind = trace::Kind::post_send;
  slot.record.code = static_cast<uint8_t>(wr.opcode);
  slot.record.status = 0;
  slot.record.flags = static_cast<uint8_t>(wr.send_flags);
  slot.record.number = known != nullptr ? next_of(known->messages) : 0;
  trace::Recorder::finish(slot, at);
}

[[gnu::noinline]] void record_all_sends(trace::Recorder& to, ibv_qp* c, const ibv_send_wr* wr, const ibv_send_wr* end,
                                        uint64_t at, uint64_t place) {
  for (; wr != end; wr = wr->next) {
    const uint32_t bit = 1U << (static_cast<uint32_t>(wr->opcode) & 31U);
    put_send(to, c, *wr, (bit & kWithoutPieces) != 0 ? 0 : length_of(wr->sg_list, wr->num_sge), at, place);
  }
}

bool is_arrival(const ibv_wc& wc) { return (wc.opcode & IBV_WC_RECV) != 0 && wc.status == IBV_WC_SUCCESS; }

/// `known`: of a message that came; else null.
[[gnu::always_inline]] inline void put_polled(trace::Recorder& to, const ibv_wc& wc, trace::QueuePairEntry* known,
                                              uint64_t at, uint64_t place) {
  const trace::Recorder::Slot slot = to.begin();
  slot.record.wr_id = wc.wr_id;
  slot.record.place = place;
  slot.record.object = wc.qp_num;
  slot.record.bytes = wc.byte_len;
  slot.record.kind = trace::Kind::completion_polled;
  slot.record.code = static_cast<uint8_t>(wc.opcode);
  slot.record.status = static_cast<uint8_t>(wc.status);
  slot.record.flags = 0;
  slot.record.number = known != nullptr ? next_of(known->arrivals) : 0;
  trace::Recorder::finish(slot, at);
}

[[gnu::noinline]] void record_all_polled(trace::Recorder& to, const ibv_wc* wc, int count, uint64_t place) {
  const uint64_t at = to.time();
  for (int i = 0; i < count; ++i) {
    put_polled(to, wc[i], is_arrival(wc[i]) ? to.find(wc[i].qp_num) : nullptr, at, place);
  }
}

}  // namespace

void record_sends(trace::Recorder& to, ibv_qp* c, const ibv_send_wr* wr, const ibv_send_wr* end, uint64_t at,
                  uint64_t place) {
  if (wr == end || wr->next != end || wr->num_sge != 1 || wr->opcode > IBV_WR_ATOMIC_FETCH_AND_ADD) [[unlikely]] {
    return record_all_sends(to, c, wr, end, at, place);
  }
  put_send(to, c, *wr, wr->sg_list->length, at, place);
}

void record_receives(trace::Recorder& to, trace::Kind kind, uint32_t object, const ibv_recv_wr* wr,
                     const ibv_recv_wr* end, uint64_t at, uint64_t place) {
  for (; wr != end; wr = wr->next) {
    const trace::Recorder::Slot slot = to.begin();
    slot.record.wr_id = wr->wr_id;
    slot.record.place = place;
    slot.record.object = object;
    slot.record.bytes = length_of(wr->sg_list, wr->num_sge);
    slot.record.kind = kind;
    slot.record.code = slot.record.status = slot.record.flags = 0;
    slot.record.number = 0;
    trace::Recorder::finish(slot, at);
  }
}

void record_polled(trace::Recorder& to, const ibv_wc* wc, int count, uint64_t place) {
  const bool is_one = count == 1 && to.has_counter();
  trace::QueuePairEntry* const known = is_one && is_arrival(*wc) ? to.find_first(wc->qp_num) : nullptr;
  if (!is_one || (known == nullptr && is_arrival(*wc))) [[unlikely]] {
    return record_all_polled(to, wc, count, place);
  }
  put_polled(to, *wc, known, trace::read_counter(), place);
}

void record_refused(trace::Recorder& to, uint8_t which, uint32_t object, uint64_t wr_id, int error, uint64_t place) {
  trace::Record what;
  what.kind = trace::Kind::refused;
  what.code = which;
  what.object = object;
  what.wr_id = wr_id;
  what.number = static_cast<uint32_t>(error < 0 ? -error : error);
  what.place = place;
  to.note(what);
}

void note_recorded(ibv_qp& qp, const ibv_qp_init_attr& init) {
  trace::Recorder* const to = trace::recorder();
  if (to == nullptr) {
    return;
  }
  trace::QueuePairEntry made{};
  made.qpn.store(qp.qp_num, std::memory_order_relaxed);
  made.type = static_cast<uint8_t>(qp.qp_type);
  made.state = static_cast<uint8_t>(IBV_QPS_RESET);
  made.signals_all = init.sq_sig_all != 0 ? 1 : 0;
  made.send_queue = trace::id_of(qp.send_cq);
  made.receive_queue = trace::id_of(qp.recv_cq);
  made.shared_queue = qp.srq == nullptr ? 0 : trace::id_of(qp.srq);
  Qp::of(&qp).traced = to->add_queue_pair(made);
}

void forget_recorded(const Qp& qp) {
  if (qp.traced != nullptr && trace::recorder() != nullptr) {
    // Relaxed: by it alone the place may be taken again; nothing else is read because of it.
    std::atomic_ref(qp.traced->is_gone).store(1, std::memory_order_relaxed);
  }
}

void record_queue(trace::Kind kind, const ibv_cq* cq, uint32_t number, uint8_t flags) {
  if (trace::Recorder* const to = trace::recorder(); to != nullptr) [[unlikely]] {
    trace::Record what;
    what.kind = kind;
    what.object = trace::id_of(cq);
    what.number = number;
    what.flags = flags;
    to->note(what);
  }
}

}  // namespace ringbolt::abi
