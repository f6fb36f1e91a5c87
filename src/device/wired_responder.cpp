// Requests from the network: what the protocol engine has us do with them. Hot path: serve_requests.

#include <atomic>
#include <cstring>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/guarded_copy.h"
#include "base/remote_access.h"
#include "device/network.h"
#include "device/queue_pair.h"
#include "device/wired.h"
#include "wire/greeting.h"

namespace ringbolt::device {
namespace {

constexpr int kMaxRequestsAtOnce = 256;

bool is_vendor(uint8_t opcode) { return opcode == wire::kGreeting || opcode == wire::kSelectiveAck; }

uint32_t flags_of(transport::Access access) {
  switch (access) {
    case transport::Access::write:
      return IBV_ACCESS_REMOTE_WRITE;
    case transport::Access::read:
      return IBV_ACCESS_REMOTE_READ;
    case transport::Access::atomic:
      return IBV_ACCESS_REMOTE_ATOMIC;
  }
  return UINT32_MAX;
}

}  // namespace

/// Where requests of the peer go. The engine that calls it knows nothing of locks: serve_requests() holds ours.
struct QueuePair::RequestHost {
  QueuePair& qp;
  CompletionQueue& cq;

  bool take_receive() RINGBOLT_NOT_ANALYSED {
    if (const Bypass bypass = qp.choose_bypass(0); bypass != Bypass::none) {
      return bypass == Bypass::parked;
    }
    if (!qp.take_posted()) {
      qp.counts_.note(kSharedOutOfBuffer);
      return false;
    }
    Current& current = qp.receive_.current;
    current.pieces.count = 0;
    current.pieces.arena = {};
    current.is_refused =
        !qp.translate({current.wanted.data(), current.wanted_count}, false, IBV_ACCESS_LOCAL_WRITE, current.pieces);
    return true;
  }
  transport::Placed place_receive(uint32_t offset, std::span<const std::byte> bytes) RINGBOLT_NOT_ANALYSED {
    if (qp.receive_.bypass == Bypass::parked) {
      qp.receive_.parking.append(offset, bytes);
      return transport::Placed::ok;
    }
    const Pieces& pieces = qp.receive_.current.pieces;
    if (qp.receive_.current.is_refused) {
      return transport::Placed::protection;
    }
    if (offset + bytes.size() > pieces.length()) {
      return transport::Placed::too_long;
    }
    qp.scatter(offset, bytes.data(), static_cast<uint32_t>(bytes.size()));
    return transport::Placed::ok;
  }
  void complete_receive(const transport::Received& received) RINGBOLT_NOT_ANALYSED {
    link::SlotHeader header;
    header.flags = static_cast<uint8_t>((received.is_solicited ? link::kSlotSolicited : 0U) |
                                        (received.has_immediate ? link::kSlotImmediate : 0U) |
                                        (received.invalidated ? link::kSlotInvalidate : 0U));
    header.immediate = received.invalidated ? received.invalidated_key : received.immediate;
    const bool is_send = received.kind == transport::Received::send;
    if (qp.receive_.bypass == Bypass::parked) {
      qp.end_bypass(header, is_send ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM, received.length);
      return;
    }
    ibv_wc_status judgement = qp.is_constrained_ && is_send ? qp.judge_receive(received.length) : IBV_WC_SUCCESS;
    if (judgement == IBV_WC_SUCCESS && qp.faults_.has(fault::Subject::receive)) {
      judgement = qp.receive_fault();
    }
    if (judgement != IBV_WC_SUCCESS) {
      qp.receive_.fault = judgement;
      fail(judgement == IBV_WC_LOC_LEN_ERR ? transport::ResponderFailure::receive_too_short
                                           : transport::ResponderFailure::receive_protection);
      return;
    }
    qp.complete_receive(cq, qp.responding()->remote_qpn, header, is_send ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM,
                        received.length);
  }
  bool invalidate(uint32_t key) RINGBOLT_NOT_ANALYSED { return invalidate_window(qp.process_, qp.qpn_, key); }
  bool may_access(uint64_t address, uint32_t length, uint32_t key, transport::Access access) RINGBOLT_NOT_ANALYSED {
    // The program may have unmapped what it registered: looked at once a message, which costs a system call.
    const std::byte* memory = qp.find_local(address, length, key, flags_of(access));
    return memory != nullptr && base::is_accessible(memory, length, access != transport::Access::read);
  }
  bool write(uint64_t address, uint32_t key, std::span<const std::byte> bytes) RINGBOLT_NOT_ANALYSED {
    std::byte* target = qp.find_local(address, bytes.size(), key, IBV_ACCESS_REMOTE_WRITE);
    if (target != nullptr) {
      const base::RemoteAccess by_peer;
      base::copy(target, bytes.data(), bytes.size());
    }
    return target != nullptr;
  }
  std::optional<uint64_t> compare_swap(uint64_t address, uint32_t key, uint64_t compare,
                                       uint64_t swap) RINGBOLT_NOT_ANALYSED {
    auto* word = find_word(address, key);
    if (word == nullptr) {
      return std::nullopt;
    }
    const base::RemoteAccess by_peer;
    std::atomic_ref<uint64_t>(*word).compare_exchange_strong(compare, swap);
    return compare;
  }
  std::optional<uint64_t> fetch_add(uint64_t address, uint32_t key, uint64_t add) RINGBOLT_NOT_ANALYSED {
    auto* word = find_word(address, key);
    const base::RemoteAccess by_peer;
    return word == nullptr ? std::nullopt : std::optional(std::atomic_ref<uint64_t>(*word).fetch_add(add));
  }
  void fail(transport::ResponderFailure why) RINGBOLT_NOT_ANALYSED { qp.responding()->failure = why; }

