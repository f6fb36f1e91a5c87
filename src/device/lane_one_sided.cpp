// WRITE, READ and atomics. The requester does them itself where it can reach the peer's memory; elsewhere the peer
// does them, in its own poll or on its service thread. Hot path.

#include <atomic>
#include <cstring>

#include "device/failure_notes.h"
#include "device/lane_requester.h"
#include "device/limits.h"
#include "device/send_queue.h"

namespace ringbolt::device {
namespace {

constexpr uint32_t kChunkBytes = 8U << 10U;

/// Tells the peer which region is being copied from or to, for the time of the copy.
class Announcement {
 public:
  Announcement(link::LaneProducer& lane, uint32_t key) : lane_(lane) { lane_.announce_access(key); }
  ~Announcement() { lane_.end_access(); }
  Announcement(const Announcement&) = delete;
  Announcement& operator=(const Announcement&) = delete;

 private:
  link::LaneProducer& lane_;
};

/// An atomic on the 8 bytes at an aligned address: what they were before.
/// Atomic towards all processes of the host: the memory is shared, and the processor's instruction does it.
uint64_t exchange(std::byte* target, bool is_add, uint64_t compare_or_add, uint64_t swap) {
  std::atomic_ref<uint64_t> word(*reinterpret_cast<uint64_t*>(target));
  if (is_add) {
    return word.fetch_add(compare_or_add);
  }
  word.compare_exchange_strong(compare_or_add, swap);
  return compare_or_add;
}

}  // namespace

/// All that check_remote() checks, in one look at the entry.
inline std::byte* LaneRequester::reach(uint32_t key, uint64_t address, uint32_t length, uint32_t access) const {
  const bool may = length != 0 && (connection_.sender->remote_access() & access) == access;
  return may ? connection_.remote->reach(key, connection_.remote_pd_key, connection_.remote_qpn, access, address,
                                         length)
             : nullptr;
}

ibv_wc_status LaneRequester::check_remote(const SendRequest& request, uint32_t access, link::Region& region) const {
  // A queue pair that does not take this operation at all refuses the request as invalid (9.7.4.1.2), a key that does
  // not allow it is an access violation (9.7.4.1.5).
  if ((connection_.sender->remote_access() & access) != access) {
    return IBV_WC_REM_INV_REQ_ERR;
  }
  if (request.length == 0) {
    return IBV_WC_SUCCESS;  // without bytes there is nothing that a key could protect (9.7.4.1.4)
  }
  if (!connection_.remote->has_regions()) {
    return IBV_WC_SUCCESS;  // the peer will look for itself, since only it can copy
  }
  if (!connection_.remote->find_region(request.key, region) || region.pd_key != connection_.remote_pd_key ||
      (region.access & access) != access || !region.holds(request.remote_address, request.length) ||
      (region.bound_qpn != link::kAnyQueuePair && region.bound_qpn != connection_.remote_qpn)) {
    return IBV_WC_REM_ACCESS_ERR;
  }
  return IBV_WC_SUCCESS;
}

[[gnu::cold, gnu::noinline]] void LaneRequester::explain_refusal(const SendQueue& queue, const SendEntry& entry,
                                                                 ibv_wc_status status) {
  core_.when_noting([&](QueuePairNotes& notes) RINGBOLT_NOT_ANALYSED {
    base::Explanation why = why_access_failed(core_, connection_, notes.send(queue.place(entry)), status);
    core_.type == IBV_QPT_UC ? explain_dropped(core_, "here", std::move(why)) : notes.say_why_send(std::move(why));
  });
}

[[gnu::cold, gnu::noinline]] bool LaneRequester::refuse_access(SendQueue& queue, SendEntry& entry,
                                                               ibv_wc_status status) {
  if (connection_.sender->is_closed()) {
    return false;  // it closed meanwhile: that is no answer, not a refusal
  }
  const bool is_reliable = core_.type != IBV_QPT_UC;
  link::LaneProducer::Place place;
  if (is_reliable && !connection_.make_room(0, place)) {
    return false;  // the peer's queue pair must hear of it, behind what was sent before: it is tried again
  }
  explain_refusal(queue, entry, status);
  if (!is_reliable) {
    return finish(entry);  // the responder of UC drops it and says nothing
  }
  const bool is_invalid = status == IBV_WC_REM_INV_REQ_ERR;
  connection_.publish(link::SlotKind::refused, is_invalid ? link::kSlotInvalidRequest : 0U, 0, 0);
  connection_.ring_service();  // its program may wait for the event alone
  return queue.fail(entry, status);
}

// What a one-sided operation moves at both ends: its target need not know of it, so who does it counts for both.

inline void LaneRequester::count_write(uint32_t length, uint32_t extra_words) {
  const Load load = load_of(length, core_.mtu_shift, kRethWords + extra_words);
  cluster::CounterLane& own = core_.counts.first();
  cluster::CounterLane& peer = peer_counts_ != nullptr ? peer_counts_->first() : own;
  count_sent(own, load);
  count_received(peer, load);
  peer.add(kLaneRxWrites, 1);
}

void LaneRequester::count_exchange(const Load& request, const Load& answer, RingboltLaneWord kind) {
  cluster::CounterLane& own = core_.counts.first();
  cluster::CounterLane& peer = peer_counts_ != nullptr ? peer_counts_->first() : own;
  count_sent(own, request);
  count_received(peer, request);
  peer.add(kind, 1);
  count_sent(peer, answer);
  count_received(own, answer);
}

/// Done, and complete at once if the peer has done with all that was sent before.
// What was sent before it and is not taken yet may still be refused: then this one is flushed.
inline bool LaneRequester::finish_one_sided(SendEntry& entry) {
  entry.end_slot = connection_.sender->published();
  entry.phase = connection_.sender->is_done(entry.end_slot) ? SendPhase::finished : SendPhase::sent;
  return true;
}

/// Operations take effect in their order: one that is made here must not overtake those that the peer is to make.
bool LaneRequester::must_wait_for_peer() {
  link::LaneProducer& lane = *connection_.sender;
  if (connection_.operations_end_slot == 0 || lane.is_done(connection_.operations_end_slot)) {
    return false;
  }
  lane.refresh();
  return !lane.is_done(connection_.operations_end_slot);
}

bool LaneRequester::write(SendQueue& queue, SendEntry& entry, const SendRequest& request) {
  if (request.length > kMaxMessageBytes) {
    return queue.fail_overlong(entry, request.length);
  }
  Pieces pieces;
  if (!core_.translate({request.pieces, request.pieces_count}, request.is_inline, 0, pieces)) {
    return queue.fail(entry, IBV_WC_LOC_PROT_ERR);
  }
  const bool has_immediate = request.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
  if (entry.moved == 0) {
    // What the peer still has to do for us comes first.
    if (must_wait_for_peer()) {
      return false;
    }
    const Announcement announced(*connection_.sender, request.key);
    if (connection_.sender->is_closed()) {
      return false;  // closed since we looked: nobody waits for the end of a copy that begins now
    }
    if (std::byte* const target = reach(request.key, request.remote_address, request.length, IBV_ACCESS_REMOTE_WRITE))
        [[likely]] {
      is_out_of_reach_ = false;
      pieces.gather(0, target, request.length);
      entry.moved = request.length;
    } else if (const auto status = write_through_kernel(entry, request, pieces); status != IBV_WC_SUCCESS) {
      return refuse_access(queue, entry, status);
    }
  }
  // `moved` stands at the end once the bytes are there: a second turn, for want of room, does not write them again.
  if (entry.moved < request.length && !write_by_peer(entry, request, pieces)) {
    return false;
  }
  if (has_immediate && !notify_written(entry, request)) {
    return false;
  }
  count_write(request.length, has_immediate ? kImmediateWords : 0);
  return finish_one_sided(entry);
}

/// To private memory, if the kernel lets us; `moved` says whether it did. Success, or what the request fails with.
ibv_wc_status LaneRequester::write_through_kernel(SendEntry& entry, const SendRequest& request, const Pieces& pieces) {
  link::Region region;
  const ibv_wc_status status = check_remote(request, IBV_ACCESS_REMOTE_WRITE, region);
  if (status != IBV_WC_SUCCESS || request.length == 0) {
    return status;
  }
  const auto outcome = connection_.remote->write(region, request.remote_address, pieces.span());
  entry.moved = outcome == link::CopyOutcome::done ? request.length : 0;
  return outcome == link::CopyOutcome::fault ? IBV_WC_REM_ACCESS_ERR : IBV_WC_SUCCESS;
}

bool LaneRequester::write_by_peer(SendEntry& entry, const SendRequest& request, const Pieces& pieces) {
  link::LaneProducer& lane = *connection_.sender;
  while (entry.moved < request.length) {
    const uint32_t chunk = std::min(kChunkBytes, request.length - entry.moved);
    link::LaneProducer::Place place;
    if (!connection_.make_room(chunk, place)) {
      return false;
    }
    pieces.gather(entry.moved, place.data, chunk);
    const link::RemoteFields fields{request.remote_address + entry.moved, request.key, request.length, 0, 0};
    std::memcpy(lane.next_slot().body, &fields, sizeof fields);
    entry.moved += chunk;
    connection_.publish(link::SlotKind::write, 0, chunk, 0, place);
    connection_.operations_end_slot = lane.published();
  }
  connection_.ring_service();  // the target of one-sided operations seldom polls
  return true;
}

bool LaneRequester::notify_written(const SendEntry& entry, const SendRequest& request) {
  link::LaneProducer::Place place;
  if (!connection_.make_room(0, place)) {
    return false;
  }
  publish_written({request.remote_address, request.key, request.length, 0, 0}, request.is_solicited, entry.is_signaled,
                  request.immediate);
  return true;
}

/// Into the room that was made for it.
inline void LaneRequester::publish_written(const link::RemoteFields& fields, bool is_solicited, bool is_signaled,
                                           uint32_t immediate) {
  std::memcpy(connection_.sender->next_slot().body, &fields, sizeof fields);
  const unsigned flags = link::kSlotFirst | link::kSlotLast | link::kSlotImmediate |
                         (is_solicited ? link::kSlotSolicited : 0U) | (is_signaled ? link::kSlotSignaled : 0U);
  connection_.publish(link::SlotKind::write_done, flags, 0, immediate);
}

bool LaneRequester::read(SendQueue& queue, SendEntry& entry, const SendRequest& request) {
  if (request.length > kMaxMessageBytes) {
    return queue.fail_overlong(entry, request.length);
  }
  Pieces pieces;
  if (!core_.translate({request.pieces, request.pieces_count}, false, IBV_ACCESS_LOCAL_WRITE, pieces)) {
    return queue.fail(entry, IBV_WC_LOC_PROT_ERR);
  }
  // Only before the first chunk: later ones come from where the first came.
  if (entry.moved == 0 && !entry.awaits_chunk) {
    if (must_wait_for_peer()) {
      return false;
    }
    const Announcement announced(*connection_.sender, request.key);
    if (connection_.sender->is_closed()) {
      return false;  // closed since we looked: nobody waits for the end of a copy that begins now
    }
    if (const std::byte* const source =
            reach(request.key, request.remote_address, request.length, IBV_ACCESS_REMOTE_READ)) [[likely]] {
      is_out_of_reach_ = false;
      pieces.scatter(0, source, request.length);
      count_exchange(kReadRequest, read_answer(request.length, core_.mtu_shift), kLaneRxReads);
      return finish_one_sided(entry);
    }
    link::Region region;
    const ibv_wc_status status = check_remote(request, IBV_ACCESS_REMOTE_READ, region);
    if (status != IBV_WC_SUCCESS) {
      return refuse_access(queue, entry, status);
    }
    const auto outcome = request.length == 0 ? link::CopyOutcome::done
                                             : connection_.remote->read(region, request.remote_address, pieces.span());
    if (outcome == link::CopyOutcome::fault) {
      return refuse_access(queue, entry, IBV_WC_REM_ACCESS_ERR);
    }
    if (outcome == link::CopyOutcome::done) {
      count_exchange(kReadRequest, read_answer(request.length, core_.mtu_shift), kLaneRxReads);
      return finish_one_sided(entry);
    }
  }
  return read_by_peer(entry, request, pieces);
}

/// The data of a WRITE, if it can be had and its place be reached here and now.
[[gnu::always_inline]] inline bool LaneRequester::copy_to_peer(const ibv_send_wr& wr) {
  // Inline bytes, too: they are copied before the post returns.
  const std::byte* const source = own_piece(wr, 0);
  if (source == nullptr || must_wait_for_peer()) {
    return false;
  }
  const uint32_t length = wr.sg_list[0].length;
  const Announcement announced(*connection_.sender, wr.wr.rdma.rkey);
  std::byte* const target = reach(wr.wr.rdma.rkey, wr.wr.rdma.remote_addr, length, IBV_ACCESS_REMOTE_WRITE);
  is_out_of_reach_ = target == nullptr;
  if (is_out_of_reach_ || connection_.sender->is_closed()) {
    return false;
  }
  base::copy_short(target, source, length);
  return true;
}

// Flattened, these four: whether the compiler puts the look-up of keys in line changed with what else the file holds.

[[gnu::flatten]] bool LaneRequester::write_at_once(SendEntry& entry, const ibv_send_wr& wr) {
  if (!copy_to_peer(wr)) {
    return false;
  }
  count_write(wr.sg_list[0].length, 0);
  return finish_one_sided(entry);
}

[[gnu::flatten]] bool LaneRequester::write_and_tell_at_once(SendEntry& entry, const ibv_send_wr& wr) {
  const uint32_t length = wr.sg_list[0].length;
  link::LaneProducer::Place place;
  // Room first: data that lies there untold would be written again, over what the peer has made of it meanwhile.
  if (!connection_.make_room(0, place) || !copy_to_peer(wr)) {
    return false;
  }
  publish_written({wr.wr.rdma.remote_addr, wr.wr.rdma.rkey, length, 0, 0}, (wr.send_flags & IBV_SEND_SOLICITED) != 0,
                  entry.is_signaled, wr.imm_data);
  count_write(length, kImmediateWords);
  return finish_one_sided(entry);
}

[[gnu::flatten]] bool LaneRequester::read_at_once(SendEntry& entry, const ibv_send_wr& wr) {
  const uint32_t length = wr.sg_list[0].length;
  std::byte* const target = own_piece(wr, IBV_ACCESS_LOCAL_WRITE);
  if (target == nullptr || must_wait_for_peer()) {
    return false;
  }
  {
    const Announcement announced(*connection_.sender, wr.wr.rdma.rkey);
    const std::byte* const source = reach(wr.wr.rdma.rkey, wr.wr.rdma.remote_addr, length, IBV_ACCESS_REMOTE_READ);
    is_out_of_reach_ = source == nullptr;
    if (is_out_of_reach_ || connection_.sender->is_closed()) {
      return false;
    }
    base::copy_short(target, source, length);
  }
  count_exchange(kReadRequest, read_answer(length, core_.mtu_shift), kLaneRxReads);
  return finish_one_sided(entry);
}

[[gnu::flatten]] bool LaneRequester::atomic_at_once(SendEntry& entry, const ibv_send_wr& wr) {
  const auto& operands = wr.wr.atomic;
  std::byte* const result = own_piece(wr, IBV_ACCESS_LOCAL_WRITE);
  const bool is_whole = wr.sg_list[0].length == sizeof(uint64_t) && operands.remote_addr % sizeof(uint64_t) == 0;
  if (result == nullptr || !is_whole || must_wait_for_peer()) {
    return false;
  }
  {
    const Announcement announced(*connection_.sender, operands.rkey);
    std::byte* const target = reach(operands.rkey, operands.remote_addr, sizeof(uint64_t), IBV_ACCESS_REMOTE_ATOMIC);
    is_out_of_reach_ = target == nullptr || reinterpret_cast<uint64_t>(target) % sizeof(uint64_t) != 0;
    if (is_out_of_reach_ || connection_.sender->is_closed()) {
      return false;
    }
    const bool is_add = wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
    const uint64_t before = exchange(target, is_add, operands.compare_add, operands.swap);
    base::copy_short(result, &before, sizeof before);
  }
  count_exchange(kAtomicRequest, kAtomicAnswer, kLaneRxAtomics);
  return finish_one_sided(entry);
}

bool LaneRequester::read_by_peer(SendEntry& entry, const SendRequest& request, const Pieces& pieces) {
  link::LaneProducer& lane = *connection_.sender;
  // One chunk at a time: the lane has one read buffer. It waits for atomics, whose answers share the numbering.
  if (answers_pending_ != 0) {
    return false;
  }
  while (entry.moved < request.length) {
    const uint32_t chunk = std::min(link::kLaneReadBufferBytes, request.length - entry.moved);
    if (entry.awaits_chunk) {
      if (lane.response(entry.operation).sequence.load(std::memory_order_acquire) != entry.operation + 1) {
        return false;
      }
      pieces.scatter(entry.moved, lane.read_buffer(), chunk);
      entry.moved += chunk;
      entry.awaits_chunk = false;
      continue;
    }
    link::LaneProducer::Place place;
    if (!connection_.make_room(0, place)) {
      return false;
    }
    entry.operation = connection_.next_operation++;
    entry.awaits_chunk = true;
    const link::RemoteFields fields{request.remote_address + entry.moved, request.key, chunk, entry.operation, 0};
    std::memcpy(lane.next_slot().body, &fields, sizeof fields);
    connection_.publish(link::SlotKind::read, 0, 0, 0);
    connection_.operations_end_slot = lane.published();
    connection_.ring_service();  // the target of one-sided operations seldom polls
  }
  count_exchange(kReadRequest, read_answer(request.length, core_.mtu_shift), kLaneRxReads);
  return finish_one_sided(entry);
}

bool LaneRequester::execute_atomic(SendQueue& queue, SendEntry& entry, const SendRequest& request) {
  if (request.length != sizeof(uint64_t)) {
    return queue.fail(entry, IBV_WC_LOC_LEN_ERR);
  }
  Pieces pieces;
  if (!core_.translate({request.pieces, request.pieces_count}, false, IBV_ACCESS_LOCAL_WRITE, pieces)) {
    return queue.fail(entry, IBV_WC_LOC_PROT_ERR);
  }
  if (request.remote_address % sizeof(uint64_t) != 0) {
    return refuse_access(queue, entry, IBV_WC_REM_INV_REQ_ERR);
  }
  const bool is_add = request.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
  {
    const bool must_wait = must_wait_for_peer();
    const Announcement announced(*connection_.sender, request.key);
    if (connection_.sender->is_closed()) {
      return false;  // closed since we looked: nobody waits for the end of a copy that begins now
    }
    std::byte* const target = reach(request.key, request.remote_address, request.length, IBV_ACCESS_REMOTE_ATOMIC);
    if (target == nullptr) [[unlikely]] {
      link::Region region;
      const ibv_wc_status status = check_remote(request, IBV_ACCESS_REMOTE_ATOMIC, region);
      if (status != IBV_WC_SUCCESS) {
        return refuse_access(queue, entry, status);
      }
    }
    if (target != nullptr && reinterpret_cast<uint64_t>(target) % sizeof(uint64_t) == 0) {
      if (must_wait) {  // what the peer executes goes through the lane in its order; this would overtake it
        return false;
      }
      is_out_of_reach_ = false;
      const uint64_t before = exchange(target, is_add, request.compare_or_add, request.swap);
      pieces.scatter(0, reinterpret_cast<const std::byte*>(&before), sizeof before);
      count_exchange(kAtomicRequest, kAtomicAnswer, kLaneRxAtomics);
      return finish_one_sided(entry);
    }
  }
  return ask_for_atomic(entry, request);
}

/// Where the memory can't be reached from here.
bool LaneRequester::ask_for_atomic(SendEntry& entry, const SendRequest& request) {
  link::LaneProducer::Place place;
  if (answers_pending_ >= link::kLaneResponses || !connection_.make_room(0, place)) {
    return false;
  }
  entry.operation = connection_.next_operation++;
  const link::AtomicFields fields{request.remote_address, request.compare_or_add, request.swap, request.key,
                                  entry.operation};
  std::memcpy(connection_.sender->next_slot().body, &fields, sizeof fields);
  const bool is_add = request.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
  connection_.publish(link::SlotKind::atomic, is_add ? link::kSlotFetchAdd : 0U, 0, 0);
  connection_.operations_end_slot = connection_.sender->published();
  connection_.ring_service();  // the target of one-sided operations seldom polls
  entry.end_slot = connection_.sender->published();
  entry.phase = SendPhase::answering;
  ++answers_pending_;
  return true;
}

bool LaneRequester::finish_answer(SendQueue& queue, SendEntry& entry, const SendRequest& request) {
  if (!connection_.sender) {
    return false;
  }
  const link::Response& response = connection_.sender->response(entry.operation);
  if (response.sequence.load(std::memory_order_acquire) != entry.operation + 1) {
    return false;
  }
  const uint64_t before = response.value;
  --answers_pending_;
  Pieces pieces;
  if (!core_.translate({request.pieces, request.pieces_count}, false, IBV_ACCESS_LOCAL_WRITE, pieces)) {
    return queue.fail(entry, IBV_WC_LOC_PROT_ERR);
  }
  pieces.scatter(0, reinterpret_cast<const std::byte*>(&before), sizeof before);
  count_exchange(kAtomicRequest, kAtomicAnswer, kLaneRxAtomics);
  entry.phase = SendPhase::sent;
  return true;
}

}  // namespace ringbolt::device
