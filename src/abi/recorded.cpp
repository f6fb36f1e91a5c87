#include "abi/recorded.h"

namespace ringbolt::abi {

// Each of the three that follow does the common case, one request or few completions for which there is room, in a few
// dozen instructions without a call, and leaves all else to its twin.
namespace {

constexpr uint32_t bit_of(ibv_wr_opcode opcode) { return 1U << static_cast<uint32_t>(opcode); }
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

[[gnu::always_inline]] inline void put_send(trace::Cursor& cursor, const ibv_qp* c, trace::QueuePairEntry* known,
                                            const ibv_send_wr& wr, uint32_t bytes, uint64_t at, uint64_t place) {
  trace::Record& record = trace::Recorder::begin(cursor);
  const bool takes = (kTaking >> (static_cast<uint32_t>(wr.opcode) & 31U) & 1U) != 0;
  record.wr_id = wr.wr_id;
  record.place = place;
  record.object = c->qp_num;
  record.bytes = bytes;
  record.kind = trace::Kind::post_send;
  record.code = static_cast<uint8_t>(wr.opcode);
  record.status = 0;
  record.flags = static_cast<uint8_t>(wr.send_flags);
  record.number = takes && known != nullptr ? next_of(known->messages) : 0;
  trace::Recorder::finish(cursor, record, at);
}

[[gnu::always_inline]] inline void put_receive(trace::Cursor& cursor, trace::Kind kind, uint32_t object,
                                               const ibv_recv_wr& wr, uint32_t bytes, uint64_t at, uint64_t place) {
  trace::Record& record = trace::Recorder::begin(cursor);
  record.wr_id = wr.wr_id;
  record.place = place;
  record.object = object;
  record.bytes = bytes;
  record.kind = kind;
  record.code = record.status = record.flags = 0;
  record.number = 0;
  trace::Recorder::finish(cursor, record, at);
}

bool is_arrival(const ibv_wc& wc) { return (wc.opcode & IBV_WC_RECV) != 0 && wc.status == IBV_WC_SUCCESS; }

/// `known`: of a message that came; else null.
[[gnu::always_inline]] inline void put_polled(trace::Cursor& cursor, const ibv_wc& wc, trace::QueuePairEntry* known,
                                              uint64_t at, uint64_t place) {
  trace::Record& record = trace::Recorder::begin(cursor);
  record.wr_id = wc.wr_id;
  record.place = place;
  record.object = wc.qp_num;
  record.bytes = wc.byte_len;
  record.kind = trace::Kind::completion_polled;
  record.code = static_cast<uint8_t>(wc.opcode);
  record.status = static_cast<uint8_t>(wc.status);
  record.flags = 0;
  record.number = known != nullptr ? next_of(known->arrivals) : 0;
  trace::Recorder::finish(cursor, record, at);
}

template <class Put>
void put_one(trace::Recorder& to, Put&& put) {
  if (!to.has_room(trace::cursor)) {
    to.make_room();
  }
  put(trace::cursor);
}

[[gnu::noinline]] void record_all_sends(trace::Recorder& to, ibv_qp* c, const ibv_send_wr* wr, const ibv_send_wr* end,
                                        uint64_t at, uint64_t place) {
  for (; wr != end; wr = wr->next) {
    const uint32_t bit = 1U << (static_cast<uint32_t>(wr->opcode) & 31U);
    const uint32_t bytes = (bit & kWithoutPieces) != 0 ? 0 : length_of(wr->sg_list, wr->num_sge);
    put_one(to, [&](trace::Cursor& cursor) { put_send(cursor, c, Qp::of(c).traced, *wr, bytes, at, place); });
  }
}

[[gnu::noinline]] void record_all_receives(trace::Recorder& to, trace::Kind kind, uint32_t object,
                                           const ibv_recv_wr* wr, const ibv_recv_wr* end, uint64_t at, uint64_t place) {
  for (; wr != end; wr = wr->next) {
    const uint32_t bytes = length_of(wr->sg_list, wr->num_sge);
    put_one(to, [&](trace::Cursor& cursor) { put_receive(cursor, kind, object, *wr, bytes, at, place); });
  }
}

[[gnu::noinline]] void record_all_polled(trace::Recorder& to, const ibv_wc* wc, int count, uint64_t place) {
  const uint64_t at = to.time();
  for (int i = 0; i < count; ++i) {
    trace::QueuePairEntry* const known = is_arrival(wc[i]) ? to.find(wc[i].qp_num) : nullptr;
    put_one(to, [&](trace::Cursor& cursor) { put_polled(cursor, wc[i], known, at, place); });
  }
}

}  // namespace

void record_sends(trace::Recorder& to, ibv_qp* c, const ibv_send_wr* wr, const ibv_send_wr* end, uint64_t at,
                  uint64_t place) {
  trace::Cursor& cursor = trace::cursor;
  if (wr == end || wr->next != end || wr->num_sge != 1 || wr->opcode > IBV_WR_ATOMIC_FETCH_AND_ADD ||
      !to.has_room(cursor)) [[unlikely]] {
    return record_all_sends(to, c, wr, end, at, place);
  }
  put_send(cursor, c, Qp::of(c).traced, *wr, wr->sg_list->length, at, place);
}

void record_receives(trace::Recorder& to, trace::Kind kind, uint32_t object, const ibv_recv_wr* wr,
                     const ibv_recv_wr* end, uint64_t at, uint64_t place) {
  trace::Cursor& cursor = trace::cursor;
  if (wr == end || wr->next != end || wr->num_sge != 1 || !to.has_room(cursor)) [[unlikely]] {
    return record_all_receives(to, kind, object, wr, end, at, place);
  }
  put_receive(cursor, kind, object, *wr, wr->sg_list->length, at, place);
}

void record_polled(trace::Recorder& to, const ibv_wc* wc, int count, uint64_t place) {
  trace::Cursor& cursor = trace::cursor;
  const bool is_one = count == 1 && to.has_room(cursor) && to.has_counter();
  trace::QueuePairEntry* const known = is_one && is_arrival(*wc) ? to.find_first(wc->qp_num) : nullptr;
  if (!is_one || (known == nullptr && is_arrival(*wc))) [[unlikely]] {
    return record_all_polled(to, wc, count, place);
  }
  put_polled(cursor, *wc, known, trace::read_counter(), place);
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
