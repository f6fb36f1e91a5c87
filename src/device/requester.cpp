// The send queue: posting, order, completion, retry. Hot path: post_send and progress_sends.

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/c_border.h"
#include "base/clock.h"
#include "base/in_place.h"
#include "base/lock_guard.h"
#include "device/address_handle.h"
#include "device/limits.h"
#include "device/queue_pair.h"
#include "device/vendor_error.h"
#include "profile/frames.h"

namespace ringbolt::device {
namespace {

uint32_t total_length(const ibv_send_wr& wr) {
  uint64_t length = 0;
  for (int i = 0; i < wr.num_sge; ++i) {
    length += wr.sg_list[i].length;
  }
  return static_cast<uint32_t>(std::min<uint64_t>(length, UINT32_MAX));
}

ibv_wc_opcode completion_opcode(ibv_wr_opcode opcode) {
  switch (opcode) {
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      return IBV_WC_RDMA_WRITE;
    case IBV_WR_RDMA_READ:
      return IBV_WC_RDMA_READ;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
      return IBV_WC_COMP_SWAP;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      return IBV_WC_FETCH_ADD;
    case IBV_WR_LOCAL_INV:
      return IBV_WC_LOCAL_INV;
    case IBV_WR_BIND_MW:
      return IBV_WC_BIND_MW;
    default:
      return IBV_WC_SEND;
  }
}

bool is_known(ibv_qp_type type, ibv_wr_opcode opcode) {
  switch (opcode) {
    case IBV_WR_SEND:
    case IBV_WR_SEND_WITH_IMM:
      return true;
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
    case IBV_WR_LOCAL_INV:
    case IBV_WR_BIND_MW:
      return type != IBV_QPT_UD;
    case IBV_WR_SEND_WITH_INV:
    case IBV_WR_RDMA_READ:
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      return type == IBV_QPT_RC;
    default:
      return false;
  }
}

}  // namespace

int QueuePair::check_request(const ibv_send_wr& wr) const {
  if (is_constrained_) {
    if (const int error = check_send_rules(wr)) {
      return error;
    }
  }
  if (!is_known(type_, wr.opcode) || wr.num_sge < 0 || static_cast<uint32_t>(wr.num_sge) > caps_.max_send_sge) {
    return EINVAL;
  }
  if ((wr.send_flags & IBV_SEND_INLINE) != 0) {
    const bool carries_data = wr.opcode != IBV_WR_RDMA_READ && wr.opcode != IBV_WR_ATOMIC_CMP_AND_SWP &&
                              wr.opcode != IBV_WR_ATOMIC_FETCH_AND_ADD;
    if (!carries_data || total_length(wr) > caps_.max_inline_data) {
      return EINVAL;
    }
  }
  if ((type_ == IBV_QPT_UD && wr.wr.ud.ah == nullptr) || (wr.opcode == IBV_WR_BIND_MW && wr.bind_mw.mw == nullptr)) {
    return EINVAL;
  }
  return 0;
}

int QueuePair::check_list(const ibv_send_wr* wr) const {
  for (uint32_t used = open_sends(); wr != nullptr; wr = wr->next) {
    used += messages_of(*wr);
    if (const int error = used > caps_.max_send_wr ? ENOMEM : check_request(*wr)) {
      return error;
    }
  }
  return 0;
}

SendRequest QueuePair::describe(const ibv_send_wr& wr) const {
  SendRequest request;  // NOLINT: see its declaration
  const bool becomes_message =
      is_constrained_ && wr.opcode == IBV_WR_RDMA_WRITE && context_.port().profile.knobs.writes_into_stream;
  request.opcode = becomes_message ? IBV_WR_SEND : wr.opcode;
  request.immediate = 0;
  request.is_inline = (wr.send_flags & IBV_SEND_INLINE) != 0;
  request.is_fenced = (wr.send_flags & IBV_SEND_FENCE) != 0;
  request.is_solicited = (wr.send_flags & IBV_SEND_SOLICITED) != 0;
  request.stays_in_place = (wr.send_flags & base::kStaysInPlace) != 0;
  request.pieces = wr.sg_list;
  request.pieces_count = static_cast<uint32_t>(wr.num_sge);
  request.length = total_length(wr);
  // Only the fields that the opcode defines are read: programs leave the others uninitialised.
  switch (wr.opcode) {
    case IBV_WR_SEND_WITH_IMM:
      request.immediate = wr.imm_data;
      break;
    case IBV_WR_SEND_WITH_INV:
    case IBV_WR_LOCAL_INV:
      request.immediate = wr.invalidate_rkey;
      break;
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      request.immediate = wr.imm_data;
      [[fallthrough]];
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_READ:
      request.remote_address = wr.wr.rdma.remote_addr;
      request.key = wr.wr.rdma.rkey;
      break;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      request.remote_address = wr.wr.atomic.remote_addr;
      request.key = wr.wr.atomic.rkey;
      request.compare_or_add = wr.wr.atomic.compare_add;
      request.swap = wr.wr.atomic.swap;
      break;
    case IBV_WR_BIND_MW:
      request.key = wr.bind_mw.bind_info.mr == nullptr ? 0 : wr.bind_mw.bind_info.mr->lkey;
      request.remote_address = wr.bind_mw.bind_info.addr;
      request.window_length = wr.bind_mw.bind_info.length;
      request.window_access = wr.bind_mw.bind_info.mw_access_flags;
      // Another object's key would be bound in its place: 0 is nobody's.
      request.window_key = ((wr.bind_mw.rkey ^ wr.bind_mw.mw->handle) & ~0xffU) == 0 ? wr.bind_mw.rkey : 0;
      request.is_type2_window = wr.bind_mw.mw->type == IBV_MW_TYPE_2;
      break;
    default:
      break;
  }
  if (type_ == IBV_QPT_UD) {
    const AddressHandle& target = AddressHandle::of(wr.wr.ud.ah);
    request.remote_gid = target.gid;
    request.source_gid = target.source_gid;
    request.source_gid_index = target.source_gid_index;
    request.target_gid_index = target.target_gid_index;
    request.is_loopback = target.is_loopback;
    request.is_remote = target.is_remote;
    request.traffic_class = target.attributes.grh.traffic_class;
    request.remote_qpn = wr.wr.ud.remote_qpn & 0xffffffU;
    // A Q_Key with the high bit set stands for the sender's own.
    request.qkey = (wr.wr.ud.remote_qkey & 0x80000000U) != 0 ? send_attributes().qkey : wr.wr.ud.remote_qkey;
  }
  return request;
}

void QueuePair::store(uint32_t index, const SendRequest& request) {
  const uint32_t slot = index & entry_mask_;
  ibv_sge* pieces = send_.request_pieces.data() + size_t{slot} * caps_.max_send_sge;
  SendRequest& stored = send_.requests[slot];
  stored = request;
  stored.pieces = pieces;
  if (!request.is_inline) {
    std::copy_n(request.pieces, request.pieces_count, pieces);
    return;
  }
  // Inline data is the program's again once the post returns.
  std::byte* data = send_.request_inline.data() + size_t{slot} * caps_.max_inline_data;
  std::byte* end = data;
  for (uint32_t i = 0; i < request.pieces_count; ++i) {
    if (request.pieces[i].length != 0) {
      std::memcpy(end, reinterpret_cast<const void*>(request.pieces[i].addr), request.pieces[i].length);
      end += request.pieces[i].length;
    }
  }
  pieces[0] = {reinterpret_cast<uint64_t>(data), request.length, 0};
  stored.pieces_count = request.length == 0 ? 0 : 1;
}

// Inline: a call costs a nanosecond of the thirty that a short WRITE takes.
[[gnu::always_inline]] inline int QueuePair::enqueue(const ibv_send_wr& wr, ibv_qp_state state, bool has_fates) {
  const uint32_t tail = tail_.load(std::memory_order_relaxed);
  SendEntry& entry = send_.entries[tail & entry_mask_];
  entry = {};
  entry.wr_id = wr.wr_id;
  entry.wc_opcode = completion_opcode(wr.opcode);
  entry.is_signaled = signals_all_ || (wr.send_flags & IBV_SEND_SIGNALED) != 0;
  const SendRequest request = describe(wr);
  entry.length = request.length;
  const bool is_next = next_.load(std::memory_order_relaxed) == tail;
  if (has_fates) {
    store(tail, request);
    if (!ordain(tail)) {
      return ENOMEM;
    }
  } else if (is_next && state == IBV_QPS_RTS && !send_.has_failed_send && execute(entry, request)) {
    if (entry.phase == SendPhase::answering || entry.phase == SendPhase::wired) {
      store(tail, request);
    }
    next_.store(tail + 1, std::memory_order_relaxed);
  } else {
    store(tail, request);
  }
  if (counts_frames_) {
    send_.frames += profile::frames_of(request.length);
  }
  if (entry.is_signaled) {
    awaited_.store(tail + 1, std::memory_order_relaxed);
  }
  tail_.store(tail + 1, std::memory_order_relaxed);
  return 0;
}

int QueuePair::enqueue_pieces(const ibv_send_wr& wr, ibv_qp_state state, bool has_fates) {
  const uint32_t first = tail_.load(std::memory_order_relaxed);
  const uint64_t line_free_ns = send_.line_free_ns;
  for (int i = 0; i < wr.num_sge; ++i) {
    ibv_send_wr one = wr;
    one.sg_list = wr.sg_list + i;
    one.num_sge = 1;
    if (const int error = enqueue(one, state, has_fates)) {
      take_back(first, line_free_ns);  // only with fates, and then none of them is executed yet
      return error;
    }
  }
  return 0;
}

int QueuePair::post_send(ibv_send_wr* wr, ibv_send_wr** bad) try {
  const base::LockGuard guard(send_lock_);
  const ibv_qp_state state = state_.load(std::memory_order_relaxed);
  int error = state == IBV_QPS_RESET || state == IBV_QPS_INIT || state == IBV_QPS_RTR ? EINVAL : 0;
  ibv_send_wr* unnamed = nullptr;
  if (bad == nullptr) {
    error = error == 0 ? check_list(wr) : error;
    for (const ibv_send_wr* one = wr; one != nullptr && error == 0; one = one->next) {
      error = suffer_send();
    }
    bad = &unnamed;
  }
  const uint32_t first = tail_.load(std::memory_order_relaxed);
  const uint64_t line_free_ns = send_.line_free_ns;
  const bool has_fates = completes_early_ || faults_.has(fault::Subject::message);
  for (; wr != nullptr; wr = wr->next) {
    const uint32_t messages = messages_of(*wr);
    if (error == 0) {
      const bool is_full =
          open_sends() + messages > caps_.max_send_wr || unfinished_sends() + messages > entry_mask_ + 1;
      error = is_full ? ENOMEM : check_request(*wr);
      error = error == 0 && bad != &unnamed ? suffer_send() : error;
    }
    if (error == 0) [[likely]] {
      error = messages == 1 ? enqueue(*wr, state, has_fates) : enqueue_pieces(*wr, state, has_fates);
      if (error != 0 && bad == &unnamed) {
        take_back(first, line_free_ns);
      }
    }
    if (error != 0) {
      *bad = error < 0 ? *bad : wr;
      break;
    }
  }
  if (has_fates) {
    run_queue();
  }
  push_out();
  // More sends unfinished than the completion queue holds: somebody must see whether it overflows.
  const uint32_t unfinished = tail_.load(std::memory_order_relaxed) - done_.load(std::memory_order_relaxed);
  // What may get lost on a network is repeated whether the program polls or not.
  const bool has_timer = wire_deadline_ns_.load(std::memory_order_relaxed) != UINT64_MAX;
  if (has_queued_sends() || queues_.send->is_armed() || unfinished > queues_.send->capacity() || has_timer) {
    process_.request_service();
  }
  return error;
} catch (...) {
  return base::caught_errno();  // to name the request as well would cost the hot path two registers
}

void QueuePair::run_queue() {
  while (has_queued_sends() && !send_.has_failed_send && state_.load(std::memory_order_relaxed) == IBV_QPS_RTS) {
    const uint32_t next = next_.load(std::memory_order_relaxed);
    SendEntry& entry = send_.entries[next & entry_mask_];
    const Turn turn = entry.has_fate ? take_turn(next) : Turn::execute;
    if (turn == Turn::wait || (turn == Turn::execute && !execute(entry, send_.requests[next & entry_mask_]))) {
      break;
    }
    next_.store(next + 1, std::memory_order_relaxed);
  }
  push_out();
}

void QueuePair::push_out() {
  if (Connection* connection = connection_.load(std::memory_order_relaxed)) {
    ring_peer(*connection);
  } else if (requesting() != nullptr) {
    send_wired();
  } else if (send_.out) {
    send_requests();
  }
}

void QueuePair::progress_sends(CompletionQueue& cq) {
  const base::LockGuard guard(send_lock_);
  if (connection_.load(std::memory_order_relaxed) == nullptr) [[unlikely]] {
    if (requesting() != nullptr) {
      take_answers();
    }
    if (send_.out) [[unlikely]] {
      send_unsent();
    }
  }
  if (!has_unfinished_sends()) {
    return;
  }
  if (Connection* connection = connection_.load(std::memory_order_relaxed);
      connection != nullptr && connection->sender) {
    connection->sender->take_consumed(connection->heard_consumed.load(std::memory_order_acquire));
  }
  complete_sends(cq);
  if (has_queued_sends()) {
    run_queue();
    complete_sends(cq);
  }
}

void QueuePair::advance_sends() {
  if (send_lock_.try_lock()) {
    const base::LockGuard guard(send_lock_, base::kAdoptLock);
    run_queue();
  }
}

bool QueuePair::is_complete(SendEntry& entry, uint32_t index) {
  if (entry.phase == SendPhase::failed) {
    return true;
  }
  if (entry.phase == SendPhase::wired) {
    return requesting()->is_complete(entry.operation) && (type_ == IBV_QPT_RC || !send_.out);  // nobody answers UC
  }
  if (entry.phase == SendPhase::answering) {
    return finish_answer(entry, send_.requests[index & entry_mask_]);
  }
  Connection* connection = connection_.load(std::memory_order_relaxed);
  if (connection == nullptr || !connection->sender) {
    return !send_.out;  // datagrams are gone once they are on their way, and so is what nobody can answer for
  }
  if (connection->sender->is_done(entry.end_slot)) {
    return true;
  }
  connection->sender->refresh();
  if (connection->sender->is_done(entry.end_slot)) {
    return true;
  }
  return type_ == IBV_QPT_UC && connection->peer_state.load(std::memory_order_relaxed) != PeerState::present &&
         connection->sender->refusal() == link::Refusal::none;
}

void QueuePair::complete_sends(CompletionQueue& cq) {
  if (completes_early_ && !cq.is_in_service()) {  // a depth that nobody polls fills up the same way each time
    tell_early(cq);
  }
  while (has_unfinished_sends() && cq.has_room()) {
    const uint32_t done = done_.load(std::memory_order_relaxed);
    SendEntry& entry = send_.entries[done & entry_mask_];
    const bool is_executed = done != next_.load(std::memory_order_relaxed);
    const ibv_qp_state state = state_.load(std::memory_order_relaxed);
    auto status = static_cast<ibv_wc_status>(entry.status);
    if (is_executed && is_complete(entry, done)) {
      status = static_cast<ibv_wc_status>(entry.status);
    } else if (state == IBV_QPS_ERR || state == IBV_QPS_SQE) {
      if (Connection* connection = connection_.load(std::memory_order_relaxed);
          state == IBV_QPS_ERR && connection != nullptr && connection->sender) {
        connection->sender->end();
      }
      status = first_flush_status_.exchange(IBV_WC_WR_FLUSH_ERR);
      send_.answers_pending = 0;
    } else {
      Connection* connection = connection_.load(std::memory_order_relaxed);
      if (connection == nullptr && requesting() == nullptr) {
        return;
      }
      const ibv_wc_status refusal = requesting() != nullptr ? wired_failure() : refusal_status(*connection);
      if (refusal == IBV_WC_SUCCESS) {
        return;
      }
      enter_error(refusal);
      if (connection != nullptr && connection->peer_state.load(std::memory_order_relaxed) == PeerState::died) {
        note_peer_died();
      }
      continue;
    }
    if (faults_.has(fault::Subject::completion) && status == IBV_WC_SUCCESS && !suffers_fault(done, status)) {
      return;  // not yet
    }
    if (!is_executed) {
      next_.store(done + 1, std::memory_order_relaxed);
    }
    const SendFate* fate = known_fate(done);
    if (fate == nullptr || !fate->is_told) {
      if ((entry.is_signaled || status != IBV_WC_SUCCESS) && (fate == nullptr || !fate->is_missing)) {
        push_send(cq, entry, status);
      }
      count_out(entry);
    } else if (status != IBV_WC_SUCCESS) {
      count_undelivered(entry);
    }
    if (fate != nullptr || completes_early_) {
      forget_staged(done);
    }
    done_.store(done + 1, std::memory_order_relaxed);
    if (status != IBV_WC_SUCCESS && status != IBV_WC_WR_FLUSH_ERR && state == IBV_QPS_RTS) {
      if (type_ == IBV_QPT_RC) {
        enter_error(IBV_WC_WR_FLUSH_ERR);
      } else {
        set_state(IBV_QPS_SQE);
      }
    }
  }
  if (!has_unfinished_sends() && owes_fatal_.load(std::memory_order_relaxed)) [[unlikely]] {
    process_.request_service();  // the queue of the receives may not be polled any more
  }
}

ibv_wc_status QueuePair::refusal_status(const Connection& connection) const {
  if (type_ != IBV_QPT_RC) {
    return connection.sender && connection.sender->refusal() == link::Refusal::memory ? IBV_WC_REM_OP_ERR
                                                                                      : IBV_WC_SUCCESS;
  }
  if (connection.sender) {
    switch (connection.sender->refusal()) {
      case link::Refusal::invalid_request:
        return IBV_WC_REM_INV_REQ_ERR;
      case link::Refusal::access:
        return IBV_WC_REM_ACCESS_ERR;
      case link::Refusal::operation:
      case link::Refusal::memory:
        return IBV_WC_REM_OP_ERR;
      case link::Refusal::none:
        break;
    }
  }
  // Of a peer that left in order a card learns nothing: its retries have to run out (check_timers). Programs rely on
  // it: they leave when their counts are full, and whose peer left first must not find a failure before those
  // completions.
  const PeerState peer = connection.peer_state.load(std::memory_order_relaxed);
  return peer == PeerState::died ? IBV_WC_RETRY_EXC_ERR : IBV_WC_SUCCESS;
}

void QueuePair::push_send(CompletionQueue& cq, const SendEntry& entry, ibv_wc_status status) {
  if (status != IBV_WC_SUCCESS) [[unlikely]] {
    count_failed_send(status, counts_);
  }
  ibv_wc& wc = cq.next();
  wc.wr_id = entry.wr_id;
  wc.status = status;
  wc.opcode = entry.wc_opcode;
  wc.vendor_err = vendor_error(status);
  wc.byte_len = entry.length;
  wc.imm_data = 0;
  wc.qp_num = qpn_;
  wc.src_qp = 0;
  wc.wc_flags = 0;
  wc.pkey_index = 0;
  wc.slid = 0;
  wc.sl = wc.dlid_path_bits = 0;
  cq.commit(status, false);
}

}  // namespace ringbolt::device
