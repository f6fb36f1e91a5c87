// Requests from the network: what the protocol engine has us do with them. Hot path: receive().

#include "device/wire_responder.h"

#include <atomic>
#include <cstring>
#include <utility>

#include "base/clock.h"
#include "base/copy.h"
#include "base/guarded_copy.h"
#include "base/remote_access.h"
#include "device/failure_notes.h"
#include "device/receive_queue.h"
#include "device/receive_quirks.h"
#include "link/lane.h"
#include "wire/greeting.h"

namespace ringbolt::device {
namespace {

// So that one busy peer does not starve the others of a completion queue.
constexpr int kMaxRequestsAtOnce = 256;

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

/// As lanes tell of it: the receive queue knows no packets.
ReceivedMessage message_of(const transport::Received& received, uint32_t source_qpn) {
  ReceivedMessage message;
  message.source_qpn = source_qpn;
  message.opcode = received.kind == transport::Received::send ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM;
  message.length = received.length;
  message.flags = (received.is_solicited ? link::kSlotSolicited : 0U) |
                  (received.has_immediate ? link::kSlotImmediate : 0U) |
                  (received.invalidated ? link::kSlotInvalidate : 0U);
  message.immediate = received.invalidated ? received.invalidated_key : received.immediate;
  return message;
}

}  // namespace

WireResponder::WireResponder(QueuePairCore& core, const WirePath& path, Inboxes& inboxes)
    : core_(core),
      path_(path),
      inboxes_(inboxes),
      output_(core, core.counts.second(), path.mtu_bytes),
      knows_sender_(path.is_at_stream) {
  const ibv_qp_attr& attributes = core.attributes;
  if (core.type == IBV_QPT_RC) {
    rc_.emplace(transport::ResponderAttributes{path.remote_qpn, attributes.rq_psn, path.mtu_bytes,
                                               attributes.max_dest_rd_atomic, attributes.min_rnr_timer});
    if (path.is_at_stream) {
      rc_->enable_selective();
    }
  } else {
    uc_.emplace(transport::UcResponderAttributes{attributes.rq_psn, path.mtu_bytes});
  }
}

/// Where requests of the peer go. The engine that calls it knows nothing of locks: receive() holds ours.
struct WireResponder::RequestHost {
  WireResponder& responder;
  ReceiveQueue& queue;
  CompletionQueue& cq;
  const InboundPacket& packet;  ///< the one that is looked at
  QueuePairCore& core = responder.core_;

