// Hot path: post() and progress().

#include "device/send_queue.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/c_border.h"
#include "base/clock.h"
#include "device/explanations.h"
#include "device/failure_notes.h"
#include "device/queue_pair_transport.h"
#include "device/send_quirks.h"
#include "device/vendor_error.h"
#include "device/work_request.h"

namespace ringbolt::device {
namespace {

bool takes_requests(ibv_qp_state state) {
  return state != IBV_QPS_RESET && state != IBV_QPS_INIT && state != IBV_QPS_RTR;
}

}  // namespace

SendQueue::SendQueue(QueuePairCore& core, const Limits& limits, size_t slots, std::unique_ptr<SendQuirks> quirks)
    : core_(core),
      limits_(limits),
      mask_(static_cast<uint32_t>(slots - 1)),
      quirks_(std::move(quirks)),
      early_(quirks_ != nullptr && quirks_->completes_early() ? quirks_.get() : nullptr),
      entries_(slots),
      requests_(slots),
      pieces_(slots * limits.pieces),
      inline_(slots * limits.inline_bytes) {}

SendQueue::~SendQueue() = default;

void SendQueue::add_quirks() {
  if (quirks_ == nullptr) {
    constexpr bool kCompletesEarly = false;  // the slots were counted without
    quirks_ = std::make_unique<SendQuirks>(core_, kCompletesEarly);
  }
}

int SendQueue::check(const ibv_send_wr& wr) const {
  const Operation& operation = operation_of(wr.opcode);
  if ((operation.types >> core_.type & 1U) == 0 || static_cast<uint32_t>(wr.num_sge) > limits_.pieces) {
    return EINVAL;  // a negative number of pieces is too large a one
  }
  if ((wr.send_flags & IBV_SEND_INLINE) != 0 && (!operation.carries_data || total_length(wr) > limits_.inline_bytes)) {
    return EINVAL;
  }
  const bool lacks_object =
      (core_.type == IBV_QPT_UD && wr.wr.ud.ah == nullptr) || (wr.opcode == IBV_WR_BIND_MW && wr.bind_mw.mw == nullptr);
  return lacks_object ? EINVAL : 0;
}

int SendQueue::check_list(const ibv_send_wr* wr) const {
  for (uint32_t used = core_.sends.unfinished(); wr != nullptr; wr = wr->next) {
    if (const int error = ++used > limits_.requests ? ENOMEM : check(*wr)) {
      return error;
    }
  }
  return 0;
}

SendRequest SendQueue::describe(const ibv_send_wr& wr) const {
  return device::describe(wr, core_.type, core_.attributes.qkey);
}

void SendQueue::store(uint32_t index, const SendRequest& request) {
  ibv_sge* const own_pieces = pieces(index);
  SendRequest& stored = requests_[index & mask_];
  stored = request;
  stored.pieces = own_pieces;
  if (!request.is_inline) {
    std::copy_n(request.pieces, request.pieces_count, own_pieces);
    return;
  }
  // Inline data is the program's again once the post returns.
  std::byte* const data = inline_.data() + size_t{index & mask_} * limits_.inline_bytes;
  std::byte* end = data;
  for (uint32_t i = 0; i < request.pieces_count; ++i) {
    if (request.pieces[i].length != 0) {
      std::memcpy(end, reinterpret_cast<const void*>(request.pieces[i].addr), request.pieces[i].length);
      end += request.pieces[i].length;
    }
  }
  own_pieces[0] = {reinterpret_cast<uint64_t>(data), request.length, 0};
  stored.pieces_count = request.length == 0 ? 0 : 1;
}

/// The caller has seen that there is room: the place may hold a send that is over.
SendEntry& SendQueue::append(const ibv_send_wr& wr, uint32_t length) {
  SendEntry& entry = entries_[core_.sends.tail.load(std::memory_order_relaxed) & mask_];
  entry = {};
  entry.wr_id = wr.wr_id;
  entry.wc_opcode = operation_of(wr.opcode).completion;
  entry.is_signaled = limits_.signals_all || (wr.send_flags & IBV_SEND_SIGNALED) != 0;
  entry.length = length;
  return entry;
}

void SendQueue::commit(const SendEntry& entry) {
  const uint32_t tail = core_.sends.tail.load(std::memory_order_relaxed);
  if (entry.is_signaled) {
    core_.sends.awaited.store(tail + 1, std::memory_order_relaxed);
  }
  core_.sends.tail.store(tail + 1, std::memory_order_relaxed);
}

/// See QueuePairTransport::execute_at_once().
inline bool SendQueue::is_plain(const ibv_send_wr& wr) {
  constexpr unsigned kPlain = IBV_SEND_SIGNALED | IBV_SEND_INLINE | IBV_SEND_SOLICITED;
  return wr.num_sge == 1 && (wr.send_flags & ~kPlain) == 0;
}

/// Executes what was appended, if it may begin, and keeps what is needed later.
[[gnu::noinline]] void SendQueue::begin(SendEntry& entry, const ibv_send_wr& wr, bool may_begin) {
  const SendRequest request = describe(wr);
  SendProgress& sends = core_.sends;
  const uint32_t tail = sends.tail.load(std::memory_order_relaxed);
  if (may_begin && execute(entry, request)) {
    if (entry.phase == SendPhase::answering || entry.phase == SendPhase::wired) {
      store(tail, request);
    }
    sends.next.store(tail + 1, std::memory_order_relaxed);
  } else {
    store(tail, request);
  }
}

int SendQueue::append_list(ibv_send_wr*& wr) {
  // In SQD and ERR requests are taken, and wait, or are flushed.
  const bool executes = core_.state() == IBV_QPS_RTS;
  SendProgress& sends = core_.sends;
  for (; wr != nullptr; wr = wr->next) {
    if (const int error = sends.unfinished() >= limits_.requests ? ENOMEM : check(*wr)) [[unlikely]] {
      return error;
    }
    const uint32_t tail = sends.tail.load(std::memory_order_relaxed);
    const bool may_begin = sends.next.load(std::memory_order_relaxed) == tail && executes && !has_failed_send_;
    SendEntry& entry = append(*wr, wr->num_sge == 1 ? wr->sg_list[0].length : total_length(*wr));
    if (may_begin && is_plain(*wr) && transport()->execute_at_once(entry, *wr)) [[likely]] {
      sends.next.store(tail + 1, std::memory_order_relaxed);
    } else {
      begin(entry, *wr, may_begin);
    }
    commit(entry);
    // Complete at once, with nothing before it that is not, and nobody to be told: over before anybody looks.
    // done may move on outside of complete(), and without the completion queue's lock, since nothing is told.
    if (entry.phase == SendPhase::finished && !entry.is_signaled &&
        sends.done.load(std::memory_order_relaxed) == tail) {
      sends.done.store(tail + 1, std::memory_order_relaxed);
    }
  }
  return 0;
}

[[gnu::always_inline]] inline int SendQueue::post_locked(ibv_send_wr* wr, ibv_send_wr** bad) {
  int error = takes_requests(core_.state()) ? 0 : EINVAL;
  if (quirks_ != nullptr) [[unlikely]] {
    error = error == 0 ? quirks_->append_list(*this, wr, bad == nullptr) : error;
  } else {
    error = error == 0 && bad == nullptr ? check_list(wr) : error;
    error = error == 0 ? append_list(wr) : error;
  }
  if (error != 0) [[unlikely]] {
    explain_refusal(error, wr);
  }
  // `wr` is the first that was not taken: append_list() moves it on.
  if (error > 0 && bad != nullptr) {  // a negated number comes from a driver that leaves the pointer alone
    *bad = wr;
  }
  end_post();
  return error;
}

// Flattened: its steps are functions for the sake of quirks, which call them one by one.
[[gnu::flatten]] int SendQueue::post(ibv_send_wr* wr, ibv_send_wr** bad) try {
  const SendGuard guard(core_.locks);
  return post_locked(wr, bad);
} catch (...) {
  return base::caught_errno();  // to name the request as well would cost the hot path two registers
}

[[gnu::noinline]] void SendQueue::note_up_to(uint32_t end, NotedList& list, const SendPosting& from) {
  QueuePairNotes& notes = *core_.notes;
  while (list.one != nullptr && list.original != nullptr && list.at != end) {
    notes.note_send(place(list.at++), *list.one, list.original->wr_id, from, list.peer_notes);
    if (++list.places == notes.places_of(list.one->num_sge)) {
      list.one = list.one->next;
      list.original = list.original->next;
      list.places = 0;
    }
  }
}

// Notes are made before the requests are the peer's, since they may fail at once; what has time comes after.
[[gnu::flatten]] int SendQueue::post_noted(ibv_send_wr* wr, ibv_send_wr** bad, const SendPosting& from) try {
  const SendGuard guard(core_.locks);
  QueuePairNotes& notes = *core_.notes;
  const uint32_t first = core_.sends.tail.load(std::memory_order_relaxed);
  const uint32_t room = slots() - core_.sends.unfinished();
  const bool is_one = wr != nullptr && wr->next == nullptr && room != 0 && notes.places_of(wr->num_sge) == 1;
  NotedList list{wr, from.original != nullptr ? from.original : wr, first, core_.process.peer_notes()->count()};
  if (is_one) [[likely]] {
    notes.note_send(place(first), *wr, list.original->wr_id, from, list.peer_notes);
  } else {
    note_up_to(first + room, list, from);
  }
  const int error = post_locked(wr, bad);
  const uint32_t tail = core_.sends.tail.load(std::memory_order_relaxed);
  if (tail - first > room) [[unlikely]] {
    note_up_to(tail, list, from);  // of a long list some were over before the last was taken, and have made room for it
  }
  if (from.ticks == 0 && tail != first) {
    const uint64_t now = notes.ticks_now();
    for (uint32_t i = tail - first > slots() ? tail - slots() : first; i != tail; ++i) {
      notes.note_time_of_send(place(i), now);
    }
  }
  return error;
} catch (...) {
  return base::caught_errno();
}

[[gnu::cold, gnu::noinline]] void SendQueue::explain_refusal(int error, const ibv_send_wr* wr) const {
  base::refused(error, "ibv_post_send", [&] {
    return wr == nullptr ? base::Explanation{"the list is empty", "post one request at least"}
                         : why_send_refused(*wr, core_.type, core_.state(), limits_, core_.sends.unfinished());
  });
}

void SendQueue::end_post() {
  if (QueuePairTransport* const known = transport()) {
    known->push_out(*this);
  }
  SendProgress& sends = core_.sends;
  const uint32_t unfinished = sends.unfinished();
  if (unfinished == 0) {
    return;
  }
  CompletionQueue& cq = *core_.queues.send;
  cq.note_sending(core_.send_place);
  // More sends unfinished than the completion queue has room for: somebody must see whether it overflows.
  if (sends.has_queued() || cq.may_overflow_with(unfinished)) [[unlikely]] {
    if (sends.has_queued()) {
      core_.queues.receive->mark_receiver(core_.receive_place);  // which may be polled alone
    }
    core_.process.request_service(cq);
  } else if (cq.is_armed()) {
    // Its program may go to sleep now: what is complete at once wakes it, and what is not has its timers. Answers are
    // for who completes them.
    const uint32_t done = sends.done.load(std::memory_order_relaxed);
    SendEntry& first = entry(done);
    const bool is_executed = done != sends.next.load(std::memory_order_relaxed);
    const bool is_over = is_executed && first.phase != SendPhase::answering && is_complete(first, done);
    if (!is_over) {
      core_.process.watch_timers(cq);
    } else if (!cq.ring() && first.phase == SendPhase::failed) {
      core_.process.request_service(cq);  // a failure counts as solicited
    }
  }
}

bool SendQueue::execute(SendEntry& entry, const SendRequest& request) {
  if (request.opcode == IBV_WR_LOCAL_INV || request.opcode == IBV_WR_BIND_MW) [[unlikely]] {
    return windows_.execute(*this, entry, request);
  }
  return transport()->submit(*this, entry, request);
}

void SendQueue::run() {
  SendProgress& sends = core_.sends;
  while (sends.has_queued() && !has_failed_send_ && core_.state() == IBV_QPS_RTS) {
    const uint32_t next = sends.next.load(std::memory_order_relaxed);
    SendEntry& first = entry(next);
    const auto turn = first.has_quirk ? quirks_->take_turn(*this, next) : SendQuirks::Turn::execute;
    if (turn == SendQuirks::Turn::wait || (turn == SendQuirks::Turn::execute && !execute(first, request(next)))) {
      break;
    }
    sends.next.store(next + 1, std::memory_order_relaxed);
  }
  if (QueuePairTransport* const known = transport()) {
    known->push_out(*this);
  }
}

[[gnu::cold, gnu::noinline]] bool SendQueue::fail(SendEntry& entry, ibv_wc_status status) {
  note_failure(entry, status);
  entry.status = static_cast<uint8_t>(status);
  entry.phase = SendPhase::failed;
  has_failed_send_ = true;
  const uint32_t tail = core_.sends.tail.load(std::memory_order_relaxed);
  core_.sends.awaited.store(tail + 1, std::memory_order_relaxed);  // signaled or not
  return true;
}

[[gnu::cold, gnu::noinline]] void SendQueue::note_failure(const SendEntry& entry, ibv_wc_status status) const {
  core_.when_noting([&](QueuePairNotes& notes) RINGBOLT_NOT_ANALYSED {
    const uint32_t at = place(entry);
    if (status == IBV_WC_LOC_PROT_ERR) {
      const bool is_written = entry.wc_opcode != IBV_WC_SEND && entry.wc_opcode != IBV_WC_RDMA_WRITE;
      notes.say_why_send(why_pieces_refused(core_, {notes.pieces(at), notes.send(at).pieces},
                                            is_written ? static_cast<uint32_t>(IBV_ACCESS_LOCAL_WRITE) : 0U));
    }
  });
}

bool SendQueue::fail_overlong(SendEntry& entry, uint32_t length) {
  if (core_.notes == nullptr) {  // else its completion tells
    core_.note_overlong(length);
  }
  return fail(entry, IBV_WC_LOC_LEN_ERR);
}

[[gnu::flatten]] void SendQueue::progress(CompletionQueue& cq) {
  const SendGuard guard(core_.locks);
  QueuePairTransport* const known = transport();
  if (known != nullptr) {
    known->take_answers(*this, cq.look_ns());
  }
  if (core_.sends.unfinished() != 0) {
    complete(cq);
    if (core_.sends.has_queued()) {
      run();
      complete(cq);
    }
  }
  // Under the lock: who posts next finds the mark gone.
  if (core_.sends.unfinished() == 0) {
    cq.note_sends_over(core_.send_place);
    if (known != nullptr && known->may_send()) {  // answers, for which no lock is taken
      cq.mark_sender(core_.send_place);
    }
  }
}

/// Without asking the transport: it has been executed, and is over.
inline bool SendQueue::is_over(const SendEntry& entry, uint32_t index) const {
  return index != core_.sends.next.load(std::memory_order_relaxed) &&
         (entry.phase == SendPhase::finished ||
          (entry.phase == SendPhase::sent && transport()->has_consumed(entry.end_slot)));
}

void SendQueue::advance() {
  if (try_lock_send(core_.locks)) {
    const SendGuard guard(core_.locks, base::kAdoptLock);
    run();
  }
}

bool SendQueue::has_awaited() const {
  const uint32_t done = core_.sends.done.load(std::memory_order_relaxed);
  return core_.type == IBV_QPT_UD ||
         static_cast<int32_t>(core_.sends.awaited.load(std::memory_order_relaxed) - done) > 0 ||
         core_.sends.has_queued() || core_.sends.unfinished() > mask_ / 2 || core_.state() != IBV_QPS_RTS;
}

bool SendQueue::is_complete(SendEntry& entry, uint32_t index) {
  return entry.phase == SendPhase::failed || entry.phase == SendPhase::finished ||
         transport()->is_complete(*this, entry, request(index));
}

std::optional<ibv_wc_status> SendQueue::outcome(uint32_t index) {
  for (;;) {
    SendEntry& first = entry(index);
    const bool is_executed = index != core_.sends.next.load(std::memory_order_relaxed);
    if (is_executed && is_complete(first, index)) {
      return static_cast<ibv_wc_status>(first.status);  // is_complete() may have failed it
    }
    QueuePairTransport* const known = transport();
    const ibv_qp_state state = core_.state();
    // What nobody can say anything of any more is flushed: whether it has arrived its program can't know either.
    if (state == IBV_QPS_ERR || state == IBV_QPS_SQE) {
      if (known != nullptr) {
        known->flush();
      }
      return core_.first_flush_status.exchange(IBV_WC_WR_FLUSH_ERR);
    }
    if (known == nullptr || !known->give_up()) {
      return std::nullopt;
    }
  }
}

void SendQueue::retire(uint32_t index, ibv_wc_status status) {
  if (index == core_.sends.next.load(std::memory_order_relaxed)) {
    core_.sends.next.store(index + 1, std::memory_order_relaxed);  // flushed before its turn came
  }
  core_.sends.done.store(index + 1, std::memory_order_relaxed);
  if (status != IBV_WC_SUCCESS && status != IBV_WC_WR_FLUSH_ERR && core_.state() == IBV_QPS_RTS) {
    if (core_.type == IBV_QPT_RC) {
      core_.enter_error(IBV_WC_WR_FLUSH_ERR);
    } else {
      core_.set_state_unless_failed(IBV_QPS_SQE);
    }
  }
}

void SendQueue::complete(CompletionQueue& cq) {
  if (quirks_ != nullptr) [[unlikely]] {
    quirks_->complete(*this, cq);
  } else {
    while (core_.sends.unfinished() != 0) {
      const uint32_t done = core_.sends.done.load(std::memory_order_relaxed);
      const SendEntry& first = entry(done);
      const bool has_room = cq.has_room();  // what nobody is told of needs none
      if ((has_room || !first.is_signaled) && is_over(first, done)) {
        if (first.is_signaled) {
          push_completion(cq, first, IBV_WC_SUCCESS);
        }
        core_.sends.done.store(done + 1, std::memory_order_relaxed);
        continue;
      }
      if (!has_room) {
        return;
      }
      const std::optional<ibv_wc_status> status = outcome(done);
      if (!status) {
        return;
      }
      if (first.is_signaled || *status != IBV_WC_SUCCESS) {
        push_completion(cq, first, *status);
      }
      retire(done, *status);
    }
  }
  // ReceiveQueue::flush() announces the event, once both queues are empty.
  if (core_.owes_fatal.load(std::memory_order_relaxed) && core_.sends.unfinished() == 0) [[unlikely]] {
    core_.queues.receive->mark_receiver(core_.receive_place);
    core_.process.request_service(*core_.queues.receive);  // which may not be polled any more
  }
}

void SendQueue::push_completion(CompletionQueue& cq, const SendEntry& entry, ibv_wc_status status) {
  if (status != IBV_WC_SUCCESS) [[unlikely]] {
    count_failed_send(status, core_.counts);
    explain_failure(entry, status);
  }
  ibv_wc& wc = cq.next();
  wc.wr_id = entry.wr_id;
  wc.status = status;
  wc.opcode = entry.wc_opcode;
  wc.vendor_err = vendor_error(status);
  wc.byte_len = entry.length;
  wc.imm_data = 0;
  wc.qp_num = core_.qpn;
  wc.src_qp = 0;
  wc.wc_flags = 0;
  wc.pkey_index = 0;
  wc.slid = 0;
  wc.sl = wc.dlid_path_bits = 0;
  cq.commit(status, false);
}

[[gnu::cold, gnu::noinline]] void SendQueue::explain_failure(const SendEntry& entry, ibv_wc_status status) {
  core_.when_noting([&](QueuePairNotes&) RINGBOLT_NOT_ANALYSED { explain_failed_send(core_, place(entry), status); });
}

bool SendQueue::has_untold_completion() {
  const uint32_t done = core_.sends.done.load(std::memory_order_relaxed);
  if (done == core_.sends.next.load(std::memory_order_relaxed)) {
    return false;
  }
  SendEntry& first = entry(done);
  const bool is_told = first.has_quirk && quirks_->is_told(done);
  return first.is_signaled && !is_told && first.phase != SendPhase::answering && is_complete(first, done);
}

void SendQueue::resume() {
  core_.first_flush_status = IBV_WC_WR_FLUSH_ERR;
  has_failed_send_ = false;
  run();
}

void SendQueue::reset() {
  core_.sends.reset();
  core_.first_flush_status = IBV_WC_WR_FLUSH_ERR;
  has_failed_send_ = false;
  windows_.reset();
  if (quirks_ != nullptr) {
    quirks_->reset();
  }
}

}  // namespace ringbolt::device
