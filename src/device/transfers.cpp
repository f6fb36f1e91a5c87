// What a send does when its turn comes: messages and local operations. Hot path.

#include <cstring>

#include "base/clock.h"
#include "device/limits.h"
#include "device/queue_pair.h"

namespace ringbolt::device {
namespace {

// Long messages go through the lane in chunks, so that both sides copy at the same time: short ones while the message
// is short, since the last chunk is copied by the receiver alone (docs/performance.md).
constexpr uint32_t kShortMessageBytes = 128U << 10U;
constexpr uint32_t kShortChunkBytes = 8U << 10U;
constexpr uint32_t kLongChunkBytes = 16U << 10U;
// From here on one copy out of shared memory beats two through the lane.
constexpr uint32_t kLeastSharedBytes = 2U << 10U;
// How long a datagram waits for the lane to a queue pair it has not sent to before; then it is lost, as datagrams may be.
// A datagram waits so long for room in its lane; and for the lane itself, which the peer's service thread offers, as long
// as it may be off its core. Nobody there is said at once (Process::on_offer).
constexpr uint64_t kDatagramPatienceNs = 100'000'000;
constexpr uint64_t kFirstDatagramPatienceNs = 2'000'000'000;
constexpr uint32_t kDatagramInlineBytes = link::kInlineBytes - sizeof(link::DatagramFields);

}  // namespace

bool QueuePair::fail(SendEntry& entry, ibv_wc_status status) {
  entry.status = static_cast<uint8_t>(status);
  entry.phase = SendPhase::failed;
  send_.has_failed_send = true;
  awaited_.store(tail_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);  // signaled or not
  return true;
}

bool QueuePair::fail_overlong(SendEntry& entry, uint32_t length) {
  if (context_.port().live->overlong_messages.note(qpn_, length)) {
    process_.tell_soon();
  }
  return fail(entry, IBV_WC_LOC_LEN_ERR);
}

bool QueuePair::finish(SendEntry& entry, const Connection& connection) {
  entry.end_slot = connection.sender ? connection.sender->published() : 0;
  entry.phase = SendPhase::sent;
  return true;
}

bool QueuePair::translate(std::span<const ibv_sge> from, bool is_inline, uint32_t access, Pieces& pieces) const {
  for (const ibv_sge& piece : from) {
    if (piece.length == 0) {
      continue;
    }
    uint64_t address = piece.addr;
    if (!is_inline) {
      link::Region region;
      if (!process_.regions().find(piece.lkey, region) || region.pd_key != pd_.key ||
          (region.access & access) != access || !region.holds(piece.addr, piece.length)) {
        return false;
      }
      const uint64_t offset = piece.addr - region.first;
      address = region.host_first + offset;
      pieces.arena = {pieces.count == 0 ? region.arena_id : 0, region.arena_offset + offset};
    }
    pieces.at[pieces.count++] = {reinterpret_cast<void*>(address), piece.length};
  }
  return true;
}

void QueuePair::publish(Connection& connection, link::SlotKind kind, unsigned flags, uint32_t length,
                        uint32_t immediate) {
  link::LaneProducer& lane = *connection.sender;
  const uint32_t consumed = connection.receiver.consumed();
  if (lane.consumed() == lane.published()) {
    connection.receiver.note_told(consumed);  // nothing before it can hold the news up
  }
  lane.publish(kind, static_cast<uint8_t>(flags), length, immediate, consumed, 0, false);
}

void QueuePair::publish_data(Connection& connection, link::SlotKind kind, unsigned flags, uint32_t length,
                             uint32_t immediate, uint32_t data_at) {
  connection.sender->publish(kind, static_cast<uint8_t>(flags), length, immediate, connection.receiver.consumed(),
                             data_at, true);
}

void QueuePair::ring_peer(Connection& connection) {
  if (connection.sender && connection.sender->published() != connection.rung_for) {
    connection.rung_for = connection.sender->published();
    if (connection.sender->wants_ring()) {
      connection.remote->peer().ring();
    }
  }
}

bool QueuePair::has_room(Connection& connection, uint32_t length, link::LaneProducer::Place& place) {
  link::LaneProducer& lane = *connection.sender;
  if (lane.has_slot() && (length == 0 || lane.reserve(length, place))) {
    return true;
  }
  lane.refresh();
  return lane.has_slot() && (length == 0 || lane.reserve(length, place));
}

bool QueuePair::execute(SendEntry& entry, const SendRequest& request) {
  if (request.opcode == IBV_WR_LOCAL_INV || request.opcode == IBV_WR_BIND_MW) {
    return do_local(entry, request);
  }
  if (type_ == IBV_QPT_UD) {
    return send_datagram(entry, request);
  }
  if (requesting() != nullptr) {
    note_traffic();
    return submit_wired(entry, request);
  }
  Connection& connection = *connection_.load(std::memory_order_relaxed);
  const PeerState peer = connection.peer_state.load(std::memory_order_relaxed);
  if (peer != PeerState::present) [[unlikely]] {
    // RC fails it when its turn to complete comes; UC has lost it without knowing.
    return type_ == IBV_QPT_UC && finish(entry, connection);
  }
  if (!connection.sender || connection.sender->is_closed() || is_cut_off() ||
      (request.is_fenced && send_.answers_pending != 0)) [[unlikely]] {
    return false;
  }
  note_traffic();
  connection.sender->take_consumed(connection.heard_consumed.load(std::memory_order_acquire));
  switch (request.opcode) {
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      return write_remote(connection, entry, request);
    case IBV_WR_RDMA_READ:
      return read_remote(connection, entry, request);
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      return do_atomic(connection, entry, request);
    default:
      return send_message(connection, entry, request);
  }
}

bool QueuePair::send_message(Connection& connection, SendEntry& entry, const SendRequest& request) {
  if (request.length > kMaxMessageBytes) {
    return fail_overlong(entry, request.length);
  }
  Pieces pieces;
  if (!translate({request.pieces, request.pieces_count}, request.is_inline, 0, pieces)) {
    return fail(entry, IBV_WC_LOC_PROT_ERR);
  }
  const unsigned last_flags = link::kSlotLast | (request.is_solicited ? link::kSlotSolicited : 0U) |
                              (request.opcode == IBV_WR_SEND_WITH_IMM ? link::kSlotImmediate : 0U) |
                              (request.opcode == IBV_WR_SEND_WITH_INV ? link::kSlotInvalidate : 0U);
  const bool has_word = request.opcode == IBV_WR_SEND_WITH_IMM || request.opcode == IBV_WR_SEND_WITH_INV;
  const auto count = [&] {
    count_sent(counts_.first(), load_of(request.length, mtu_shift_, has_word ? kImmediateWords : 0));
    counts_.first().add(kLaneMessages, 1);
  };
  link::LaneProducer& lane = *connection.sender;
  link::LaneProducer::Place place;
  if (request.length <= link::kInlineBytes) {
    if (!has_room(connection, 0, place)) {
      return false;
    }
    pieces.gather(0, lane.next_slot().body, request.length);
    publish(connection, link::SlotKind::send, link::kSlotFirst | last_flags, request.length, request.immediate);
    count();
    return finish(entry, connection);
  }
  if (pieces.arena.arena_id != 0 && request.length >= kLeastSharedBytes && entry.moved == 0) {
    if (!has_room(connection, 0, place)) {
      return false;
    }
    const link::SharedFields fields{pieces.arena.offset, pieces.arena.arena_id, request.length};
    std::memcpy(lane.next_slot().body, &fields, sizeof fields);
    publish(connection, link::SlotKind::send_shared,
            link::kSlotFirst | last_flags | (request.stays_in_place ? link::kSlotStays : 0U), 0, request.immediate);
    count();
    return finish(entry, connection);
  }
  const uint32_t chunk_limit = request.length <= kShortMessageBytes ? kShortChunkBytes : kLongChunkBytes;
  while (entry.moved < request.length) {
    const uint32_t chunk = std::min(chunk_limit, request.length - entry.moved);
    if (!has_room(connection, chunk, place)) {
      return false;
    }
    pieces.gather(entry.moved, place.data, chunk);
    std::memcpy(lane.next_slot().body, &request.length, sizeof(link::SendFields));
    const unsigned flags = (entry.moved == 0 ? link::kSlotFirst : 0U) |
                           (entry.moved + chunk == request.length ? last_flags : 0U);
    entry.moved += chunk;
    publish_data(connection, link::SlotKind::send, flags, chunk, request.immediate, place.data_at);
  }
  count();
  return finish(entry, connection);
}

bool QueuePair::send_datagram(SendEntry& entry, const SendRequest& request) {
  if (request.length > (request.is_remote ? mtu_bytes(context_.port().mtu) : kDatagramBytes)) {
    return fail_overlong(entry, request.length);
  }
  Pieces pieces;
  if (!translate({request.pieces, request.pieces_count}, request.is_inline, 0, pieces)) {
    return fail(entry, IBV_WC_LOC_PROT_ERR);
  }
  if (request.is_remote) {
    return send_datagram_out(entry, request, pieces);
  }
  Connection* connection = datagram_connection(request.remote_qpn, request.remote_gid);
  if (connection == nullptr || connection->remote == nullptr || is_cut_off()) {
    counts_.note(kSharedXmitDiscards);
    entry.phase = SendPhase::sent;  // lost
    return true;
  }
  link::LaneProducer::Place place;
  const bool is_inline = request.length <= kDatagramInlineBytes;
  if (!connection->sender || !has_room(*connection, is_inline ? 0 : request.length, place)) {
    const uint64_t now = base::now_ns();
    if (connection->wait_began_ns == 0) {
      connection->wait_began_ns = now;
    }
    const uint64_t patience_ns = connection->sender          ? kDatagramPatienceNs
                                 : connection->is_refused ? 0
                                                          : kFirstDatagramPatienceNs;
    if (now - connection->wait_began_ns < patience_ns) {
      return false;
    }
    counts_.note(kSharedXmitDiscards);
    entry.phase = SendPhase::sent;  // lost
    return true;
  }
  connection->wait_began_ns = 0;
  link::LaneProducer& lane = *connection->sender;
  const link::DatagramFields fields{request.qkey, request.source_gid_index, request.target_gid_index,
                                    static_cast<uint8_t>(request.is_loopback ? 1 : 0), 0};
  std::memcpy(lane.next_slot().body, &fields, sizeof fields);
  pieces.gather(0, is_inline ? lane.next_slot().body + sizeof fields : place.data, request.length);
  const unsigned flags = (request.is_solicited ? link::kSlotSolicited : 0U) |
                         (request.opcode == IBV_WR_SEND_WITH_IMM ? link::kSlotImmediate : 0U);
  if (is_inline) {
    publish(*connection, link::SlotKind::datagram, flags, request.length, request.immediate);
  } else {
    publish_data(*connection, link::SlotKind::datagram, flags, request.length, request.immediate, place.data_at);
  }
  ring_peer(*connection);
  const bool has_immediate = request.opcode == IBV_WR_SEND_WITH_IMM;
  count_sent(counts_.first(), {1, kPacketWords + kDethWords + (has_immediate ? kImmediateWords : 0) + (request.length + 3) / 4});
  counts_.first().add(kLaneMessages, 1);
  entry.phase = SendPhase::sent;
  return true;
}

bool QueuePair::do_local(SendEntry& entry, const SendRequest& request) {
  const bool binds = request.opcode == IBV_WR_BIND_MW;
  WindowBinding binding;
  if (binds) {
    binding.region_key = request.key;
    binding.key = request.window_key;
    binding.address = request.remote_address;
    binding.length = request.window_length;
    binding.access = request.window_access;
    binding.bound_qpn = request.is_type2_window ? qpn_ : link::kAnyQueuePair;
  }
  if (entry.moved == 0) {
    if (binds ? !may_bind_window(process_, pd_.key, binding) : !invalidate_window(process_, qpn_, request.immediate)) {
      return fail(entry, binds ? IBV_WC_MW_BIND_ERR : IBV_WC_LOC_QP_OP_ERR);
    }
    if (const uint32_t closed = binds ? close_window(process_, binding.key) : request.immediate; closed != 0) {
      entry.moved = 1;  // not to be closed again when its turn comes again
      drain_until_ns_.store(base::now_ns() + kAccessDrainNs, std::memory_order_relaxed);
      draining_key_.store(closed, std::memory_order_seq_cst);
      process_.ask_for_drain();
    }
  }
  if (draining_key_.load(std::memory_order_relaxed) != 0) {
    return false;
  }
  if (binds && !bind_window(process_, pd_.key, binding)) {
    return fail(entry, IBV_WC_MW_BIND_ERR);
  }
  const Connection* connection = connection_.load(std::memory_order_relaxed);
  entry.phase = SendPhase::sent;
  if (connection != nullptr && connection->sender) {
    entry.end_slot = connection->sender->published();
  }
  return true;
}

}  // namespace ringbolt::device
