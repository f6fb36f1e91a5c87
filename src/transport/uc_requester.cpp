#include "transport/uc_requester.h"

#include <algorithm>
#include <bit>

#include "base/assert.h"
#include "wire/opcode.h"
#include "wire/packet.h"

namespace ringbolt::transport {
namespace {

uint8_t opcode_of(const Operation& operation, bool is_first, bool is_last) {
  if (operation.kind == Operation::send) {
    return is_last ? (operation.has_immediate ? (is_first ? wire::kUcSendOnlyImmediate : wire::kUcSendLastImmediate)
                                              : (is_first ? wire::kUcSendOnly : wire::kUcSendLast))
                   : (is_first ? wire::kUcSendFirst : wire::kUcSendMiddle);
  }
  return is_last ? (operation.has_immediate ? (is_first ? wire::kUcWriteOnlyImmediate : wire::kUcWriteLastImmediate)
                                            : (is_first ? wire::kUcWriteOnly : wire::kUcWriteLast))
                 : (is_first ? wire::kUcWriteFirst : wire::kUcWriteMiddle);
}

}  // namespace

UcRequester::UcRequester(const Attributes& attributes)
    : attributes_(attributes),
      queue_mask_(std::bit_ceil(std::max(attributes.queue_depth, 1U)) - 1),
      operations_(size_t{queue_mask_} + 1),
      psn_(attributes.first_psn & wire::kPsnMask) {}

void UcRequester::submit(const Operation& operation) {
  RINGBOLT_ASSERT(can_submit());
  RINGBOLT_ASSERT(!operation.is_answered() && operation.length <= kMaxMessageBytes);
  operations_[submitted_++ & queue_mask_] = operation;
}

bool UcRequester::next_packet(uint64_t, OutPacket& out) {
  if (completed_ == submitted_) {
    return false;
  }
  const Operation& operation = operations_[completed_ & queue_mask_];
  const bool is_last = packet_ + 1 == packets_of(operation.length, attributes_.mtu_bytes);
  out.offset = packet_ * attributes_.mtu_bytes;
  out.length = std::min(operation.length - out.offset, attributes_.mtu_bytes);
  out.payload = out.length == 0 ? OutPacket::Payload::none : OutPacket::Payload::operation;
  out.operation = completed_;
  out.headers.bth = {.opcode = opcode_of(operation, packet_ == 0, is_last),
                     .is_solicited = is_last && operation.is_solicited,
                     .pad_count = static_cast<uint8_t>(wire::pad_bytes(out.length)),
                     .dest_qp = attributes_.dest_qp,
                     .psn = psn_};
  out.headers.reth = {operation.remote_address, operation.key, operation.length};
  out.headers.immediate = operation.immediate;
  psn_ = psn_add(psn_, 1);
  packet_ = is_last ? 0 : packet_ + 1;
  completed_ += is_last ? 1 : 0;
  return true;
}

}  // namespace ringbolt::transport