 private:
  /// The region may begin anywhere, so an aligned address of the peer's may still be an odd one of ours.
  uint64_t* find_word(uint64_t address, uint32_t key) RINGBOLT_NOT_ANALYSED {
    std::byte* target = qp.find_local(address, sizeof(uint64_t), key, IBV_ACCESS_REMOTE_ATOMIC);
    const bool is_aligned = reinterpret_cast<uint64_t>(target) % sizeof(uint64_t) == 0;
    return target != nullptr && is_aligned && base::is_accessible(target, sizeof(uint64_t), true)
               ? reinterpret_cast<uint64_t*>(target)
               : nullptr;
  }
};

void QueuePair::arrive(InboundPacket&& packet, uint64_t now_ns, bool is_on_service_thread) {
  const ibv_qp_state state = state_.load(std::memory_order_relaxed);
  if (inboxes_ == nullptr || state == IBV_QPS_RESET || state == IBV_QPS_INIT || state == IBV_QPS_ERR) {
    return drop(Drop::not_ready);
  }
  const uint8_t opcode = packet.view.headers.bth.opcode;
  const bool is_ours = type_ == IBV_QPT_UD   ? wire::is_ud(opcode)
                       : is_vendor(opcode)   ? true
                       : type_ == IBV_QPT_RC ? wire::is_rc(opcode)
                                             : wire::is_uc(opcode);
  if (!is_ours) {
    return drop(Drop::wrong_type);
  }
  if (type_ != IBV_QPT_UD && !is_wired_.load(std::memory_order_acquire)) {
    return drop(Drop::not_ready);
  }
  if (opcode == wire::kGreeting) {
    if (const auto greeting = wire::parse_greeting(packet.view.payload)) {
      inboxes_->seal.hear(*greeting);
    }
  } else if (type_ != IBV_QPT_UD && !inboxes_->seal.admits(packet.view)) {
    return drop(Drop::unsealed);
  }
  const bool is_answer = wire::is_response(opcode) || opcode == wire::kGreeting;
  if (!(is_answer ? inboxes_->answers : inboxes_->requests).push(std::move(packet))) {
    return drop(Drop::inbox_full);
  }
  const CompletionQueue& cq = is_answer ? *queues_.send : *queues_.receive;
  if (!is_on_service_thread && !cq.is_polled_at(now_ns)) {
    process_.wake_service();
  }
}

void QueuePair::serve_requests(CompletionQueue& cq) {
  const uint64_t now = base::now_ns();
  RequestHost host{*this, cq};
  // A program that spins on its memory may leave its queue full: a WRITE arrives all the same.
  const auto has_room = [&](const InboundPacket& first) RINGBOLT_REQUIRES(receive_lock_, cq.lock_) {
    return !wire::takes_receive(first.view.headers.bth.opcode) || (cq.has_room() && !must_wait_for_receive());
  };
  InboundPacket packet;
  int taken = 0;
  for (; taken < kMaxRequestsAtOnce && !responding()->failure && inboxes_->requests.pop_if(packet, has_room); ++taken) {
    if (packet.flow.source != responding()->path.destination || packet.flow.destination != responding()->path.source) {
      drop(Drop::wrong_source);  // a queue pair number alone proves nothing
      continue;
    }
    count_request(packet.view);
    note_established();
    note_sender(packet.view);
    if (responding()->rc_responder) {
      responding()->rc_responder->on_packet(now, packet.view, host);
    } else {
      responding()->uc_responder->on_packet(now, packet.view, host);
      if (packet.view.headers.bth.wants_ack && responding()->knows_sender) {  // a stranger's means nothing
        report(transport::psn_add(packet.view.headers.bth.psn, 1));
      }
    }
  }
  if (taken == kMaxRequestsAtOnce && cq.is_armed()) {
    process_.request_service();
  }
  if (taken != 0) {
    count_responder();
  }
  send_answers(now);
  if (responding()->failure) {
    end_after(cq, *responding()->failure);
  }
}

/// A cable between two machines holds a UC message until there is a receive for it, and so its sender back (Thunderbolt
/// does); so do streams, unless the profile says otherwise. What arrives by a network is dropped, as UC has it.
bool QueuePair::must_wait_for_receive() const {
  return type_ == IBV_QPT_UC && queues_.shared == nullptr && !context_.port().streams.empty() && !diverts_unreceived_ &&
         !receive_.current.is_open && receive_.ring.is_empty();
}

void QueuePair::count_request(const wire::PacketView& view) {
  cluster::CounterLane& lane = counts_.second();
  count_received(lane, load_of(view));
  const uint8_t opcode = view.headers.bth.opcode;
  if (wire::has_reth(opcode)) {
    lane.add(wire::is_write(opcode) ? kLaneRxWrites : kLaneRxReads, 1);
  } else if (wire::is_atomic_request(opcode)) {
    lane.add(kLaneRxAtomics, 1);
  }
}

/// A sealed packet was let in: its sender has heard a greeting of ours.
void QueuePair::note_sender(const wire::PacketView& view) {
  if (responding()->knows_sender || !view.headers.bth.is_sealed) [[likely]] {
    return;
  }
  responding()->knows_sender = true;
  if (responding()->rc_responder) {
    responding()->rc_responder->enable_selective();
  }
}

void QueuePair::report(uint32_t psn) {
  transport::OutPacket packet;
  packet.headers.bth.opcode = wire::kSelectiveAck;
  packet.headers.bth.dest_qp = responding()->remote_qpn;
  packet.headers.bth.psn = psn;
  packet.headers.aeth.syndrome = wire::kAckUnlimited;
  packet.payload = transport::OutPacket::Payload::bytes;
  packet.length = wire::kSelectiveAckBytes;
  packet.bytes = {};
  Network::Lease& out = lease(receive_.out);
  if (const auto place = out.reserve(kMostPacketBytes); !place.empty()) {
    build(out, place, packet, counts_.second());
  } else {
    counts_.note(kSharedXmitDiscards);  // the next one says more
  }
  note_unsent(has_unsent_answers_, send_out(receive_.out));
}

void QueuePair::send_answers(uint64_t now_ns) {
  auto& responder = responding()->rc_responder;
  const bool has_packet = responder && responder->has_packet();
  if (!has_packet && !receive_.out) {
    return;
  }
  bool is_out = !receive_.out || send_out(receive_.out);  // first what found no room
  if (is_out && has_packet) {
    receive_.has_unsealed_out = receive_.has_unsealed_out || inboxes_->seal.peer_token() == 0;
    Network::Lease& out = lease(receive_.out);
    transport::OutPacket packet;
    for (auto place = out.reserve(kMostPacketBytes); !place.empty() && responder->next_packet(now_ns, packet);
         place = out.reserve(kMostPacketBytes)) {
      if (!build(out, place, packet, counts_.second())) {
        responder->refuse_read();
        responding()->failure = transport::ResponderFailure::remote_access;
      }
    }
    is_out = send_out(receive_.out);
  }
  note_unsent(has_unsent_answers_, is_out);
  if (!is_out) {
    return;
  }
  // The requesting half may have told the peer just before this went out that all of ours is sealed: then it was
  // dropped there. The peer asks again for everything but for the last word. Once: the token never goes back to 0.
  if (std::exchange(receive_.has_unsealed_out, false) && inboxes_->seal.peer_token() != 0 && responder &&
      responder->repeat_refusal()) {
    send_answers(now_ns);
  }
}

void QueuePair::count_responder() {
  if (responding()->rc_responder) {
    count_news(responding()->rc_responder->counters(), responding()->told.responder, counts_);
  } else {
    count_news(responding()->uc_responder->counters(), responding()->told.uc_responder, counts_);
  }
}

void QueuePair::end_after(CompletionQueue& cq, transport::ResponderFailure failure) {
  using transport::ResponderFailure;
  if (receive_.current.is_open) {
    receive_.current.is_open = false;
    const bool is_short = failure == ResponderFailure::receive_too_short;
    const bool is_bad = failure == ResponderFailure::receive_protection;
    push_failed_receive(cq, receive_.current.wr_id,
                        receive_.fault != IBV_WC_SUCCESS ? receive_.fault
                        : is_short                       ? IBV_WC_LOC_LEN_ERR
                        : is_bad                         ? IBV_WC_LOC_PROT_ERR
                                                         : IBV_WC_WR_FLUSH_ERR);
  }
  enter_error(IBV_WC_WR_FLUSH_ERR);
  if (failure == ResponderFailure::remote_access) {
    counts_.note(kSharedReceiveAccess);
  }
  if (failure == ResponderFailure::invalid_request) {
    announce(IBV_EVENT_QP_REQ_ERR);
  } else if (failure == ResponderFailure::remote_access) {
    announce(IBV_EVENT_QP_ACCESS_ERR);
  }
}

}  // namespace ringbolt::device
