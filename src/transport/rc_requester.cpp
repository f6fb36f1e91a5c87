// Sending: which packet goes out next.

#include "transport/rc_requester.h"

#include <algorithm>
#include <bit>

#include "base/assert.h"

namespace ringbolt::transport {
namespace {

// 4.096 us times 2 to the power of the code (9.7.6.1.3).
constexpr uint64_t kTimeoutUnitNs = 4096;
// At least this often somebody is asked to acknowledge, whatever the window: an ACK frees that many operations at once.
constexpr uint32_t kMostUnaskedPackets = 32;
// What others have under way at most (rdma_rxe), and so are sized for. A loss costs go-back-N all of it.
constexpr uint32_t kStrangerWindowPackets = 128;
// Parts of a window that a READ is asked for in, see send_new().
constexpr uint32_t kReadPiecesPerWindow = 4;
// After so long the queues on the way are somebody else's: see Congestion::on_idle().
constexpr uint64_t kIdleNs = 100'000'000;

uint64_t timeout_ns(const RequesterAttributes& attributes) {
  const uint64_t programmed = kTimeoutUnitNs << (attributes.timeout_code & 0x1f);
  return (attributes.timeout_code & 0x1f) == 0 ? 0 : std::max(programmed, attributes.least_timeout_ns);
}

Congestion::Limits within_window(Congestion::Limits limits) {
  limits.largest_window = std::min(limits.largest_window, kWindowPackets);
  return limits;
}

/// Opcodes by place: first, middle, last, only.
uint8_t data_opcode(const Operation& operation, bool is_first, bool is_last) {
  const bool is_send = operation.kind == Operation::send;
  if (!is_last) {
    return is_send ? (is_first ? wire::kRcSendFirst : wire::kRcSendMiddle)
                   : (is_first ? wire::kRcWriteFirst : wire::kRcWriteMiddle);
  }
  if (!is_send) {
    return operation.has_immediate ? (is_first ? wire::kRcWriteOnlyImmediate : wire::kRcWriteLastImmediate)
                                   : (is_first ? wire::kRcWriteOnly : wire::kRcWriteLast);
  }
  if (operation.invalidates) {
    return is_first ? wire::kRcSendOnlyInvalidate : wire::kRcSendLastInvalidate;
  }
  return operation.has_immediate ? (is_first ? wire::kRcSendOnlyImmediate : wire::kRcSendLastImmediate)
                                 : (is_first ? wire::kRcSendOnly : wire::kRcSendLast);
}

}  // namespace

RcRequester::RcRequester(const RequesterAttributes& attributes)
    : attributes_(attributes),
      timeout_ns_(timeout_ns(attributes)),
      queue_mask_(std::bit_ceil(std::max(attributes.queue_depth, 1U)) - 1),
      entries_(size_t{queue_mask_} + 1),
      sent_(kWindowPackets),
      congestion_(within_window(attributes.congestion)),
      retries_left_(attributes.retry_count),
      rnr_retries_left_(attributes.rnr_retry) {
  attributes_.max_rd_atomic = std::max<uint8_t>(1, attributes.max_rd_atomic);
}

void RcRequester::submit(const Operation& operation) {
  RINGBOLT_ASSERT(can_submit());
  RINGBOLT_ASSERT(operation.length <= kMaxMessageBytes);
  const uint32_t packets = operation.is_atomic() ? 1 : packets_of(operation.length, attributes_.mtu_bytes);
  entry(submitted_) = {operation, submitted_end_, packets};
  submitted_end_ += packets;
  ++submitted_;
}

uint32_t RcRequester::window() const {
  return is_selective_ ? congestion_.window() : std::min(congestion_.window(), kStrangerWindowPackets);
}

/// Sent, and neither delivered nor lost: what the network may still hold.
uint32_t RcRequester::in_flight() const {
  const auto span = static_cast<uint32_t>(next_ - oldest_);
  if (!delivered_.any() && !lost_.any()) {
    return span;
  }
  return span - delivered_.count(oldest_, next_) - lost_.count(oldest_, next_);
}

bool RcRequester::next_packet(uint64_t now_ns, OutPacket& out) {
  if (failure_ || resume_at_ns_ != 0) {
    return false;
  }
  return lost_.any() ? send_again(now_ns, out) : send_new(now_ns, out);
}

/// The oldest of what is lost, before anything new.
bool RcRequester::send_again(uint64_t now_ns, OutPacket& out) {
  uint64_t first = lost_.find_set(oldest_, next_);
  RINGBOLT_ASSERT(first != next_);
  const uint32_t operation = sent(first).operation;
  uint64_t end = first + 1;
  if (entry(operation).operation.kind == Operation::read) {
    find_request(first, end);
  }
  const uint32_t flying = in_flight();
  if (flying != 0 && flying + lost_.count(first, end) > window()) {
    return false;
  }
  lost_.clear_range(first, end);
  const auto packets = static_cast<uint32_t>(end - first);
  describe(first, packets, operation, true, out);
  mark_sent(now_ns, first, packets, operation, true);
  if (is_selective_ && entry(operation).operation.kind == Operation::read) {
    reread_end_ = std::max(reread_end_, end);
    if (first < acknowledged_) {
      read_again_after(end, operation);
    }
  }
  ++counters_.resent;
  return true;
}

/// READs are executed in their order, and one that is asked for again is executed again: those after it, whose answers
/// tell of an earlier time, are asked for again behind it.
void RcRequester::read_again_after(uint64_t end, uint32_t operation) {
  for (uint64_t at = end; at < next_; ++at) {
    if (sent(at).operation != operation && is_read(at)) {
      delivered_.clear(at);
      lost_.set(at);
    }
  }
}

/// From the first lost answer of a READ to the range to ask for again.
void RcRequester::find_request(uint64_t& first, uint64_t& end) const {
  uint64_t begin = first;
  while (begin > oldest_ && sent(begin - 1).operation == sent(first).operation && !piece_ends_.test(begin - 1)) {
    --begin;
  }
  const bool is_executed = begin < acknowledged_;
  if (!is_executed) {
    first = begin;  // as it was: a part would make the peer count on from the part's end
  }
  while (end < next_ && !piece_ends_.test(end - 1) && (!is_executed || lost_.test(end))) {
    ++end;
  }
}

bool RcRequester::send_new(uint64_t now_ns, OutPacket& out) {
  if (sending_ == submitted_ || next_ - oldest_ == kWindowPackets) {
    return false;
  }
  if (next_ == oldest_ && now_ns - activity_at_ns_ > kIdleNs) {
    congestion_.on_idle();
  }
  const Entry& current = entry(sending_);
  const Operation& operation = current.operation;
  const auto index = static_cast<uint32_t>(next_ - current.first);
  if (operation.is_fenced && index == 0 && answers_under_way_ != 0) {
    return false;
  }
  if (operation.is_answered() && answers_under_way_ >= attributes_.max_rd_atomic) {
    return false;
  }
  const uint32_t limit = window();
  const uint32_t flying = in_flight();
  // A window that shrank under packets which nobody was asked to acknowledge would stay shut: one more may go, and
  // asks.
  if (flying >= limit && asked_end_ > acknowledged_) {
    return false;
  }
  uint32_t packets = 1;
  if (operation.kind == Operation::read) {
    // Parts of a window, so that some are asked for while others arrive, and one that waits for a repair leaves room.
    const uint32_t piece = limit / std::min<uint32_t>(attributes_.max_rd_atomic, kReadPiecesPerWindow);
    const auto room = static_cast<uint32_t>(kWindowPackets - (next_ - oldest_));
    packets = std::min({current.packets - index, std::max(piece, 1U), room});
    if (flying != 0 && flying + packets > limit) {
      return false;
    }
  }
  if (next_ == oldest_) {
    progress_at_ns_ = now_ns;
  }
  const uint64_t first = next_;
  next_ += packets;
  if (operation.is_answered()) {
    ++answers_under_way_;
    piece_ends_.set(next_ - 1);
  }
  describe(first, packets, sending_, false, out);
  mark_sent(now_ns, first, packets, sending_, false);
  if (next_ == current.first + current.packets) {
    ++sending_;
  }
  return true;
}

void RcRequester::mark_sent(uint64_t now_ns, uint64_t from, uint32_t packets, uint32_t operation, bool is_resent) {
  const bool is_answered = entry(operation).operation.is_answered();
  for (uint32_t i = 0; i < packets; ++i) {
    sent(from + i) = {now_ns, ++send_order_, operation, is_answered, is_resent, i == 0};
  }
  activity_at_ns_ = now_ns;
  ++counters_.packets;
}

/// Seldom enough that acknowledgements cost little, often enough that the window never runs dry for want of one.
bool RcRequester::wants_ack(bool is_last, bool is_resent) {
  const uint32_t limit = window();
  const uint32_t interval = std::clamp(limit / 4, 1U, kMostUnaskedPackets);
  const bool asks = is_last || is_resent || unasked_packets_ + 1 >= interval || in_flight() >= limit;
  unasked_packets_ = asks ? 0 : unasked_packets_ + 1;
  return asks;
}

void RcRequester::describe(uint64_t sequence, uint32_t packets, uint32_t operation, bool is_resent, OutPacket& out) {
  const Entry& of = entry(operation);
  const auto index = static_cast<uint32_t>(sequence - of.first);
  const bool is_last = index + packets == of.packets;
  out.headers.bth = {.dest_qp = attributes_.dest_qp, .psn = psn_of(sequence)};
  out.headers.bth.wants_ack = wants_ack(is_last || of.operation.is_answered(), is_resent);
  if (out.headers.bth.wants_ack) {
    asked_end_ = std::max(asked_end_, sequence + packets);
  }
  out.operation = operation;
  out.payload = OutPacket::Payload::none;
  out.offset = 0;
  out.length = 0;
  const Operation& what = of.operation;
  if (what.kind == Operation::read) {
    const uint32_t offset = index * attributes_.mtu_bytes;
    out.headers.bth.opcode = wire::kRcReadRequest;
    const auto length = std::min<uint64_t>(what.length - offset, uint64_t{packets} * attributes_.mtu_bytes);
    out.headers.reth = {what.remote_address + offset, what.key, static_cast<uint32_t>(length)};
  } else if (what.is_atomic()) {
    out.headers.bth.opcode = what.kind == Operation::compare_swap ? wire::kRcCompareSwap : wire::kRcFetchAdd;
    out.headers.atomic = {what.remote_address, what.key, what.swap_or_add, what.compare};
  } else {
    describe_data(of, index, out);
  }
}

void RcRequester::describe_data(const Entry& entry, uint32_t index, OutPacket& out) const {
  const Operation& operation = entry.operation;
  const bool is_last = index + 1 == entry.packets;
  wire::Headers& headers = out.headers;
  headers.bth.opcode = data_opcode(operation, index == 0, is_last);
  headers.bth.is_solicited = is_last && operation.is_solicited;
  out.offset = index * attributes_.mtu_bytes;
  out.length = std::min(operation.length - out.offset, attributes_.mtu_bytes);
  out.payload = out.length == 0 ? OutPacket::Payload::none : OutPacket::Payload::operation;
  headers.bth.pad_count = static_cast<uint8_t>(wire::pad_bytes(out.length));
  headers.reth = {operation.remote_address, operation.key, operation.length};
  headers.immediate = operation.immediate;
  headers.invalidate_key = operation.invalidate_key;
}

}  // namespace ringbolt::transport
