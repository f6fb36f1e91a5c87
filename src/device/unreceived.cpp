// UC messages that meet no posted receive, on a device that does not hold their senders back: they are dropped, or wait
// here as far as there is room. docs/profiles.md, norecv.

#include "device/queue_pair.h"

namespace ringbolt::device {

Bypass QueuePair::choose_bypass(uint32_t total) {
  // Those that are parked come first.
  if (!diverts_unreceived_ || receive_.current.is_open || (!receive_.ring.is_empty() && receive_.parking.is_empty())) {
    receive_.bypass = Bypass::none;
  } else if (receive_.parking.begin(total)) {
    receive_.bypass = Bypass::parked;
  } else {
    receive_.bypass = Bypass::dropped;
    note_dropped();
  }
  receive_.bypassed_bytes = 0;
  return receive_.bypass;
}

void QueuePair::note_dropped() {
  counts_.note(kSharedOutOfBuffer);
  context_.port().warn(profile::Rule::no_receive, "a message that met no receive is dropped");
}

bool QueuePair::divert(Connection& connection, const link::SlotHeader& header) {
  link::LaneConsumer& lane = connection.receiver;
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
    const auto found = connection.remote == nullptr
                           ? link::PeerArenas::Found{nullptr, true}
                           : connection.remote->arenas().look(fields.arena_id, fields.offset, fields.total);
    if (found.is_awaited) {
      return false;
    }
    data = found.data;
  }
  if (is_first) {
    choose_bypass(is_chunk && !is_inline ? lane.fields<link::SendFields>().total : length);
  }
  if (receive_.bypass == Bypass::none) {
    return false;
  }
  if (receive_.bypass == Bypass::parked && data != nullptr) {
    receive_.parking.append(receive_.bypassed_bytes, {data, length});
    receive_.bypassed_bytes += length;
  } else if (receive_.bypass == Bypass::parked && is_shared) {
    receive_.bypass = Bypass::dropped;  // its memory can't be had, and it meets no receive that could say so
    note_dropped();
  }
  if (!is_chunk || (header.flags & link::kSlotLast) != 0) {
    end_bypass(header, is_word ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV,
               is_word ? lane.fields<link::RemoteFields>().total : receive_.bypassed_bytes);
  }
  lane.release();
  return true;
}

void QueuePair::end_bypass(const link::SlotHeader& header, ibv_wc_opcode opcode, uint32_t length) {
  if (receive_.bypass == Bypass::parked) {
    if (receive_.parking.finish(header, opcode, length)) {
      receive_attention_.store(true, std::memory_order_relaxed);
    } else {
      note_dropped();
    }
  }
  receive_.bypass = Bypass::none;
}

void QueuePair::deliver_parked(CompletionQueue& cq) {
  while (!receive_.parking.is_empty() && cq.has_room() && take_posted()) {
    const ParkedMessage message = receive_.parking.take();
    const ibv_wc_status status = place_parked(message);
    if (status != IBV_WC_SUCCESS) {
      receive_.current.is_open = false;
      push_failed_receive(cq, receive_.current.wr_id, status);
      enter_error(IBV_WC_WR_FLUSH_ERR);
      return;
    }
    const Connection* connection = connection_.load(std::memory_order_relaxed);
    const uint32_t source = connection != nullptr ? connection->remote_qpn : responding()->remote_qpn;
    if (connection != nullptr) {
      count_message(message.header, message.length);  // of what came over a network the packets were counted
    }
    complete_receive(cq, source, message.header, message.opcode, message.length);
  }
}

/// Puts the bytes into the current receive, as begin_message() would.
ibv_wc_status QueuePair::place_parked(const ParkedMessage& message) {
  receive_.current.pieces.count = 0;
  receive_.current.pieces.arena = {};
  if (message.opcode != IBV_WC_RECV) {
    return IBV_WC_SUCCESS;  // the data of a WRITE is where it belongs
  }
  if (!translate({receive_.current.wanted.data(), receive_.current.wanted_count}, false, IBV_ACCESS_LOCAL_WRITE,
                 receive_.current.pieces)) {
    return IBV_WC_LOC_PROT_ERR;
  }
  ibv_wc_status judgement = is_constrained_ ? judge_receive(message.length) : IBV_WC_SUCCESS;
  if (judgement == IBV_WC_SUCCESS && faults_.has(fault::Subject::receive)) {
    judgement = receive_fault();
  }
  if (judgement == IBV_WC_SUCCESS && message.length > receive_.current.pieces.length()) {
    judgement = IBV_WC_LOC_LEN_ERR;
  }
  if (judgement == IBV_WC_SUCCESS) {
    scatter(0, message.bytes.data(), message.length);
  }
  return judgement;
}

}  // namespace ringbolt::device
