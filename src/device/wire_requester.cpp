// Sends over the network. Hot path: push_out() and take_answers().

#include "device/wire_requester.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "base/clock.h"
#include "device/failure_notes.h"
#include "device/failures.h"
#include "device/limits.h"
#include "device/send_queue.h"
#include "device/silence_timer.h"
#include "device/wire_responder.h"
#include "wire/greeting.h"

namespace ringbolt::device {
namespace {

// Packets taken in at once, so that one busy peer does not starve the others of a completion queue.
constexpr int kMaxAnswersAtOnce = 256;
// A greeting may get lost, and until all is agreed a loss costs more and anybody may send: further tries, further and
// further apart. A stranger hears a few of them.
constexpr uint32_t kMaxGreetingsToStrangers = 6;
constexpr uint32_t kMostPauses = 5;
// Each pause is four times the one before it, up to 2 ms * 4^5, some 2 s.
constexpr uint64_t kFirstGreetingPauseNs = 2'000'000;

// A stream loses nothing and holds its sender up by itself: a queue on the way is no reason to send less, and two rails
// are only kept busy by what fills the buffers of both.
constexpr transport::Congestion::Limits kStreamCongestion = {.first_window = transport::kWindowPackets,
                                                             .least_window = transport::kWindowPackets,
                                                             .least_by_delay = transport::kWindowPackets,
                                                             .largest_window = transport::kWindowPackets};
// As far as the receiver's inbox holds (Inbox::kMaxLargePackets), with room for a second sender; reports are not lost,
// but a receiver may take its time to post a receive.
constexpr transport::UcWindow::Limits kStreamUcWindow = {
    .packets = 512, .packets_per_report = 64, .patience_ns = 10'000'000'000};

/// Agents find out within a second that a cable or a node is gone, and send what was lost another way.
constexpr uint64_t kOverlayPatienceNs = 3'000'000'000;

ibv_wc_status status_of(transport::RequesterFailure why) {
  using transport::RequesterFailure;
  switch (why) {
    case RequesterFailure::retry_exceeded:
      return IBV_WC_RETRY_EXC_ERR;
    case RequesterFailure::rnr_retry_exceeded:
      return IBV_WC_RNR_RETRY_EXC_ERR;
    case RequesterFailure::remote_invalid_request:
      return IBV_WC_REM_INV_REQ_ERR;
    case RequesterFailure::remote_access:
      return IBV_WC_REM_ACCESS_ERR;
    case RequesterFailure::remote_operation:
      return IBV_WC_REM_OP_ERR;
    case RequesterFailure::local_protection:
      return IBV_WC_LOC_PROT_ERR;
    case RequesterFailure::bad_response:
      return IBV_WC_BAD_RESP_ERR;
  }
  return IBV_WC_GENERAL_ERR;
}

transport::Operation operation_of(const SendRequest& request) {
  transport::Operation operation;
  operation.length = request.length;
  operation.is_solicited = request.is_solicited;
  operation.is_fenced = request.is_fenced;
  operation.remote_address = request.remote_address;
  operation.key = request.key;
  switch (request.opcode) {
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      operation.has_immediate = true;
      operation.immediate = request.immediate;
      [[fallthrough]];
    case IBV_WR_RDMA_WRITE:
      operation.kind = transport::Operation::write;
      break;
    case IBV_WR_RDMA_READ:
      operation.kind = transport::Operation::read;
      break;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
      operation.kind = transport::Operation::compare_swap;
      operation.compare = request.compare_or_add;
      operation.swap_or_add = request.swap;
      break;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      operation.kind = transport::Operation::fetch_add;
      operation.swap_or_add = request.compare_or_add;
      break;
    case IBV_WR_SEND_WITH_INV:
      operation.invalidates = true;
      operation.invalidate_key = request.immediate;
      break;
    case IBV_WR_SEND_WITH_IMM:
      operation.has_immediate = true;
      operation.immediate = request.immediate;
      break;
    default:
      break;
  }
  return operation;
}

}  // namespace

/// Where the answers of our requests go. The engine that calls it knows nothing of locks: take_answers() holds ours.
/// Lives for one packet.
struct WireRequester::AnswerHost {
  WireRequester& requester;
  SendQueue& queue;

