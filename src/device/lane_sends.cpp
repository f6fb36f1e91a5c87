// SENDs through a lane. Hot path.

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "device/failure_notes.h"
#include "device/lane_requester.h"
#include "device/limits.h"
#include "device/send_queue.h"

namespace ringbolt::device {
namespace {

// Long messages go through the lane in chunks, so that both sides copy at the same time: short ones while the message
// is short, since the last chunk is copied by the receiver alone (docs/performance.md).
// In bytes, all four. Measured: docs/performance.md.
constexpr uint32_t kShortMessageBytes = 128U << 10U;
constexpr uint32_t kShortChunkBytes = 8U << 10U;
constexpr uint32_t kLongChunkBytes = 16U << 10U;
// From here on one copy out of shared memory beats two through the lane.
constexpr uint32_t kLeastSharedBytes = 2U << 10U;

}  // namespace

bool LaneRequester::finish(SendEntry& entry) {
  // Without a lane it is UC's, lost, and complete.
  entry.end_slot = connection_.sender ? connection_.sender->published() : 0;
  entry.phase = SendPhase::sent;
  return true;
}

/// Nothing stands between us and the peer, and nobody asks what passes.
/// Relaxed: who misses that the peer is gone writes into memory that nobody reads.
inline bool LaneRequester::is_plain() const {
  return connection_.peer_state.load(std::memory_order_relaxed) == PeerState::present && connection_.sender &&
         !connection_.sender->is_closed() && !core_.cable.is_watched();
}

// The branches of these two end in calls, and whatever is seldom is in another function: so none but send() makes room
// on the stack.

bool LaneRequester::execute_at_once(SendEntry& entry, const ibv_send_wr& wr) {
  const bool is_send = wr.opcode == IBV_WR_SEND;
  if (!is_plain() || (is_out_of_reach_ && !is_send) || wr.sg_list[0].length > kMaxMessageBytes) [[unlikely]] {
    return false;
  }
  connection_.sender->take_consumed(connection_.heard_consumed.load(std::memory_order_acquire));
  if (is_send) {
    return send_at_once(entry, wr);
  }
  if (wr.opcode == IBV_WR_RDMA_WRITE) {
    return write_at_once(entry, wr);
  }
  switch (wr.opcode) {
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      return write_and_tell_at_once(entry, wr);
    case IBV_WR_RDMA_READ:
      return read_at_once(entry, wr);
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      return atomic_at_once(entry, wr);
    default:
      return false;
  }
}

bool LaneRequester::submit(SendQueue& queue, SendEntry& entry, const SendRequest& request) {
  if (!is_plain() || (request.is_fenced && answers_pending_ != 0)) [[unlikely]] {
    return submit_with_care(queue, entry, request);
  }
  return execute(queue, entry, request);
}

[[gnu::noinline]] bool LaneRequester::submit_with_care(SendQueue& queue, SendEntry& entry, const SendRequest& request) {
  if (connection_.peer_state.load(std::memory_order_relaxed) != PeerState::present) {
    // RC fails it when its turn to complete comes; UC has lost it without knowing.
    return core_.type == IBV_QPT_UC && finish(entry);
  }
  if (!connection_.sender || connection_.sender->is_closed() || core_.cable.is_cut_off() ||
      (request.is_fenced && answers_pending_ != 0)) {
    return false;
  }
  core_.cable.note_traffic();
  return execute(queue, entry, request);
}

inline bool LaneRequester::execute(SendQueue& queue, SendEntry& entry, const SendRequest& request) {
  connection_.sender->take_consumed(connection_.heard_consumed.load(std::memory_order_acquire));
  switch (request.opcode) {
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      return write(queue, entry, request);
    case IBV_WR_RDMA_READ:
      return read(queue, entry, request);
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      return execute_atomic(queue, entry, request);
    default:
      return send(queue, entry, request);
  }
}

bool LaneRequester::send(SendQueue& queue, SendEntry& entry, const SendRequest& request) {
  if (request.length > kMaxMessageBytes) {
    return queue.fail_overlong(entry, request.length);
  }
  Pieces pieces;
  if (!core_.translate({request.pieces, request.pieces_count}, request.is_inline, 0, pieces)) {
    return queue.fail(entry, IBV_WC_LOC_PROT_ERR);
  }
  const unsigned last_flags = link::kSlotLast | (request.is_solicited ? link::kSlotSolicited : 0U) |
                              (request.opcode == IBV_WR_SEND_WITH_IMM ? link::kSlotImmediate : 0U) |
                              (request.opcode == IBV_WR_SEND_WITH_INV ? link::kSlotInvalidate : 0U) |
                              (entry.is_signaled ? link::kSlotSignaled : 0U);
  link::LaneProducer& lane = *connection_.sender;
  link::LaneProducer::Place place;
  if (request.length <= link::kInlineBytes) {
    if (!connection_.make_room(0, place)) {
      return false;
    }
    pieces.gather(0, lane.next_slot().body, request.length);
    connection_.publish(link::SlotKind::send, link::kSlotFirst | last_flags, request.length, request.immediate);
  } else if (pieces.arena.arena_id != 0 && request.length >= kLeastSharedBytes && entry.moved == 0) {
    if (!connection_.make_room(0, place)) {
      return false;
    }
    const link::SharedFields fields{pieces.arena.offset, pieces.arena.arena_id, request.length};
    std::memcpy(lane.next_slot().body, &fields, sizeof fields);
    const unsigned flags = link::kSlotFirst | last_flags | (request.stays_in_place ? link::kSlotStays : 0U);
    connection_.publish(link::SlotKind::send_shared, flags, 0, request.immediate);
  } else if (is_to_be_pulled(request, entry)) {
    if (!connection_.make_room(0, place)) {
      return false;
    }
    const ibv_sge& piece = request.pieces[0];
    const link::PrivateFields fields{piece.addr, base::now_ns(), piece.lkey, request.length};
    std::memcpy(lane.next_slot().body, &fields, sizeof fields);
    connection_.publish(link::SlotKind::send_private, link::kSlotFirst | last_flags, 0, request.immediate);
    // So far the memory is the peer's to read: the process must not end before (is_being_read).
    pulled_end_ = lane.published();
  } else if (!send_chunks(request, last_flags, pieces, entry)) {
    return false;
  }
  const bool has_word = request.opcode == IBV_WR_SEND_WITH_IMM || request.opcode == IBV_WR_SEND_WITH_INV;
  count_sent(core_.counts.first(), load_of(request.length, core_.mtu_shift, has_word ? kImmediateWords : 0));
  core_.counts.first().add(kLaneMessages, 1);
  return finish(entry);
}

bool LaneRequester::send_at_once(SendEntry& entry, const ibv_send_wr& wr) {
  const uint32_t length = wr.sg_list[0].length;
  link::LaneProducer::Place place;
  if (length > link::kInlineBytes) {
    return false;
  }
  const std::byte* const source = own_piece(wr, 0);
  if (source == nullptr || length == 0 || !connection_.make_room(0, place)) {
    return false;
  }
  base::copy_short(connection_.sender->next_slot().body, source, length);
  const unsigned flags = link::kSlotFirst | link::kSlotLast |
                         ((wr.send_flags & IBV_SEND_SOLICITED) != 0 ? link::kSlotSolicited : 0U) |
                         (entry.is_signaled ? link::kSlotSignaled : 0U);
  connection_.publish(link::SlotKind::send, flags, length, 0);
  count_sent(core_.counts.first(), {1, kPacketWords + (length + 3) / 4});
  core_.counts.first().add(kLaneMessages, 1);
  entry.end_slot = connection_.sender->published();
  entry.phase = SendPhase::sent;
  return true;
}

/// The peer has found that it is done sooner if it reads the memory itself. Of several pieces it knows but one.
bool LaneRequester::is_to_be_pulled(const SendRequest& request, const SendEntry& entry) const {
  return request.length >= SendWays::kLeastBytes && request.pieces_count == 1 && !request.is_inline &&
         entry.moved == 0 && (connection_.sender->pulls() >> SendWays::class_of(request.length) & 1U) != 0;
}

bool LaneRequester::send_chunks(const SendRequest& request, unsigned last_flags, const Pieces& pieces,
                                SendEntry& entry) {
  // Only the first chunk carries it, and only where the receiver compares the ways.
  const uint64_t begun_ns = request.length >= SendWays::kLeastBytes && entry.moved == 0 ? base::now_ns() : 0;
  const uint32_t chunk_limit = request.length <= kShortMessageBytes ? kShortChunkBytes : kLongChunkBytes;
  while (entry.moved < request.length) {
    const uint32_t chunk = std::min(chunk_limit, request.length - entry.moved);
    link::LaneProducer::Place place;
    if (!connection_.make_room(chunk, place)) {
      return false;
    }
    pieces.gather(entry.moved, place.data, chunk);
    const link::SendFields fields{request.length, 0, begun_ns};
    std::memcpy(connection_.sender->next_slot().body, &fields, sizeof fields);
    const unsigned flags =
        (entry.moved == 0 ? link::kSlotFirst : 0U) | (entry.moved + chunk == request.length ? last_flags : 0U);
    entry.moved += chunk;
    connection_.publish(link::SlotKind::send, flags, chunk, request.immediate, place);
  }
  return true;
}

bool LaneRequester::is_complete(SendQueue& queue, SendEntry& entry, const SendRequest& request) {
  if (entry.phase == SendPhase::answering) {
    return finish_answer(queue, entry, request);
  }
  if (!connection_.sender) {
    return true;  // nobody can answer for it
  }
  link::LaneProducer& lane = *connection_.sender;
  if (lane.is_done(entry.end_slot)) {
    return true;
  }
  lane.refresh();
  if (lane.is_done(entry.end_slot)) {
    return true;
  }
  return core_.type == IBV_QPT_UC && connection_.peer_state.load(std::memory_order_relaxed) != PeerState::present &&
         lane.refusal() == link::Refusal::none;
}

/// What ends the first send that is not complete.
ibv_wc_status LaneRequester::refusal() const {
  const link::Refusal refusal = connection_.sender ? connection_.sender->refusal() : link::Refusal::none;
  // UC hears of one refusal only, see link::Refusal.
  if (core_.type != IBV_QPT_RC) {
    return refusal == link::Refusal::memory ? IBV_WC_REM_OP_ERR : IBV_WC_SUCCESS;
  }
  switch (refusal) {
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
  // Of a peer that left in order a card learns nothing: its retries have to run out (check_timers). Programs rely on
  // it: they leave when their counts are full, and whose peer left first must not find a failure before those
  // completions.
  const PeerState peer = connection_.peer_state.load(std::memory_order_relaxed);
  return peer == PeerState::died ? IBV_WC_RETRY_EXC_ERR : IBV_WC_SUCCESS;
}

[[gnu::cold, gnu::noinline]] void LaneRequester::explain_failure(ibv_wc_status status) {
  core_.when_noting([&](QueuePairNotes& notes) {
    if (status == IBV_WC_RETRY_EXC_ERR) {
      notes.say_why_send(
          why_unanswered(core_, connection_.waited_ns(base::now_ns()),
                         fmt::format("process {} was killed, or has crashed", connection_.remote->peer().pid())));
    }
  });
}

bool LaneRequester::give_up() {
  const ibv_wc_status status = refusal();
  if (status == IBV_WC_SUCCESS) {
    return false;
  }
  explain_failure(status);
  core_.enter_error(status);
  if (connection_.peer_state.load(std::memory_order_relaxed) == PeerState::died) {
    core_.note_peer_died();
  }
  return true;
}

/// A program may end without waiting for its last send, whose receiver computes meanwhile: a card would deliver it.
bool LaneRequester::is_being_read() {
  if (!pulled_end_ || !connection_.sender || core_.state() == IBV_QPS_ERR) {
    return false;
  }
  link::LaneProducer& lane = *connection_.sender;
  lane.refresh();
  if (lane.is_done(*pulled_end_) || lane.is_closed() || lane.refusal() != link::Refusal::none ||
      connection_.peer_state.load(std::memory_order_relaxed) != PeerState::present) {
    pulled_end_.reset();
    return false;
  }
  if (!std::exchange(is_hurried_, true)) {
    connection_.ring_service();
  }
  return true;
}

void LaneRequester::flush() {
  if (connection_.sender && core_.state() == IBV_QPS_ERR) {
    connection_.sender->end();
  }
  answers_pending_ = 0;
}

}  // namespace ringbolt::device