  // What the engine asks, in its words: transport/host.h.
  bool take_receive() RINGBOLT_NOT_ANALYSED {
    if (diverts()) {
      if (const Bypass bypass = queue.quirks()->choose(queue, 0); bypass != Bypass::none) {
        return bypass == Bypass::waits;
      }
    }
    if (!queue.open()) {
      core.counts.note(kSharedOutOfBuffer);
      responder.explain_starved(queue);
      return false;
    }
    queue.current().is_refused = !queue.translate();
    return true;
  }
  transport::Placed place_receive(uint32_t offset, std::span<const std::byte> bytes) RINGBOLT_NOT_ANALYSED {
    if (is_bypassing()) {
      queue.quirks()->append(bytes.data(), static_cast<uint32_t>(bytes.size()));
      return transport::Placed::ok;
    }
    const bool is_refused = queue.current().is_refused;
    // The message's length is not known before its last packet; `offset` and the bytes are the peer's word.
    if (is_refused || offset + bytes.size() > queue.current().pieces.length()) [[unlikely]] {
      queue.note_failure(is_refused ? IBV_WC_LOC_PROT_ERR : IBV_WC_LOC_LEN_ERR, offset + bytes.size(), true);
      return is_refused ? transport::Placed::protection : transport::Placed::too_long;
    }
    queue.place(offset, bytes.data(), static_cast<uint32_t>(bytes.size()));
    return transport::Placed::ok;
  }
  void complete_receive(const transport::Received& received) RINGBOLT_NOT_ANALYSED {
    const ReceivedMessage message = message_of(received, responder.path_.remote_qpn);
    if (is_bypassing()) {
      queue.quirks()->end(message);
      return;
    }
    if (ReceiveQuirks* const quirks = queue.quirks()) {
      const ibv_wc_status judgement =
          message.opcode == IBV_WC_RECV ? quirks->judge(queue.current(), message.length) : quirks->judge_by_faults();
      if (judgement != IBV_WC_SUCCESS) {
        responder.fault_ = judgement;
        fail(judgement == IBV_WC_LOC_LEN_ERR ? transport::ResponderFailure::receive_too_short
                                             : transport::ResponderFailure::receive_protection);
        return;
      }
    }
    queue.complete(cq, message);
  }
  bool invalidate(uint32_t key) RINGBOLT_NOT_ANALYSED {
    const bool is_done = invalidate_window(core.process, core.qpn, key);
    if (!is_done) {
      core.when_noting([&](QueuePairNotes&) { note_refused_invalidation(core, key); });
    }
    return is_done;
  }
  bool may_access(uint64_t address, uint32_t length, uint32_t key, transport::Access access) RINGBOLT_NOT_ANALYSED {
    // The program may have unmapped what it registered: looked at once a message, which costs a system call.
    const std::byte* memory = core.find_local(address, length, key, flags_of(access));
    const bool may = memory != nullptr && base::is_accessible(memory, length, access != transport::Access::read);
    return may || note_refused(address, length, key, flags_of(access));
  }
  bool write(uint64_t address, uint32_t key, std::span<const std::byte> bytes) RINGBOLT_NOT_ANALYSED {
    std::byte* target = core.find_local(address, bytes.size(), key, IBV_ACCESS_REMOTE_WRITE);
    if (target != nullptr) {
      const base::RemoteAccess by_peer;
      base::copy(target, bytes.data(), bytes.size());
    }
    return target != nullptr || note_refused(address, bytes.size(), key, IBV_ACCESS_REMOTE_WRITE);
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
  void fail(transport::ResponderFailure why) RINGBOLT_NOT_ANALYSED {
    responder.failure_ = why;
    if (core.notes != nullptr && !responder.refused_ && wire::is_atomic_request(packet.view.headers.bth.opcode)) {
      const auto& atomic = packet.view.headers.atomic;
      responder.refused_ = {atomic.address, sizeof(uint64_t), atomic.key, IBV_ACCESS_REMOTE_ATOMIC};
    }
    responder.explain_failure(why);
  }

 private:
  bool diverts() const RINGBOLT_NOT_ANALYSED { return queue.quirks() != nullptr && queue.quirks()->diverts(); }
  bool is_bypassing() RINGBOLT_NOT_ANALYSED { return diverts() && queue.quirks()->bypass() == Bypass::waits; }
  /// False: for the words about it, if fail() follows.
  bool note_refused(uint64_t address, uint64_t length, uint32_t key, uint32_t access) RINGBOLT_NOT_ANALYSED {
    if (core.notes != nullptr) {
      responder.refused_ = {address, length, key, access};
      if (core.type == IBV_QPT_UC) {
        responder.explain_failure(transport::ResponderFailure::remote_access);  // which ends nothing there
      }
    }
    return false;
  }
  /// The region may begin anywhere, so an aligned address of the peer's may still be an odd one of ours.
  uint64_t* find_word(uint64_t address, uint32_t key) RINGBOLT_NOT_ANALYSED {
    std::byte* target = core.find_local(address, sizeof(uint64_t), key, IBV_ACCESS_REMOTE_ATOMIC);
    // std::atomic_ref wants it so.
    const bool is_aligned = reinterpret_cast<uint64_t>(target) % sizeof(uint64_t) == 0;
    return target != nullptr && is_aligned && base::is_accessible(target, sizeof(uint64_t), true)
               ? reinterpret_cast<uint64_t*>(target)
               : (note_refused(address, sizeof(uint64_t), key, IBV_ACCESS_REMOTE_ATOMIC), nullptr);
  }
};

/// Before the peer hears of it.
[[gnu::cold, gnu::noinline]] void WireResponder::explain_failure(transport::ResponderFailure why) {
  using transport::ResponderFailure;
  const bool is_of_memory = why == ResponderFailure::remote_access || why == ResponderFailure::invalid_request;
  core_.when_noting([&](QueuePairNotes&) RINGBOLT_NOT_ANALYSED {
    if (is_of_memory && refused_) {
      const ibv_wc_status status =
          why == ResponderFailure::remote_access ? IBV_WC_REM_ACCESS_ERR : IBV_WC_REM_INV_REQ_ERR;
      explain_refused_request(core_, status, refused_->key, refused_->address, refused_->length, refused_->access);
    }
  });
}

/// RC repeats what finds no receive, UC loses it.
[[gnu::cold, gnu::noinline]] void WireResponder::explain_starved(ReceiveQueue& queue) {
  record_fate(trace::Kind::starved, core_.qpn);
  core_.when_noting([&](QueuePairNotes& notes) RINGBOLT_NOT_ANALYSED {
    if (core_.type == IBV_QPT_UC) {
      explain_dropped(core_, peer_text(core_),
                      {receives_text(core_, queue.ring().count()),
                       "post receives before the peer sends: UC does not wait for them"});
    } else {
      note_starved(core_, notes, queue.ring().count());
    }
  });
}

void WireResponder::receive(ReceiveQueue& queue, CompletionQueue& cq) {
  const uint64_t now = cq.look_ns() != 0 ? cq.look_ns() : base::now_ns();  // for a habit of microseconds alone
  InboundPacket packet;
  RequestHost host{*this, queue, cq, packet};
  // A program that spins on its memory may leave its queue full: a WRITE arrives all the same.
  const auto has_room = [&](const InboundPacket& first) RINGBOLT_REQUIRES(receive_half, cq.lock) {
    return !wire::takes_receive(first.view.headers.bth.opcode) || (cq.has_room() && !must_wait(queue));
  };
  const ibv_wc* const place = cq.poller_place();
  if (is_answer_due() && place != nullptr) {
    habit_.note_unanswered();
  }
  is_answer_due_.store(false, std::memory_order_relaxed);
  int taken = 0;
  for (; taken < kMaxRequestsAtOnce && !failure_ && inboxes_.requests.pop_if(packet, has_room); ++taken) {
    if (packet.flow.source != path_.udp.destination || packet.flow.destination != path_.udp.source) {
      core_.process.network().drops().count(core_.port->netdev_index, Drop::wrong_source);
      continue;  // a queue pair number alone proves nothing
    }
    count_request(packet.view);
    queue.note_established();
    note_sender(packet.view);
    if (rc_) {
      rc_->on_packet(now, packet.view, host);
    } else {
      uc_->on_packet(now, packet.view, host);
      if (packet.view.headers.bth.wants_ack && knows_sender_) {  // a stranger's means nothing
        report(transport::psn_add(packet.view.headers.bth.psn, 1));
      }
    }
  }
  // What is left was rung for already, and the program may go to sleep on what it has got.
  if (taken == kMaxRequestsAtOnce && cq.is_armed()) {
    core_.process.request_service(cq);
  }
  if (taken != 0) {
    count_news_of_engine();
  }
  if (rc_ && cq.poller_place() != place) {
    habit_.note_received(now);
    is_answer_due_.store(true, std::memory_order_relaxed);
    if (may_withhold()) {
      is_withholding_.store(true, std::memory_order_relaxed);
      core_.process.network().look_soon();  // for a program that does neither
      return;
    }
  }
  send_answers(now);
  if (failure_) {
    end(queue, cq, *failure_);
  }
}

/// A cable between two machines holds a UC message until there is a receive for it, and so its sender back (Thunderbolt
/// does); so do streams, unless the profile says otherwise. What arrives by a network is dropped, as UC has it.
bool WireResponder::must_wait(ReceiveQueue& queue) const {
  const bool diverts = queue.quirks() != nullptr && queue.quirks()->diverts();
  return core_.type == IBV_QPT_UC && core_.queues.shared == nullptr && path_.is_at_stream && !diverts &&
         !queue.current().is_open && queue.ring().is_empty();
}

void WireResponder::count_request(const wire::PacketView& view) {
  cluster::CounterLane& lane = core_.counts.second();
  count_received(lane, load_of(view));
  const uint8_t opcode = view.headers.bth.opcode;
  if (wire::has_reth(opcode)) {
    lane.add(wire::is_write(opcode) ? kLaneRxWrites : kLaneRxReads, 1);
  } else if (wire::is_atomic_request(opcode)) {
    lane.add(kLaneRxAtomics, 1);
  }
}

/// A sealed packet was let in: its sender has heard a greeting of ours.
void WireResponder::note_sender(const wire::PacketView& view) {
  if (knows_sender_ || !view.headers.bth.is_sealed) [[likely]] {
    return;
  }
  knows_sender_ = true;
  if (rc_) {
    rc_->enable_selective();
  }
}

void WireResponder::report(uint32_t psn) {
  transport::OutPacket packet;
  packet.headers.bth.opcode = wire::kSelectiveAck;
  packet.headers.bth.dest_qp = path_.remote_qpn;
  packet.headers.bth.psn = psn;
  packet.headers.aeth.syndrome = wire::kAckUnlimited;
  packet.payload = transport::OutPacket::Payload::bytes;
  packet.length = wire::kSelectiveAckBytes;
  packet.bytes = {};
  if (const auto place = output_.reserve(); !place.empty()) {
    output_.build(place, path_.udp, packet, inboxes_.seal.peer_token(), [&](std::byte* target) {
      std::memcpy(target, packet.bytes.data(), packet.length);
      return true;
    });
  } else {
    output_.drop();  // the next one says more
  }
  output_.send();
}

bool WireResponder::fill(const transport::OutPacket& packet, std::byte* target) const {
  using Payload = transport::OutPacket::Payload;
  if (packet.payload == Payload::bytes) {
    std::memcpy(target, packet.bytes.data(), packet.length);
  } else if (packet.payload == Payload::memory) {
    const std::byte* source = core_.find_local(packet.address, packet.length, packet.key, IBV_ACCESS_REMOTE_READ);
    if (source == nullptr) {
      return false;
    }
    const base::RemoteAccess by_peer;
    base::copy(target, source, packet.length);
  }
  return true;
}

/// As far as there is room.
void WireResponder::build_answers(uint64_t now_ns, PacketOutput& output) {
  has_unsealed_ = has_unsealed_ || inboxes_.seal.peer_token() == 0;
  transport::OutPacket packet;
  while (rc_->has_packet()) {
    const auto place = output.reserve();
    if (place.empty() || !rc_->next_packet(now_ns, packet)) {
      break;
    }
    const auto fill_place = [&](std::byte* target) RINGBOLT_REQUIRES(receive_half) { return fill(packet, target); };
    const bool is_built = output.build(place, path_.udp, packet, inboxes_.seal.peer_token(),
                                       [&](std::byte* target) { return base::call_locked(fill_place, target); });
    if (!is_built) {
      rc_->refuse_read();
      refused_ = core_.notes == nullptr
                     ? std::nullopt
                     : std::optional(Asked{packet.address, packet.length, packet.key, IBV_ACCESS_REMOTE_READ});
      explain_failure(transport::ResponderFailure::remote_access);
      failure_ = transport::ResponderFailure::remote_access;
    }
  }
}

/// What is withheld costs nothing if the program answers, and the time until it polls again, or until the service
/// thread looks after what a poller has taken from the socket, if it does not.
bool WireResponder::may_withhold() const {
  return habit_.is_prompt() && !path_.is_at_stream && !failure_ && !output_.is_holding() && rc_->has_acknowledgement();
}

void WireResponder::note_answer(wire::Headers& headers, uint64_t now_ns) {
  const bool is_withholding = is_withholding_.load(std::memory_order_relaxed);
  transport::OutPacket packet;
  if (is_withholding && (output_.is_holding() || !rc_->has_acknowledgement() || !rc_->next_packet(now_ns, packet))) {
    return;
  }
  if (is_withholding) {
    headers.bth.carries_ack = true;
    headers.carried_ack = {packet.headers.bth.psn, packet.headers.aeth};
    is_withholding_.store(false, std::memory_order_relaxed);
  }
  habit_.note_sent(now_ns);
  is_answer_due_.store(false, std::memory_order_relaxed);
}

void WireResponder::note_answer(PacketOutput* output, uint64_t now_ns) {
  habit_.note_sent(now_ns);
  is_answer_due_.store(false, std::memory_order_relaxed);
  if (!is_withholding_.load(std::memory_order_relaxed)) {
    return;
  }
  if (output == nullptr) {
    send_answers(now_ns);
    return;
  }
  build_answers(now_ns, *output);
  is_withholding_.store(rc_->has_packet(), std::memory_order_relaxed);  // there may have been no room
}

void WireResponder::finish() {
  if (is_withholding_.load(std::memory_order_relaxed)) {
    send_answers(base::now_ns());
  }
  output_.finish();
}

void WireResponder::send_answers(uint64_t now_ns) {
  is_withholding_.store(false, std::memory_order_relaxed);
  const bool has_packet = rc_ && rc_->has_packet();
  if (!has_packet && !output_.is_holding()) {
    return;
  }
  bool is_out = !output_.is_holding() || output_.send();  // first what found no room
  if (is_out && has_packet) {
    build_answers(now_ns, output_);
    is_out = output_.send();
  }
  if (!is_out) {
    return;
  }
  // The requesting half may have told the peer just before this went out that all of ours is sealed: then it was
  // dropped there. The peer asks again for everything but for the last word. Once: the token never goes back to 0.
  if (std::exchange(has_unsealed_, false) && inboxes_.seal.peer_token() != 0 && rc_ && rc_->repeat_refusal()) {
    send_answers(now_ns);
  }
}

void WireResponder::count_news_of_engine() {
  if (rc_) {
    if (trace::recorder() != nullptr) [[unlikely]] {
      record_news(core_.qpn, rc_->counters(), told_);
    }
    count_news(rc_->counters(), told_, core_.counts);
  } else {
    count_news(uc_->counters(), uc_told_, core_.counts);
  }
}

void WireResponder::end(ReceiveQueue& queue, CompletionQueue& cq, transport::ResponderFailure failure) {
  using transport::ResponderFailure;
  queue.fail(cq, fault_ != IBV_WC_SUCCESS                          ? fault_
                 : failure == ResponderFailure::receive_too_short  ? IBV_WC_LOC_LEN_ERR
                 : failure == ResponderFailure::receive_protection ? IBV_WC_LOC_PROT_ERR
                                                                   : IBV_WC_WR_FLUSH_ERR);
  core_.enter_error(IBV_WC_WR_FLUSH_ERR);
  if (failure == ResponderFailure::remote_access) {
    core_.counts.note(kSharedReceiveAccess);
    core_.announce(IBV_EVENT_QP_ACCESS_ERR);
  } else if (failure == ResponderFailure::invalid_request) {
    core_.announce(IBV_EVENT_QP_REQ_ERR);
  }
}

}  // namespace ringbolt::device
