#include "transport/rc_responder.h"

#include <algorithm>
namespace ringbolt::transport {
namespace {

// Duplicates of READs share the queue with new ones.
constexpr uint32_t kLeastAnswers = 8;

uint32_t answers_at_once(const ResponderAttributes& attributes) {
  return std::max(kLeastAnswers, 2 * std::max<uint32_t>(1, attributes.max_dest_rd_atomic));
}

constexpr uint32_t kNoPsn = UINT32_MAX;

}  // namespace

RcResponder::RcResponder(const ResponderAttributes& attributes)
    : attributes_(attributes),
      responses_(answers_at_once(attributes)),
      atomics_(std::max<uint32_t>(1, attributes.max_dest_rd_atomic), Executed{kNoPsn, 0}) {}

void RcResponder::enable_selective() {
  if (early_ == nullptr) {
    early_ = std::make_unique<ReorderBuffer>(attributes_.mtu_bytes);
  }
}

void RcResponder::advance(uint32_t packets, bool wants_ack) {
  expected_ += packets;
  if (wants_ack) {
    acknowledge();
  }
}

/// Replaces an acknowledgement that has not left yet: the latest says all.
void RcResponder::acknowledge() {
  const bool is_missing_some = early_ != nullptr && !early_->is_empty();
  responses_.push({.kind = is_missing_some ? Response::selective : Response::acknowledge,
                   .syndrome = is_missing_some ? wire::kNakSequence : wire::kAckUnlimited,
                   .psn = is_missing_some ? expected_psn() : psn_of(expected_ - 1),
                   .msn = messages_ & wire::kPsnMask,
                   .value = expected_});
}

/// The peer pauses and begins again at this packet; what it had sent after it is not for now.
RcResponder::Turn RcResponder::not_ready() {
  ++counters_.rnr_naks;
  responses_.push({.kind = Response::nak,
                   .syndrome = static_cast<uint8_t>(wire::kSyndromeRnr | (attributes_.min_rnr_timer & 0x1f)),
                   .psn = expected_psn(),
                   .msn = messages_ & wire::kPsnMask});
  is_silent_ = true;
  is_not_ready_ = true;
  return Turn::waits;
}

void RcResponder::on_early(const wire::PacketView& packet, uint64_t sequence) {
  ++counters_.out_of_sequence;
  if (is_not_ready_) {
    ++counters_.dropped;
    return;
  }
  if (early_ != nullptr) {
    if (sequence - expected_ < kWindowPackets && early_->hold(sequence, packet)) {
      ++counters_.held;
    }
    acknowledge();
    return;
  }
  ++counters_.dropped;
  if (!is_silent_) {
    is_silent_ = true;
    responses_.push({.kind = Response::nak,
                     .syndrome = wire::kNakSequence,
                     .psn = expected_psn(),
                     .msn = messages_ & wire::kPsnMask});
  }
}

void RcResponder::push_read(uint32_t psn, const wire::Reth& reth, uint32_t packets) {
  responses_.push({.kind = Response::read,
                   .psn = psn,
                   .msn = messages_ & wire::kPsnMask,
                   .packets = packets,
                   .length = reth.length,
                   .key = reth.key,
                   .address = reth.address});
}

void RcResponder::push_atomic(uint32_t psn, uint64_t value) {
  responses_.push(
      {.kind = Response::atomic, .psn = psn, .msn = messages_ & wire::kPsnMask, .packets = 1, .value = value});
}

/// As many atomics as the peer may have under way: an atomic must not be executed twice.
void RcResponder::remember(uint32_t psn, uint64_t value) { atomics_[atomics_done_++ % atomics_.size()] = {psn, value}; }

const RcResponder::Executed* RcResponder::recall(uint32_t psn) const {
  const auto found =
      std::find_if(atomics_.begin(), atomics_.end(), [psn](const Executed& it) { return it.psn == psn; });
  return found == atomics_.end() ? nullptr : &*found;
}

bool RcResponder::next_packet(uint64_t, OutPacket& out) {
  if (responses_.is_empty()) {
    return false;
  }
  Response& response = responses_.front();
  out.headers.bth = {.dest_qp = attributes_.dest_qp, .psn = response.psn};
  out.headers.aeth = {response.syndrome, response.msn};
  out.payload = OutPacket::Payload::none;
  out.length = 0;
  switch (response.kind) {
    case Response::acknowledge:
    case Response::nak:
      out.headers.bth.opcode = wire::kRcAcknowledge;
      break;
    case Response::selective:
      out.headers.bth.opcode = wire::kSelectiveAck;
      out.payload = OutPacket::Payload::bytes;
      out.length = wire::kSelectiveAckBytes;
      wire::emit(early_->describe(response.value, expected_), out.bytes);
      break;
    case Response::atomic:
      out.headers.bth.opcode = wire::kRcAtomicAcknowledge;
      out.headers.atomic_ack = response.value;
      break;
    case Response::read:
      describe_read(response, out);
      if (response.sent < response.packets) {
        return true;
      }
      break;
  }
  responses_.pop();
  return true;
}

void RcResponder::describe_read(Response& response, OutPacket& out) {
  const bool is_first = response.sent == 0;
  const bool is_last = response.sent + 1 == response.packets;
  out.headers.bth.opcode = is_first ? (is_last ? wire::kRcReadResponseOnly : wire::kRcReadResponseFirst)
                                    : (is_last ? wire::kRcReadResponseLast : wire::kRcReadResponseMiddle);
  out.payload = OutPacket::Payload::memory;
  out.address = response.address;
  out.key = response.key;
  out.offset = 0;
  out.length = std::min(response.length, attributes_.mtu_bytes);
  out.headers.bth.pad_count = static_cast<uint8_t>(wire::pad_bytes(out.length));
  if (out.length == 0) {
    out.payload = OutPacket::Payload::none;
  }
  last_read_psn_ = response.psn;
  response.psn = psn_add(response.psn, 1);
  response.address += out.length;
  response.length -= out.length;
  ++response.sent;
}

void RcResponder::refuse(uint8_t syndrome, uint32_t psn) {
  has_failed_ = true;
  refusal_ = {.kind = Response::nak, .syndrome = syndrome, .psn = psn, .msn = messages_ & wire::kPsnMask};
}

void RcResponder::refuse_read() {
  refuse(wire::kNakRemoteAccess, last_read_psn_);
  // The packet just fetched may have been the answer's last, and then the answer is gone from the queue.
  responses_.replace_all(refusal_);
}

bool RcResponder::repeat_refusal() {
  if (has_failed_) {
    responses_.replace_all(refusal_);
  }
  return has_failed_;
}

}  // namespace ringbolt::transport
