#include "abi/recorded.h"

namespace ringbolt::abi {

void record_polled(trace::Recorder& to, const ibv_wc* wc, int count, uint64_t place) {
  const uint64_t at = to.time();
  for (int i = 0; i < count; ++i) {
    trace::Record what;
    what.ticks = at;
    what.wr_id = wc[i].wr_id;
    what.place = place;
    what.object = wc[i].qp_num;
    what.bytes = wc[i].byte_len;
    what.kind = trace::Kind::completion_polled;
    what.code = static_cast<uint8_t>(wc[i].opcode);
    what.status = static_cast<uint8_t>(wc[i].status);
    if ((wc[i].opcode & IBV_WC_RECV) != 0 && wc[i].status == IBV_WC_SUCCESS) {
      trace::QueuePairEntry* const known = to.find(wc[i].qp_num);
      what.number = known == nullptr ? 0 : known->arrivals.fetch_add(1, std::memory_order_relaxed) + 1;
    }
    to.record(what);
  }
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
