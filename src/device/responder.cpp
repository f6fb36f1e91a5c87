// Incoming messages: matching with receives, placement, completion. Hot path: progress_receives.

#include <algorithm>
#include <cstring>
#include <new>

#include "base/clock.h"
#include "base/in_place.h"
#include "base/lock_guard.h"
#include "device/limits.h"
#include "device/prefetch.h"
#include "device/queue_pair.h"
#include "device/vendor_error.h"

namespace ringbolt::device {
namespace {

// One look takes at most so many slots, so that one busy lane does not starve the others of a completion queue.
constexpr int kMaxSlotsAtOnce = 64;
// A producer is told how far we are when the lane runs empty, with a message of ours to it, or after so much.
constexpr uint32_t kTellAfterBytes = link::kLaneDataBytes / 8;
constexpr uint32_t kTellAfterSlots = link::kLaneSlots / 4;

bool takes_receive(link::SlotKind kind) {
  return kind == link::SlotKind::send || kind == link::SlotKind::send_shared || kind == link::SlotKind::write_done ||
         kind == link::SlotKind::datagram;
}

constexpr unsigned kWithGrh = IBV_WC_GRH;
constexpr unsigned kWithImmediate = IBV_WC_WITH_IMM;
constexpr unsigned kWithInvalidate = IBV_WC_WITH_INV;

// The 40 bytes before a datagram: a Global Routing Header (InfiniBand Architecture Specification 1.4, 8.3).
void write_grh(std::byte* grh, const ibv_gid& source, const ibv_gid& target, uint32_t payload) {
  constexpr uint8_t kVersion6 = 0x60;
  constexpr uint8_t kIbaTransport = 0x1b;
  std::memset(grh, 0, kGrhBytes);
  grh[0] = std::byte{kVersion6};
  grh[4] = static_cast<std::byte>(payload >> 8U);
  grh[5] = static_cast<std::byte>(payload);
  grh[6] = std::byte{kIbaTransport};
  grh[7] = std::byte{64};
  std::memcpy(grh + 8, source.raw, sizeof source.raw);
  std::memcpy(grh + 24, target.raw, sizeof target.raw);
}

}  // namespace

void QueuePair::progress_receives(CompletionQueue& cq) {
  const base::LockGuard guard(receive_lock_);
  const auto send_unsent_answers = [this]() RINGBOLT_REQUIRES(receive_lock_) {
    if (has_unsent_answers_.load(std::memory_order_relaxed)) {
      send_answers(base::now_ns());
    }
  };
  const ibv_qp_state state = state_.load(std::memory_order_relaxed);
  switch (state) {
    case IBV_QPS_ERR:
      send_unsent_answers();  // a refusal is the last that the peer hears
      // The send that failed comes first: programs report the first bad status they see.
      if (queues_.send.get() != &cq || !has_unfinished_sends()) {
        flush_receives(cq);
      }
      return;
    case IBV_QPS_RESET:
    case IBV_QPS_INIT:
      return;
    default:
      break;
  }
  if (is_cut_off() || (faults_.has(fault::Subject::state) && is_coalescing())) {
    return send_unsent_answers();
  }
  if (diverts_unreceived_) {
    deliver_parked(cq);
    if (state_.load(std::memory_order_relaxed) == IBV_QPS_ERR) {
      return;
    }
  }
  if (responding() != nullptr) {
    serve_requests(cq);
    return;
  }
  if (inboxes_ != nullptr && type_ == IBV_QPT_UD) {
    receive_datagrams(cq);
  }
  if (Connection* only = connection_.load(std::memory_order_relaxed)) {
    if (only->receiver.has_slot()) {
      note_established();
    }
    drain(cq, *only);
  } else {
    for (const auto& [qpn, connection] : receive_connections()) {
      drain(cq, *connection);
    }
  }
}

void QueuePair::note_established() {
  if (!receive_.is_established && state_.load(std::memory_order_relaxed) == IBV_QPS_RTR) {
    receive_.is_established = true;
    announce(IBV_EVENT_COMM_EST);
  }
}

void QueuePair::drain(CompletionQueue& cq, Connection& connection) {
  link::LaneConsumer& lane = connection.receiver;
  link::SlotHeader header;
  bool is_stuck = false;
  bool ran_empty = false;
  int taken = 0;
  for (; taken < kMaxSlotsAtOnce; ++taken) {
    if (!lane.peek(header)) {
      ran_empty = true;  // for this look: the program may act on it, and be gone before the next one
      break;
    }
    if (takes_receive(header.kind) && !cq.has_room()) {
      break;  // others go on: a program that spins on its memory may leave its queue full
    }
    connection.heard_consumed.store(header.consumed, std::memory_order_release);
    if (!receive_slot(cq, connection, header)) {
      is_stuck = true;  // what came before must not wait with the one that can't be received yet
      break;
    }
    connection.untold_bytes += header.length;
  }
  if (taken == kMaxSlotsAtOnce && cq.is_armed()) {
    process_.request_service();  // what is left was rung for already, and what was taken need not have raised an event
  }
  const bool is_due = connection.untold_bytes >= kTellAfterBytes || lane.untold() >= kTellAfterSlots;
  if (lane.has_news() && (is_due || is_stuck || ran_empty || !cq.has_room() || !lane.has_slot())) {
    connection.untold_bytes = 0;
    if (lane.tell() && connection.remote != nullptr) {
      connection.remote->peer().ring();
    }
  }
  if (type_ == IBV_QPT_RC && connection.peer_state.load(std::memory_order_relaxed) == PeerState::died &&
      !lane.has_slot() && state_.load(std::memory_order_relaxed) != IBV_QPS_ERR) {
    enter_error(IBV_WC_RETRY_EXC_ERR);
    note_peer_died();
  }
}

bool QueuePair::receive_slot(CompletionQueue& cq, Connection& connection, const link::SlotHeader& header) {
  const bool is_datagram = header.kind == link::SlotKind::datagram;
  if (is_datagram != (type_ == IBV_QPT_UD)) {
    connection.receiver.release();  // not for this kind of queue pair: no peer of ours sends it
    return true;
  }
  if (diverts_unreceived_ && divert(connection, header)) {
    return true;
  }
  switch (header.kind) {
    case link::SlotKind::send:
      return receive_message(cq, connection, header);
    case link::SlotKind::send_shared:
      return receive_shared(cq, connection, header);
    case link::SlotKind::write_done:
      return receive_written(cq, connection, header);
    case link::SlotKind::datagram:
      return receive_datagram(cq, connection, header);
    case link::SlotKind::write:
      return serve_write(connection, header);
    case link::SlotKind::read:
      return serve_read(connection);
    case link::SlotKind::atomic:
      return serve_atomic(connection, header);
    case link::SlotKind::refused:
      connection.receiver.release();
      counts_.note((header.flags & link::kSlotInvalidRequest) != 0 ? kSharedReceiveError : kSharedReceiveAccess);
      enter_error(IBV_WC_WR_FLUSH_ERR);
      announce((header.flags & link::kSlotInvalidRequest) != 0 ? IBV_EVENT_QP_REQ_ERR : IBV_EVENT_QP_ACCESS_ERR);
      return false;
    default:
      connection.receiver.release();
      return true;
  }
}

bool QueuePair::take_posted() {
  if (receive_.current.is_open) {
    return true;
  }
  if (queues_.shared != nullptr) {
    const bool is_awaited = queues_.receive->is_armed();
    if (!queues_.shared->take(receive_.current.wr_id, receive_.current.wanted.data(), receive_.current.wanted_count,
                              is_awaited)) {
      return false;
    }
  } else {
    if (receive_.ring.is_empty()) {
      return false;
    }
    const ReceiveRing::Receive receive = receive_.ring.front();
    receive_.current.wr_id = receive.wr_id;
    receive_.current.wanted_count = static_cast<uint32_t>(receive.pieces.size());
    std::ranges::copy(receive.pieces, receive_.current.wanted.begin());
    receive_.ring.pop();
  }
  receive_.current.is_open = true;
  receive_.current.received = 0;
  receive_.current.pieces.count = 0;
  if (counts_frames_) {
    take_receive_frames();
  }
  return true;
}

bool QueuePair::open_receive(Connection& connection) {
  if (receive_.current.is_open) {
    return true;
  }
  if (connection.receivable == 0 || !take_posted()) {
    if (type_ != IBV_QPT_UD && connection.receiver.is_ended()) {
      drop_unreceived(connection);
    } else {
      note_no_receive(connection);
    }
    return false;
  }
  if (connection.receivable != UINT32_MAX) {
    --connection.receivable;
  }
  connection.receiver.note_receive_posted();
  return true;
}

void QueuePair::note_no_receive(Connection& connection) {
  // UC just waits: nothing is turned away, and nobody told.
  if (connection.receiver.note_waits_for_receive() && type_ == IBV_QPT_RC) {
    counts_.note(kSharedOutOfBuffer);
    counts_.note(kSharedSentRnr);  // the note is what an RNR NAK is on a wire
  }
}

void QueuePair::limit_to_posted(Connection& connection) {
  if (type_ != IBV_QPT_UD && connection.receivable == UINT32_MAX && connection.receiver.has_slot() &&
      connection.receiver.is_ended()) {
    connection.receivable = receive_.ring.count();
  }
}

void QueuePair::drop_unreceived(Connection& connection) {
  connection.receivable = 0;
  link::SlotHeader header;
  for (uint32_t i = 0; i < link::kLaneSlots && connection.receiver.peek(header); ++i) {
    if (type_ == IBV_QPT_UC && takes_receive(header.kind) && (header.flags & link::kSlotLast) != 0) {
      counts_.note(kSharedOutOfBuffer);
    }
    connection.receiver.release();
  }
}

bool QueuePair::begin_message(CompletionQueue& cq, Connection& connection, uint32_t total) {
  if (!open_receive(connection)) {
    return false;
  }
  receive_.current.pieces.count = 0;  // not all of it: clearing 256 bytes costs more than a short message
  receive_.current.pieces.arena = {};
  if (!translate({receive_.current.wanted.data(), receive_.current.wanted_count}, false, IBV_ACCESS_LOCAL_WRITE,
                 receive_.current.pieces)) {
    return fail_receive(cq, connection, IBV_WC_LOC_PROT_ERR, link::Refusal::operation);
  }
  ibv_wc_status judgement = is_constrained_ ? judge_receive(total) : IBV_WC_SUCCESS;
  if (judgement == IBV_WC_SUCCESS && faults_.has(fault::Subject::receive)) {
    judgement = receive_fault();
  }
  if (judgement != IBV_WC_SUCCESS) {
    return fail_receive(cq, connection, judgement,
                        judgement == IBV_WC_LOC_LEN_ERR ? link::Refusal::invalid_request : link::Refusal::operation);
  }
  if (total > receive_.current.pieces.length()) {
    return fail_receive(cq, connection, IBV_WC_LOC_LEN_ERR, link::Refusal::invalid_request);
  }
  return true;
}

bool QueuePair::receive_message(CompletionQueue& cq, Connection& connection, const link::SlotHeader& header) {
  link::LaneConsumer& lane = connection.receiver;
  const bool is_inline = header.length <= link::kInlineBytes;
  if ((header.flags & link::kSlotFirst) != 0) {
    const uint32_t total = is_inline ? header.length : lane.fields<link::SendFields>().total;
    if (receive_.current.received == 0 && !begin_message(cq, connection, total)) {
      return false;
    }
  }
  const std::byte* data =
      is_inline && (header.flags & link::kSlotFirst) != 0 ? lane.inline_body() : lane.payload(header);
  // The lengths come from another process, which may have said something else in the first chunk.
  if (!receive_.current.is_open || data == nullptr ||
      receive_.current.received + uint64_t{header.length} > receive_.current.pieces.length()) {
    return fail_receive(cq, connection, IBV_WC_LOC_LEN_ERR, link::Refusal::invalid_request);
  }
  scatter(receive_.current.received, data, header.length);
  receive_.current.received += header.length;
  if ((header.flags & link::kSlotLast) != 0) {
    if ((header.flags & link::kSlotInvalidate) != 0 && !invalidate_window(process_, qpn_, header.immediate)) {
      fail_receive(cq, connection, IBV_WC_LOC_ACCESS_ERR, link::Refusal::access);
      announce(IBV_EVENT_QP_ACCESS_ERR);
      return false;
    }
    count_message(header, receive_.current.received);
    complete_receive(cq, connection.remote_qpn, header, IBV_WC_RECV, receive_.current.received);
  }
  lane.release();
  return true;
}

bool QueuePair::receive_shared(CompletionQueue& cq, Connection& connection, const link::SlotHeader& header) {
  const auto fields = connection.receiver.fields<link::SharedFields>();
  if (connection.remote == nullptr) {
    return false;
  }
  const auto found = connection.remote->arenas().look(fields.arena_id, fields.offset, fields.total);
  if (found.is_awaited) {
    return false;
  }
  const std::byte* const data = found.data;
  if (data == nullptr) {  // it could not be mapped here, or is freed already
    return open_receive(connection) && fail_receive(cq, connection, IBV_WC_LOC_QP_OP_ERR, link::Refusal::memory);
  }
  if (!begin_message(cq, connection, fields.total)) {
    return false;
  }
  if ((header.flags & link::kSlotInvalidate) != 0 && !invalidate_window(process_, qpn_, header.immediate)) {
    fail_receive(cq, connection, IBV_WC_LOC_ACCESS_ERR, link::Refusal::access);
    announce(IBV_EVENT_QP_ACCESS_ERR);
    return false;
  }
  constexpr unsigned kUsesTheFields = link::kSlotImmediate | link::kSlotInvalidate;
  const bool stays = (header.flags & link::kSlotStays) != 0 && (header.flags & kUsesTheFields) == 0 &&
                     receives_in_place_.load(std::memory_order_relaxed) && keep_in_place(connection, fields.arena_id);
  if (stays) {
    fetch(data, fields.total);
    scatter(0, data, std::min(fields.total, base::kHeadBytes));
  } else {
    scatter(0, data, fields.total);
  }
  count_message(header, fields.total);
  complete_receive(cq, connection.remote_qpn, header, IBV_WC_RECV, fields.total, stays ? data : nullptr);
  connection.receiver.release();
  return true;
}

/// The program will read there for as long as it likes. False: the message has to be copied, since there is no memory
/// to note that, or the peer has freed the arena.
bool QueuePair::keep_in_place(Connection& connection, uint32_t arena_id) const {
  auto& held = connection.held_arenas;
  if (std::ranges::any_of(held, [arena_id](const auto& one) { return one.first == arena_id; })) [[likely]] {
    return true;
  }
  try {
    auto segment = connection.remote->arenas().hold(arena_id);
    if (segment == nullptr) {
      return false;
    }
    held.emplace_back(arena_id, std::move(segment));
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

bool QueuePair::receive_written(CompletionQueue& cq, Connection& connection, const link::SlotHeader& header) {
  if (!open_receive(connection)) {
    return false;
  }
  complete_receive(cq, connection.remote_qpn, header, IBV_WC_RECV_RDMA_WITH_IMM,
                   connection.receiver.fields<link::RemoteFields>().total);
  connection.receiver.release();
  return true;
}

bool QueuePair::receive_datagram(CompletionQueue& cq, Connection& connection, const link::SlotHeader& header) {
  link::LaneConsumer& lane = connection.receiver;
  const auto fields = lane.fields<link::DatagramFields>();
  const bool is_inline = header.length <= link::kInlineBytes - sizeof fields;
  const std::byte* data = is_inline ? lane.inline_body() + sizeof fields : lane.payload(header);
  const auto& own = context_.port().known_gids;
  const auto& sources = fields.is_loopback != 0 ? own : context_.port().peer_gids;
  const bool is_wanted = data != nullptr && header.length <= kDatagramBytes &&
                         fields.qkey == receive_attributes().qkey && fields.source_gid_index < sources.size() &&
                         fields.target_gid_index < own.size();
  const bool has_immediate = (header.flags & link::kSlotImmediate) != 0;
  count_received(counts_.second(),
                 {1, kPacketWords + kDethWords + (has_immediate ? kImmediateWords : 0) + (header.length + 3) / 4});
  const bool is_taken = is_wanted && open_receive(connection);
  if (!is_taken) {
    counts_.note(kSharedRcvDrops);
    if (is_wanted) {
      counts_.note(kSharedOutOfBuffer);
    }
  }
  if (is_taken) {
    if (!translate({receive_.current.wanted.data(), receive_.current.wanted_count}, false, IBV_ACCESS_LOCAL_WRITE,
                   receive_.current.pieces)) {
      return fail_receive(cq, connection, IBV_WC_LOC_PROT_ERR, link::Refusal::operation);
    }
    if (kGrhBytes + header.length > receive_.current.pieces.length()) {
      return fail_receive(cq, connection, IBV_WC_LOC_LEN_ERR, link::Refusal::invalid_request);
    }
    std::array<std::byte, kGrhBytes> grh;
    write_grh(grh.data(), sources[fields.source_gid_index], own[fields.target_gid_index], header.length);
    scatter(0, grh.data(), kGrhBytes);
    scatter(kGrhBytes, data, header.length);
    complete_receive(cq, connection.remote_qpn, header, IBV_WC_RECV, kGrhBytes + header.length);
  }
  lane.release();  // a datagram that nobody waits for is lost
  return true;
}

/// A SEND that came through memory.
void QueuePair::count_message(const link::SlotHeader& header, uint32_t length) {
  const bool has_word = (header.flags & (link::kSlotImmediate | link::kSlotInvalidate)) != 0;
  count_received(counts_.second(), load_of(length, mtu_shift_, has_word ? kImmediateWords : 0));
}

void QueuePair::complete_receive(CompletionQueue& cq, uint32_t source_qpn, const link::SlotHeader& header,
                                 ibv_wc_opcode opcode, uint32_t length, const std::byte* in_place) {
  const bool has_immediate = (header.flags & link::kSlotImmediate) != 0;
  const bool invalidates = (header.flags & link::kSlotInvalidate) != 0;
  note_traffic();
  ibv_wc& wc = cq.next();
  wc.wr_id = receive_.current.wr_id;
  wc.status = IBV_WC_SUCCESS;
  wc.opcode = opcode;
  wc.vendor_err = 0;
  wc.byte_len = length;
  wc.imm_data = has_immediate || invalidates ? header.immediate : 0;
  wc.qp_num = qpn_;
  wc.src_qp = source_qpn;
  wc.wc_flags = (type_ == IBV_QPT_UD ? kWithGrh : 0U) | (has_immediate ? kWithImmediate : 0U) |
                (invalidates ? kWithInvalidate : 0U);
  if (in_place != nullptr) {
    wc.wc_flags |= base::kReceivedInPlace;
    base::put_place(wc, in_place);
  }
  wc.pkey_index = 0;
  wc.slid = 0;
  wc.sl = wc.dlid_path_bits = 0;
  receive_.current.is_open = false;
  receive_.current.received = 0;
  counts_.second().add(kLaneMessages, 1);
  cq.commit(IBV_WC_SUCCESS, (header.flags & link::kSlotSolicited) != 0);
}

void QueuePair::push_failed_receive(CompletionQueue& cq, uint64_t wr_id, ibv_wc_status status) {
  ibv_wc& wc = cq.next();
  wc = {};
  wc.wr_id = wr_id;
  wc.status = status;
  wc.opcode = IBV_WC_RECV;
  wc.vendor_err = vendor_error(status);
  wc.qp_num = qpn_;
  count_failed_receive(status, counts_);
  cq.commit(status, true);
}

bool QueuePair::fail_receive(CompletionQueue& cq, Connection& connection, ibv_wc_status status, link::Refusal refusal) {
  if (receive_.current.is_open) {
    receive_.current.is_open = false;
    receive_.current.received = 0;
    push_failed_receive(cq, receive_.current.wr_id, status);
  }
  if (type_ == IBV_QPT_RC || refusal == link::Refusal::memory) {
    connection.receiver.refuse(refusal);
  }
  if (connection.receiver.tell() && connection.remote != nullptr) {
    connection.remote->peer().ring();
  }
  enter_error(IBV_WC_WR_FLUSH_ERR);
  return false;
}

void QueuePair::flush_receives(CompletionQueue& cq) {
  if (receive_.current.is_open && cq.has_room()) {
    receive_.current.is_open = false;
    push_failed_receive(cq, receive_.current.wr_id, IBV_WC_WR_FLUSH_ERR);
  }
  while (!receive_.ring.is_empty() && cq.has_room()) {
    const uint64_t wr_id = receive_.ring.front().wr_id;
    receive_.ring.pop();
    receive_.frames = 0;  // nothing is posted any more but to be flushed
    push_failed_receive(cq, wr_id, IBV_WC_WR_FLUSH_ERR);
  }
  if (queues_.shared != nullptr && !receive_.has_flushed_last) {
    receive_.has_flushed_last = true;
    announce(IBV_EVENT_QP_LAST_WQE_REACHED);
  }
  if (receive_.ring.is_empty() && !has_unfinished_sends() && owes_fatal_.exchange(false)) {
    announce(IBV_EVENT_QP_FATAL);
  }
}

}  // namespace ringbolt::device