  bool place_read(uint32_t operation, uint32_t offset, std::span<const std::byte> bytes) {
    return place(operation, offset, bytes.data(), static_cast<uint32_t>(bytes.size()));
  }
  bool place_atomic(uint32_t operation, uint64_t value) {
    return place(operation, 0, reinterpret_cast<const std::byte*>(&value), sizeof value);
  }

 private:
  bool place(uint32_t operation, uint32_t offset, const std::byte* bytes, uint32_t length) RINGBOLT_NOT_ANALYSED {
    Pieces pieces;
    const SendRequest& request = queue.request(requester.index_of(operation));
    if (!requester.core_.translate({request.pieces, request.pieces_count}, false, IBV_ACCESS_LOCAL_WRITE, pieces)) {
      return false;
    }
    pieces.scatter(offset, bytes, length);
    return true;
  }
};

/// Operations, by numbers that wrap.
uint32_t WireRequester::completed() const { return rc_ ? rc_->completed() : uc_ ? uc_->completed() : 0; }

bool WireRequester::can_submit() const { return rc_ ? rc_->can_submit() : uc_ && uc_->can_submit(); }

bool WireRequester::next_packet(uint64_t now_ns, transport::OutPacket& packet) {
  if (rc_) {
    return rc_->next_packet(now_ns, packet);
  }
  if (uc_->is_idle() || !window_->may_send(now_ns) || !uc_->next_packet(now_ns, packet)) {
    return false;
  }
  packet.headers.bth.wants_ack = window_->on_sent(packet.headers.bth.psn);
  return true;
}

uint64_t WireRequester::timers_ns() const {
  return rc_ ? rc_->next_deadline_ns() : window_ ? window_->next_deadline_ns() : UINT64_MAX;
}

/// What only peers of ours understand.
void WireRequester::enable_extras() {
  if (rc_) {
    rc_->enable_selective();
  } else {
    window_->enable();
  }
}

void WireRequester::start(uint32_t slots) {
  if (is_started()) {
    return;
  }
  const ibv_qp_attr& attributes = core_.attributes;
  indices_.assign(slots, 0);
  if (core_.type == IBV_QPT_RC) {
    transport::RequesterAttributes requester;
    requester.dest_qp = path_.remote_qpn;
    requester.first_psn = attributes.sq_psn;
    requester.mtu_bytes = path_.mtu_bytes;
    requester.queue_depth = slots;
    requester.timeout_code = attributes.timeout;
    requester.retry_count = attributes.retry_cnt;
    // For all tries together, of which there are retry_cnt + 1.
    const uint64_t least_ns = core_.port->is_overlay ? kOverlayPatienceNs : kLeastTimeoutNs;
    requester.least_timeout_ns = least_ns / (attributes.retry_cnt + 1ULL);
    requester.rnr_retry = attributes.rnr_retry;
    requester.max_rd_atomic = attributes.max_rd_atomic;
    if (path_.is_at_stream) {
      requester.congestion = kStreamCongestion;
    }
    rc_.emplace(requester);
  } else {
    window_.emplace(attributes.sq_psn, path_.is_at_stream ? kStreamUcWindow : transport::UcWindow::Limits{});
    uc_.emplace(transport::UcRequester::Attributes{path_.remote_qpn, attributes.sq_psn, path_.mtu_bytes, slots});
  }
}

void WireRequester::introduce() {
  if (!path_.is_at_stream) {
    greet(inboxes_.seal.greeting());
    send();
  }
}

/// Behind all requests that were sent before: it may say that what follows is sealed.
void WireRequester::greet(const wire::Greeting& greeting) {
  transport::OutPacket packet;
  packet.headers.bth.opcode = wire::kGreeting;
  packet.headers.bth.dest_qp = path_.remote_qpn;
  packet.payload = transport::OutPacket::Payload::bytes;
  packet.length = wire::kGreetingBytes;
  wire::emit(greeting, packet.bytes);
  if (const auto place = output_.reserve(); !place.empty()) {
    output_.build(place, path_.udp, packet, 0, [&](std::byte* target) {
      std::memcpy(target, packet.bytes.data(), packet.length);
      return true;
    });
  } else {
    output_.drop();  // costs speed, never correctness
  }
}

void WireRequester::greet_again(uint64_t now_ns) {
  const bool is_stranger = inboxes_.seal.peer_token() == 0;
  if (now_ns < next_greeting_ns_ || (is_stranger && greetings_ >= kMaxGreetingsToStrangers)) {
    return;
  }
  next_greeting_ns_ = now_ns + (kFirstGreetingPauseNs << (2 * std::min(greetings_++, kMostPauses)));
  greet(inboxes_.seal.greeting());
}

bool WireRequester::submit(SendQueue& queue, SendEntry& entry, const SendRequest& request) {
  core_.cable.note_traffic();
  const bool is_atomic = request.opcode == IBV_WR_ATOMIC_CMP_AND_SWP || request.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
  if (request.length > kMaxMessageBytes) {
    return queue.fail_overlong(entry, request.length);
  }
  if (is_atomic && request.length != sizeof(uint64_t)) {
    return queue.fail(entry, IBV_WC_LOC_LEN_ERR);
  }
  Pieces pieces;
  const bool is_answered = is_atomic || request.opcode == IBV_WR_RDMA_READ;
  const uint32_t access = is_answered ? static_cast<uint32_t>(IBV_ACCESS_LOCAL_WRITE) : 0U;
  if (!core_.translate({request.pieces, request.pieces_count}, request.is_inline, access, pieces)) {
    return queue.fail(entry, IBV_WC_LOC_PROT_ERR);
  }
  if (!can_submit()) {
    return false;
  }
  const transport::Operation operation = operation_of(request);
  entry.operation = submitted_++;
  indices_[entry.operation & (static_cast<uint32_t>(indices_.size()) - 1)] =
      core_.sends.next.load(std::memory_order_relaxed);
  if (rc_) {
    rc_->submit(operation);
  } else {
    uc_->submit(operation);
  }
  if (operation.kind == transport::Operation::send) {
    core_.counts.first().add(kLaneMessages, 1);
  }
  entry.phase = SendPhase::wired;
  return true;
}

bool WireRequester::fill(SendQueue& queue, const transport::OutPacket& packet, std::byte* target) {
  using Payload = transport::OutPacket::Payload;
  if (packet.payload == Payload::bytes) {
    std::memcpy(target, packet.bytes.data(), packet.length);
  } else if (packet.payload == Payload::operation) {
    const SendRequest& request = queue.request(index_of(packet.operation));
    Pieces pieces;
    if (!core_.translate({request.pieces, request.pieces_count}, request.is_inline, 0, pieces)) {
      return false;
    }
    pieces.gather(packet.offset, target, packet.length);
  }
  return true;
}

/// What is built leaves. False: some of it finds no room.
bool WireRequester::send() {
  const bool is_out = output_.send();
  const uint64_t timers = core_.state() != IBV_QPS_ERR ? timers_ns() : UINT64_MAX;
  const uint64_t deadline = is_out ? timers : 0;
  // Before watch_until(), whose fence makes it visible to the look that it asks for.
  deadline_ns_.store(deadline, std::memory_order_relaxed);
  // What may get lost on a network is repeated whether the program polls or not.
  if (deadline != UINT64_MAX) {
    core_.process.watch_until(deadline);
  }
  return is_out;
}

/// An acknowledgement, without getting longer than the packets of long messages.
/// Only a peer of ours reads it, and only in a sealed packet.
bool WireRequester::may_carry(const transport::OutPacket& packet) const {
  return rc_ && inboxes_.seal.peer_token() != 0 && packet.length + wire::kCarriedAckBytes <= path_.mtu_bytes;
}

/// The acknowledgement that `packet`, which does not leave, was to carry.
[[gnu::cold, gnu::noinline]] void WireRequester::acknowledge(const transport::OutPacket& packet) {
  transport::OutPacket alone;
  alone.headers = wire::carried_acknowledgement(packet.headers);
  if (const auto place = output_.reserve(); packet.headers.bth.carries_ack && !place.empty()) {
    output_.build(place, path_.udp, alone, inboxes_.seal.peer_token(), [](std::byte*) { return true; });
  }
}

/// What is to leave; send() after it. False: nothing may, as what was built before finds no room. The first
/// packet that is short enough takes an acknowledgement along that `responder` withholds; null: there is none.
bool WireRequester::build_packets(SendQueue& queue, uint64_t now_ns, WireResponder* responder) {
  if (!is_started()) {
    return false;
  }
  if (output_.has_unsent() && !send()) [[unlikely]] {
    return false;  // meanwhile the engine may think of something better
  }
  // The peer has shown that it is one of ours. At both ends of a stream there are none but ours.
  if (path_.is_at_stream || inboxes_.seal.peer_token() != 0) {
    enable_extras();
  }
  if (!path_.is_at_stream && !inboxes_.seal.is_agreed()) {
    greet_again(now_ns);
  }
  // UC loses what it sends meanwhile, and must not wait for reports on it.
  if (window_ && !core_.port->is_up()) {
    window_->let_go();
  }
  if (!may_have_packet()) {
    return true;  // mostly so after an answer: then there is no place to look for
  }
  transport::OutPacket packet;
  while (may_have_packet()) {
    const auto place = output_.reserve();
    if (place.empty() || !next_packet(now_ns, packet)) {
      break;
    }
    if (responder != nullptr && responder->is_answer_due() && may_carry(packet)) {
      const ReceiveGuard guard(core_.locks);
      responder->note_answer(packet.headers, now_ns);
    }
    const auto fill_place = [&](std::byte* target) RINGBOLT_REQUIRES(send_half) { return fill(queue, packet, target); };
    const bool is_built = output_.build(place, path_.udp, packet, inboxes_.seal.peer_token(),
                                        [&](std::byte* target) { return base::call_locked(fill_place, target); });
    if (!is_built) {
      core_.when_noting([&](QueuePairNotes& notes) RINGBOLT_NOT_ANALYSED {
        const uint32_t at = queue.place(index_of(packet.operation));
        notes.say_why_send(why_pieces_refused(core_, {notes.pieces(at), notes.send(at).pieces}, 0));
      });
      // It was taken out of the responder: nobody else would send it.
      acknowledge(packet);
      core_.enter_error(IBV_WC_LOC_PROT_ERR);  // the program took the memory away while it was being sent
      break;
    }
  }
  return true;
}

void WireRequester::send_packets(SendQueue& queue, uint64_t now_ns) {
  if (build_packets(queue, now_ns, nullptr)) {
    send();
  }
}

void WireRequester::push_out(SendQueue& queue, WireResponder& responder) {
  const uint64_t now = base::now_ns();
  const bool may_send = build_packets(queue, now, &responder);
  if (responder.is_answer_due()) {
    // Nothing could carry it. Behind the requests: packets leave as one datagram if the last one is no longer than the
    // others.
    const ReceiveGuard guard(core_.locks);
    responder.note_answer(may_send ? &output_ : nullptr, now);
  }
  if (may_send) {
    send();
  }
}

void WireRequester::send_unsent(SendQueue& queue) {
  if (output_.is_holding() && send() && core_.state() != IBV_QPS_ERR) {
    send_packets(queue, base::now_ns());
  }
}

void WireRequester::take_answer(SendQueue& queue, const InboundPacket& packet, uint64_t now_ns) {
  if (packet.view.headers.bth.opcode == wire::kGreeting) {
    const auto greeting = wire::parse_greeting(packet.view.payload);
    if (const auto answer = greeting ? inboxes_.seal.take(*greeting) : std::nullopt) {
      greet(*answer);
      send();
    }
  } else if (rc_) {
    AnswerHost host{*this, queue};
    rc_->on_packet(now_ns, packet.view, host);
  } else if (window_) {
    window_->on_report(packet.view.headers.bth.psn);
  }
}

void WireRequester::take_answers(SendQueue& queue, uint64_t look_ns) {
  // Who polls for an answer comes here each time: that nothing is here, and no timer due, is to cost next to nothing.
  if (inboxes_.answers.is_empty() && look_ns != 0 && look_ns < timers_ns() && !output_.is_holding()) {
    return;
  }
  InboundPacket packet;
  const uint64_t now = base::now_ns();
  bool has_news = false;
  for (int taken = 0; taken < kMaxAnswersAtOnce && inboxes_.answers.pop(packet); ++taken) {
    // Looked at here and not by whoever read the socket, who holds no lock under which the path stays as it is.
    if (packet.flow.source != path_.udp.destination || packet.flow.destination != path_.udp.source) {
      core_.process.network().drops().count(core_.port->netdev_index, Drop::wrong_source);
      continue;
    }
    if (packet.buffer.is_held()) {  // else it was counted with the packet that carried it
      count_received(core_.counts.first(), load_of(packet.view));
    }
    take_answer(queue, packet, now);
    has_news = has_news || packet.view.headers.bth.opcode != wire::kGreeting;
  }
  if (now >= timers_ns()) {
    if (rc_) {
      // An interruption of a stream is not the peer's silence.
      rc_->excuse(core_.process.network().excused_until_ns(path_.udp.interface_index, now));
      rc_->on_timer(now);
    }
    has_news = true;
  }
  if (has_news && rc_) {
    if (trace::recorder() != nullptr) [[unlikely]] {
      record_news(core_.qpn, rc_->counters(), told_);
    }
    count_news(rc_->counters(), told_, core_.counts);
  }
  if (has_news && core_.state() != IBV_QPS_ERR) {
    send_packets(queue, now);
  }
  send_unsent(queue);
}

bool WireRequester::is_complete(const SendEntry& entry) const {
  const bool is_over = static_cast<int32_t>(completed() - entry.operation) > 0;
  return is_over && (core_.type == IBV_QPT_RC || !output_.is_holding());  // nobody answers UC
}

ibv_wc_status WireRequester::failure() const {
  const bool has_failed = rc_ && rc_->failure().has_value();
  return has_failed ? status_of(rc_->failure()->why) : IBV_WC_SUCCESS;
}

void WireRequester::explain_failure(QueuePairNotes& notes, ibv_wc_status status) {
  const ibv_qp_attr& attributes = core_.attributes;
  if (status == IBV_WC_RETRY_EXC_ERR) {
    const uint64_t waited_ns = transport_timeout_ns(attributes) * (attributes.retry_cnt + 1ULL);
    notes.say_why_send(why_unanswered(core_, waited_ns, ""));
  } else if (status == IBV_WC_RNR_RETRY_EXC_ERR) {
    notes.say_why_send({fmt::format("{} had no receive for it, more often than the {} times that rnr_retry allows",
                                    peer_text(core_), attributes.rnr_retry),
                        remedy_of(status)});
  } else if (status == IBV_WC_LOC_PROT_ERR) {
    const uint32_t at = core_.sends.done.load(std::memory_order_relaxed) & (static_cast<uint32_t>(indices_.size()) - 1);
    notes.say_why_send(why_pieces_refused(core_, {notes.pieces(at), notes.send(at).pieces}, IBV_ACCESS_LOCAL_WRITE));
  }
}

bool WireRequester::give_up() {
  const ibv_wc_status status = failure();
  if (status != IBV_WC_SUCCESS) {
    core_.when_noting([&](QueuePairNotes& notes) RINGBOLT_NOT_ANALYSED { explain_failure(notes, status); });
    core_.enter_error(status);
  }
  return status != IBV_WC_SUCCESS;
}

}  // namespace ringbolt::device
