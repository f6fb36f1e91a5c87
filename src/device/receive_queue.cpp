#include "device/receive_queue.h"

#include <cerrno>

#include "base/c_border.h"
#include "device/explanations.h"
#include "device/failure_notes.h"
#include "device/queue_pair_transport.h"
#include "device/receive_quirks.h"
#include "device/vendor_error.h"
#include "device/work_request.h"

namespace ringbolt::device {

ReceiveQueue::ReceiveQueue(QueuePairCore& core, uint32_t depth, uint32_t max_pieces, bool has_quirks)
    // With a shared receive queue the ring is never used, but has a place: its arithmetic wants a depth.
    : core_(core), ring_(core.queues.shared != nullptr ? 1 : depth, max_pieces) {
  if (has_quirks) {
    quirks_ = std::make_unique<ReceiveQuirks>(core, depth);
  }
}

ReceiveQueue::~ReceiveQueue() = default;

void ReceiveQueue::add_quirks() {
  if (quirks_ == nullptr) {
    quirks_ = std::make_unique<ReceiveQuirks>(core_, ring_.depth());
  }
}

void ReceiveQueue::note_rtr() {
  if (quirks_ != nullptr) {
    quirks_->note_rtr();
  }
}

bool ReceiveQueue::is_coalescing() {
  return quirks_ != nullptr && quirks_->is_coalescing(core_.transport.load(std::memory_order_relaxed)->has_arrived());
}

bool ReceiveQueue::deliver_unexpected(CompletionQueue& cq) {
  if (quirks_ != nullptr) {
    quirks_->deliver(*this, cq);
  }
  return core_.state() != IBV_QPS_ERR;
}

[[gnu::always_inline]] inline int ReceiveQueue::post_locked(ibv_recv_wr* wr, ibv_recv_wr** bad) {
  if (core_.queues.shared != nullptr || core_.state() == IBV_QPS_RESET) {
    name_refused(wr, bad);
    return base::refused(EINVAL, "ibv_post_recv", [&] {
      return core_.queues.shared != nullptr
                 ? base::Explanation{"the queue pair receives by a shared receive queue", "post with ibv_post_srq_recv"}
                 : base::Explanation{"the queue pair is in the state RESET; it takes receives from INIT on",
                                     "step it to INIT with ibv_modify_qp first"};
    });
  }
  QueuePairTransport* const transport = core_.transport.load(std::memory_order_relaxed);
  if (transport != nullptr) {
    transport->on_posting(ring_.count());
  }
  for (; wr != nullptr; wr = wr->next) {
    if (const int error = quirks_ == nullptr ? ring_.push(*wr) : quirks_->push(*this, *wr)) {
      if (error > 0) {  // a negated number comes from a driver that leaves the pointer alone
        name_refused(wr, bad);
      }
      const uint32_t posted = ring_.count();
      const uint32_t depth = ring_.depth();
      const uint32_t pieces = ring_.max_sge();
      return base::refused(error, "ibv_post_recv", [&] { return why_receive_refused(*wr, posted, depth, pieces); });
    }
  }
  // A message may have waited for this receive, and nobody rings for it again. It is marked as long as it waits.
  const bool is_to_flush = core_.state() == IBV_QPS_ERR;
  if (is_to_flush) [[unlikely]] {
    core_.queues.receive->mark_receiver(core_.receive_place);
  }
  if (core_.queues.receive->is_armed() && (is_to_flush || (transport != nullptr && transport->may_receive()))) {
    core_.process.request_service(*core_.queues.receive);
  }
  return 0;
}

int ReceiveQueue::post(ibv_recv_wr* wr, ibv_recv_wr** bad) try {
  const ReceiveGuard guard(core_.locks);
  return post_locked(wr, bad);
} catch (...) {
  return base::caught_errno();
}

int ReceiveQueue::post_noted(ibv_recv_wr* wr, ibv_recv_wr** bad, const ReceivePosting& from) try {
  const ReceiveGuard guard(core_.locks);
  const uint32_t before = ring_.count();
  const int error = post_locked(wr, bad);
  core_.notes->note_receives(wr, ring_.count() - before, from);
  return error;
} catch (...) {
  return base::caught_errno();
}

int ReceiveQueue::receive_in_place() {
  if (core_.type == IBV_QPT_UD || core_.port->profile.takes_away() || core_.queues.shared != nullptr ||
      core_.port->is_on_network()) {
    return EOPNOTSUPP;
  }
  receives_in_place_.store(true, std::memory_order_relaxed);
  return 0;
}

void ReceiveQueue::open_with_quirks() { quirks_->on_open(current_); }

ibv_wc_status ReceiveQueue::judge_with_quirks(uint32_t total) { return quirks_->judge(current_, total); }

bool ReceiveQueue::open_shared() {
  const bool is_awaited = core_.queues.receive->is_armed();
  return core_.queues.shared->take(current_.wr_id, current_.wanted.data(), current_.wanted_count, is_awaited);
}

void ReceiveQueue::place_with_quirks(uint32_t offset, const std::byte* data, uint32_t length) {
  if (quirks_->wraps()) {
    quirks_->place_wrapped(current_, offset, data, length);
  } else if (!quirks_->place_in_parts(current_, offset, data, length)) {
    current_.pieces.scatter(offset, data, length);
  }
}

void ReceiveQueue::push_failed(CompletionQueue& cq, uint64_t wr_id, ibv_wc_status status) {
  ibv_wc& wc = cq.next();
  wc = {};
  wc.wr_id = wr_id;
  wc.status = status;
  wc.opcode = IBV_WC_RECV;
  wc.vendor_err = vendor_error(status);
  wc.qp_num = core_.qpn;
  count_failed_receive(status, core_.counts);
  core_.when_noting([&](const QueuePairNotes& notes) RINGBOLT_NOT_ANALYSED {
    const bool is_shared = core_.queues.shared != nullptr;
    NotedReceive noted = is_shared ? core_.queues.shared->noted(wr_id) : notes.taken_receive(ring_.count());
    noted.wr_id = noted.site ? noted.wr_id : wr_id;
    explain_failed_receive(core_, noted, status);
  });
  cq.commit(status, true);
}

void ReceiveQueue::fail(CompletionQueue& cq, ibv_wc_status status) {
  if (current_.is_open) {
    current_.is_open = false;
    current_.received = 0;
    push_failed(cq, current_.wr_id, status);
  }
}

[[gnu::cold, gnu::noinline]] void ReceiveQueue::note_failure(ibv_wc_status status, uint64_t total, bool is_at_least) {
  core_.when_noting([&](QueuePairNotes&) RINGBOLT_NOT_ANALYSED {
    note_failed_receive(core_, status, {current_.wanted.data(), current_.wanted_count}, current_.pieces.length(), total,
                        is_at_least);
  });
}

void ReceiveQueue::flush(CompletionQueue& cq) {
  if (current_.is_open && cq.has_room()) {
    fail(cq, IBV_WC_WR_FLUSH_ERR);
  }
  while (!ring_.is_empty() && cq.has_room()) {
    const uint64_t wr_id = ring_.front().wr_id;
    ring_.pop();
    push_failed(cq, wr_id, IBV_WC_WR_FLUSH_ERR);
  }
  if (quirks_ != nullptr) {
    quirks_->on_flush();
  }
  // The receive that it had taken is over, and it takes no more: those in the shared queue are not its own to flush.
  if (core_.queues.shared != nullptr && !has_flushed_last_) {
    has_flushed_last_ = true;
    core_.announce(IBV_EVENT_QP_LAST_WQE_REACHED);
  }
  if (ring_.is_empty() && core_.sends.unfinished() == 0 && core_.owes_fatal.exchange(false)) {
    core_.announce(IBV_EVENT_QP_FATAL);
  }
}

void ReceiveQueue::note_established() {
  if (!is_established_ && core_.state() == IBV_QPS_RTR) {
    is_established_ = true;
    core_.announce(IBV_EVENT_COMM_EST);
  }
}

void ReceiveQueue::reset() {
  ring_.clear();
  current_ = {};
  has_flushed_last_ = is_established_ = false;
  if (quirks_ != nullptr) {
    quirks_->reset();
  }
}

}  // namespace ringbolt::device
