// What comes through the lane of an RC or UC queue pair. Hot path: receive().

#include <algorithm>
#include <new>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/in_place.h"
#include "base/say.h"
#include "device/failure_notes.h"
#include "device/lane_drain.h"
#include "device/lane_responder.h"
#include "device/prefetch.h"
#include "device/receive_queue.h"
#include "device/receive_quirks.h"

namespace ringbolt::device {

[[gnu::flatten]] void LaneResponder::receive(ReceiveQueue& queue, CompletionQueue& cq) {
  if (connection_.receiver.has_slot()) {
    queue.note_established();
  }
  drain_lane(core_, cq, connection_, [&](const link::SlotHeader& header) RINGBOLT_REQUIRES(receive_half, cq.lock) {
    return take(queue, cq, header);
  });
  if (core_.type == IBV_QPT_RC && connection_.peer_state.load(std::memory_order_relaxed) == PeerState::died &&
      !connection_.receiver.has_slot() && core_.state() != IBV_QPS_ERR) {
    explain_death();
    core_.enter_error(IBV_WC_RETRY_EXC_ERR);
    core_.note_peer_died();
  }
}

/// `header.kind` may be any number: it is the peer's word.
bool LaneResponder::take(ReceiveQueue& queue, CompletionQueue& cq, const link::SlotHeader& header) {
  if (queue.quirks() != nullptr && queue.quirks()->diverts() && take_unexpected(queue, header)) [[unlikely]] {
    return true;
  }
  switch (header.kind) {
    case link::SlotKind::send:
      return take_chunk(queue, cq, header);
    case link::SlotKind::send_shared:
      return take_shared(queue, cq, header);
    case link::SlotKind::send_private:
      return take_private(queue, cq, header);
    case link::SlotKind::write_done:
      return take_written(queue, cq, header);
    case link::SlotKind::write:
      return serve_write(header);
    case link::SlotKind::read:
      return serve_read();
    case link::SlotKind::atomic:
      return serve_atomic(header);
    case link::SlotKind::refused:
      return take_refusal(header);
    default:
      connection_.receiver.release();  // not for this kind of queue pair: no peer of ours sends it
      return true;
  }
}

bool LaneResponder::take_refusal(const link::SlotHeader& header) {
  const bool is_invalid = (header.flags & link::kSlotInvalidRequest) != 0;
  connection_.receiver.release();
  core_.counts.note(is_invalid ? kSharedReceiveError : kSharedReceiveAccess);
  explain_refusal(is_invalid);
  core_.enter_error(IBV_WC_WR_FLUSH_ERR);
  core_.announce(is_invalid ? IBV_EVENT_QP_REQ_ERR : IBV_EVENT_QP_ACCESS_ERR);
  return false;
}

bool LaneResponder::open(ReceiveQueue& queue) {
  if (queue.current().is_open) {
    return true;
  }
  // After the peer has flushed its sends those in the lane may take only receives that were there by then.
  if (connection_.receivable == 0 || !queue.open()) {
    if (connection_.receiver.is_ended()) {
      drop_rest(true);
    } else if (connection_.receiver.note_waits_for_receive() && core_.type == IBV_QPT_RC) {
      // UC just waits: nothing is turned away, and nobody told.
      explain_starved(queue);
      core_.counts.note(kSharedOutOfBuffer);
      core_.counts.note(kSharedSentRnr);  // the note is what an RNR NAK is on a wire
    }
    return false;
  }
  if (connection_.receivable != UINT32_MAX) {
    --connection_.receivable;
  }
  connection_.receiver.note_receive_posted();
  return true;
}

void LaneResponder::on_posting(uint32_t posted) {
  link::LaneConsumer& lane = connection_.receiver;
  if (connection_.receivable == UINT32_MAX && lane.has_slot() && lane.is_ended()) {
    connection_.receivable = posted;
  }
  lane.note_receive_posted();
}

/// All that waits, and nothing comes after it.
void LaneResponder::drop_rest(bool wants_receives) {
  connection_.receivable = 0;
  link::SlotHeader header;
  for (uint32_t i = 0; i < link::kLaneSlots && connection_.receiver.peek(header); ++i) {
    const bool takes_one = takes_receive(header.kind) && (header.flags & link::kSlotLast) != 0;
    if (wants_receives && core_.type == IBV_QPT_UC && takes_one) {
      core_.counts.note(kSharedOutOfBuffer);
    }
    connection_.receiver.release();
  }
}

/// False: there is no receive, or it does not fit, and the queue pair has failed.
bool LaneResponder::begin(ReceiveQueue& queue, CompletionQueue& cq, uint32_t total) {
  if (!open(queue)) {
    return false;
  }
  const ibv_wc_status status = queue.begin(total);
  if (status == IBV_WC_SUCCESS) [[likely]] {
    return true;
  }
  queue.note_failure(status, total, false);
  return fail(queue, cq, status,
              status == IBV_WC_LOC_LEN_ERR ? link::Refusal::invalid_request : link::Refusal::operation);
}

ReceivedMessage LaneResponder::message_of(const link::SlotHeader& header, ibv_wc_opcode opcode, uint32_t length) const {
  return {connection_.remote_qpn, opcode, length, header.flags, header.immediate};
}

/// A SEND with a key to invalidate is whole. False: the key is none of ours, and the queue pair has failed.
bool LaneResponder::invalidate(ReceiveQueue& queue, CompletionQueue& cq, const link::SlotHeader& header) {
  if ((header.flags & link::kSlotInvalidate) == 0 || invalidate_window(core_.process, core_.qpn, header.immediate))
      [[likely]] {
    return true;
  }
  explain_invalidation(header.immediate);
  fail(queue, cq, IBV_WC_LOC_ACCESS_ERR, link::Refusal::access);
  core_.announce(IBV_EVENT_QP_ACCESS_ERR);
  return false;
}

bool LaneResponder::take_chunk(ReceiveQueue& queue, CompletionQueue& cq, const link::SlotHeader& header) {
  link::LaneConsumer& lane = connection_.receiver;
  CurrentReceive& current = queue.current();
  const bool is_first = (header.flags & link::kSlotFirst) != 0;
  const bool is_inline = header.length <= link::kInlineBytes;
  // A slot that found no receive is looked at again: its message has begun only once there was one.
  if (is_first && current.received == 0 &&
      !begin(queue, cq, is_inline ? header.length : lane.fields<link::SendFields>().total)) {
    return false;
  }
  if (is_first) {
    connection_.long_begun_ns = is_inline ? 0 : lane.fields<link::SendFields>().begun_ns;
  }
  const std::byte* const data = is_inline && is_first ? lane.inline_body() : lane.payload(header);
  // The lengths come from another process, which may have said something else in the first chunk.
  if (!current.is_open || data == nullptr || current.received + uint64_t{header.length} > current.pieces.length()) {
    return fail(queue, cq, IBV_WC_LOC_LEN_ERR, link::Refusal::invalid_request);
  }
  queue.place(current.received, data, header.length);
  current.received += header.length;
  if ((header.flags & link::kSlotLast) != 0) {
    if (!invalidate(queue, cq, header)) {
      return false;
    }
    count(header, current.received);
    note_long(queue, SendWays::Way::chunks, current.received, connection_.long_begun_ns);
    queue.complete(cq, message_of(header, IBV_WC_RECV, current.received));
  }
  lane.release();
  return true;
}

bool LaneResponder::take_shared(ReceiveQueue& queue, CompletionQueue& cq, const link::SlotHeader& header) {
  const auto fields = connection_.receiver.fields<link::SharedFields>();
  if (connection_.remote == nullptr) {
    return false;
  }
  const auto found = connection_.remote->arenas().look(fields.arena_id, fields.offset, fields.total);
  if (found.is_awaited) {
    return false;
  }
  const std::byte* const data = found.data;
  if (data == nullptr) {  // it could not be mapped here, or is freed already
    return open(queue) && fail(queue, cq, IBV_WC_LOC_QP_OP_ERR, link::Refusal::memory);
  }
  if (!begin(queue, cq, fields.total) || !invalidate(queue, cq, header)) {
    return false;
  }
  constexpr unsigned kUsesTheFields = link::kSlotImmediate | link::kSlotInvalidate;
  // The place travels in fields of the completion that immediate data and keys need.
  const bool stays = (header.flags & link::kSlotStays) != 0 && (header.flags & kUsesTheFields) == 0 &&
                     queue.receives_in_place() && keep_in_place(fields.arena_id);
  if (stays) {
    fetch(data, fields.total);
    queue.place(0, data, std::min(fields.total, base::kHeadBytes));
  } else {
    queue.place(0, data, fields.total);
  }
  count(header, fields.total);
  queue.complete(cq, message_of(header, IBV_WC_RECV, fields.total), stays ? data : nullptr);
  connection_.receiver.release();
  return true;
}

/// The program will read there for as long as it likes. False: the message has to be copied, since there is no memory
/// to note that, or the peer has freed the arena.
bool LaneResponder::keep_in_place(uint32_t arena_id) {
  auto& held = connection_.held_arenas;
  if (std::ranges::any_of(held, [arena_id](const auto& one) { return one.first == arena_id; })) [[likely]] {
    return true;
  }
  try {
    auto segment = connection_.remote->arenas().hold(arena_id);
    if (segment == nullptr) {
      return false;
    }
    held.emplace_back(arena_id, std::move(segment));
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

/// Reads a region of the peer's. Nobody waits for that before the region goes, so it is looked for again afterwards.
link::CopyOutcome LaneResponder::pull(const link::PrivateFields& fields, std::span<const iovec> into) const {
  const link::RemoteProcess& remote = *connection_.remote;
  link::Region region;
  const auto is_there = [&] {
    return remote.find_region(fields.key, region) && region.pd_key == connection_.remote_pd_key &&
           region.holds(fields.address, fields.total);
  };
  if (!is_there()) {
    return link::CopyOutcome::fault;
  }
  const link::CopyOutcome outcome = remote.read(region, fields.address, into);
  return outcome != link::CopyOutcome::done || is_there() ? outcome : link::CopyOutcome::fault;
}

bool LaneResponder::take_private(ReceiveQueue& queue, CompletionQueue& cq, const link::SlotHeader& header) {
  const auto fields = connection_.receiver.fields<link::PrivateFields>();
  if (connection_.remote == nullptr) {
    return false;
  }
  if (!begin(queue, cq, fields.total)) {
    return false;
  }
  link::CopyOutcome outcome{};
  if (queue.quirks() == nullptr) [[likely]] {
    // `begin` has seen that the receive holds as many bytes as the peer says.
    outcome = pull(fields, queue.current().pieces.first(fields.total).span());
  } else {
    std::vector<std::byte> bytes(fields.total);
    const iovec whole{bytes.data(), bytes.size()};
    outcome = pull(fields, {&whole, 1});
    queue.place(0, bytes.data(), outcome == link::CopyOutcome::done ? fields.total : 0);
  }
  if (outcome != link::CopyOutcome::done) {
    // Whoever ends in the middle of a send has sent neither that nor what follows, as far as a card's peer can tell.
    const bool is_over = outcome == link::CopyOutcome::gone || connection_.receiver.is_ended() ||
                         connection_.peer_state.load(std::memory_order_relaxed) != PeerState::present;
    if (!is_over) {
      if (outcome == link::CopyOutcome::unreachable) {
        base::say(fmt::format(
            "ringbolt: {}: queue pair {:#x} fails: the kernel no longer lets us read the memory of process {}, "
            "which has changed its user or made itself undumpable (prctl); let it connect after that\n",
            core_.port->name, core_.qpn, connection_.remote->peer().pid()));
      }
      return fail(queue, cq, IBV_WC_LOC_QP_OP_ERR, link::Refusal::memory);
    }
    drop_rest(false);
    return false;
  }
  if (!invalidate(queue, cq, header)) {
    return false;
  }
  count(header, fields.total);
  core_.counts.note(kSharedPulled);
  note_long(queue, SendWays::Way::pulled, fields.total, fields.begun_ns);
  queue.complete(cq, message_of(header, IBV_WC_RECV, fields.total));
  connection_.receiver.release();
  return true;
}

/// How long a message took says which way the next ones should come; if we can read the peer's memory at all, know its
/// protection domain, as its offer tells, and need not do anything else with each byte.
void LaneResponder::note_long(const ReceiveQueue& queue, SendWays::Way way, uint32_t bytes, uint64_t begun_ns) {
  if (bytes < SendWays::kLeastBytes) [[likely]] {
    return;
  }
  const uint64_t now = base::now_ns();
  const uint64_t from = std::max(begun_ns, std::exchange(connection_.long_ended_ns, now));
  if (begun_ns != 0 && from < now) {  // the peer may say anything
    connection_.ways.note(way, bytes, now - from);
  }
  const auto& remote = connection_.remote;
  const bool may_pull = queue.quirks() == nullptr && remote != nullptr && connection_.sender && remote->has_regions() &&
                        remote->peer().memory_is_reachable();
  const uint32_t wishes = may_pull ? connection_.ways.wishes() : 0;
  if (wishes != connection_.told_wishes) {
    connection_.told_wishes = wishes;
    connection_.receiver.set_pulls(wishes);
  }
}

bool LaneResponder::take_written(ReceiveQueue& queue, CompletionQueue& cq, const link::SlotHeader& header) {
  if (!open(queue)) {
    return false;
  }
  const auto fields = connection_.receiver.fields<link::RemoteFields>();
  // The program reads the data next: their lines come while the completion is made. Of a region with addresses of its
  // own, or of a peer that lies, this names something else, or nothing, which a prefetch does not mind.
  fetch(reinterpret_cast<const std::byte*>(fields.remote_address), fields.total);
  queue.complete(cq, message_of(header, IBV_WC_RECV_RDMA_WITH_IMM, fields.total));
  connection_.receiver.release();
  return true;
}

/// A slot of a message that goes past the receives. False: it is another one's.
bool LaneResponder::take_unexpected(ReceiveQueue& queue, const link::SlotHeader& header) {
  link::LaneConsumer& lane = connection_.receiver;
  ReceiveQuirks& quirks = *queue.quirks();
  const bool is_chunk = header.kind == link::SlotKind::send;
  const bool is_shared = header.kind == link::SlotKind::send_shared;
  const bool is_word = header.kind == link::SlotKind::write_done;
  const bool is_first = !is_chunk || (header.flags & link::kSlotFirst) != 0;
  if (!is_chunk && !is_shared && !is_word) {
    return false;
  }
  const bool is_inline = is_chunk && is_first && header.length <= link::kInlineBytes;
  uint32_t length = is_chunk ? header.length : 0;
  const std::byte* data = is_inline ? lane.inline_body() : is_chunk ? lane.payload(header) : nullptr;
  if (is_shared) {
    const auto fields = lane.fields<link::SharedFields>();
    length = fields.total;
    const auto found = connection_.remote == nullptr
                           ? link::PeerArenas::Found{nullptr, true}
                           : connection_.remote->arenas().look(fields.arena_id, fields.offset, fields.total);
    if (found.is_awaited) {
      return false;
    }
    data = found.data;
  }
  if (is_first) {
    quirks.choose(queue, is_chunk && !is_inline ? lane.fields<link::SendFields>().total : length);
  }
  if (quirks.bypass() == Bypass::none) {
    return false;
  }
  if (data != nullptr) {
    quirks.append(data, length);
  } else if (quirks.bypass() == Bypass::waits && is_shared) {
    quirks.drop();  // its memory can't be had, and it meets no receive that could say so
  }
  if (!is_chunk || (header.flags & link::kSlotLast) != 0) {
    const uint32_t total = is_word ? lane.fields<link::RemoteFields>().total : quirks.bypassed_bytes();
    if (quirks.bypass() == Bypass::waits && !is_word) {
      count(header, total);
    }
    quirks.end(message_of(header, is_word ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV, total));
  }
  lane.release();
  return true;
}

/// A SEND that came through memory.
void LaneResponder::count(const link::SlotHeader& header, uint32_t length) {
  const bool has_word = (header.flags & (link::kSlotImmediate | link::kSlotInvalidate)) != 0;
  count_received(core_.counts.second(), load_of(length, core_.mtu_shift, has_word ? kImmediateWords : 0));
}

bool LaneResponder::fail(ReceiveQueue& queue, CompletionQueue& cq, ibv_wc_status status, link::Refusal refusal) {
  queue.fail(cq, status);
  if (core_.type == IBV_QPT_RC || refusal == link::Refusal::memory) {
    connection_.refuse(refusal);
  }
  connection_.tell();
  core_.enter_error(IBV_WC_WR_FLUSH_ERR);
  return false;
}

}  // namespace ringbolt::device
