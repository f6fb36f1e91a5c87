// What befalls sends on purpose: lost messages, turned bits, cables that are slow or long, receivers that are never
// ready, and completions that are late, wrong or missing. docs/faults.md is the page for users.

#include <algorithm>
#include <new>

#include "base/clock.h"
#include "device/limits.h"
#include "device/queue_pair.h"
#include "fault/stream.h"
#include "wire/syndrome.h"

namespace ringbolt::device {
namespace {

bool takes_receive(ibv_wr_opcode opcode) {
  return opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM || opcode == IBV_WR_SEND_WITH_INV ||
         opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

/// What faults judge has two bytes at least.
size_t judged_bytes(uint32_t length) { return std::max<size_t>(length, 2); }

}  // namespace

bool QueuePair::make_fates() noexcept try {
  if (send_.fates.empty()) {
    send_.fates.resize(send_.entries.size());
  }
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

SendFate& QueuePair::fate_of(uint32_t index) {
  const uint32_t slot = index & entry_mask_;
  if (!send_.entries[slot].has_fate) {
    send_.entries[slot].has_fate = true;
    send_.fates[slot] = {};
  }
  return send_.fates[slot];
}

bool QueuePair::ordain(uint32_t index) noexcept try {
  const uint32_t slot = index & entry_mask_;
  const uint32_t length = send_.entries[slot].length;
  const bool has_faults = faults_.has(fault::Subject::message);
  const bool is_like_mac = context_.port().profile.knobs.completes_early && completes_early_;
  if (!has_faults && !is_like_mac) {
    return true;
  }
  if (!make_fates()) {
    return false;
  }
  SendFate& fate = fate_of(index);
  const uint64_t now = base::now_ns();
  const fault::Verdict verdict =
      has_faults ? faults_.judge(fault::Subject::message, context_.port(), judged_bytes(length)) : fault::Verdict{};
  fate.number = verdict.number;
  const bool wants_early = completes_early_ && (is_like_mac || verdict.is_early);
  const bool is_staged = (wants_early || verdict.flip_count != 0) && stage(index);
  if (is_staged && verdict.flip_count != 0) {
    fault::turn_bits(verdict, send_.staged[slot].span());
  }
  fate.is_early = wants_early && is_staged;
  fate.is_lost = verdict.is_lost;
  fate.is_not_ready = verdict.is_not_ready && takes_receive(send_.requests[slot].opcode);
  fate.departs_ns = (is_like_mac ? early_departure_ns(length, now) : now) + verdict.hold_ns;
  fate.is_held = verdict.hold_ns != 0 || (is_like_mac && context_.port().profile.knobs.early_lead_ns != 0);
  return true;
} catch (const std::bad_alloc&) {
  return false;  // the number that the message took with the faults is gone, as after any refused call
}

void QueuePair::take_back(uint32_t first, uint64_t line_free_ns) {
  for (uint32_t index = tail_.load(std::memory_order_relaxed); index != first;) {
    const SendEntry& entry = send_.entries[--index & entry_mask_];
    count_out(entry);
    drop_copy(index);
  }
  send_.line_free_ns = line_free_ns;
  tail_.store(first, std::memory_order_relaxed);
}

QueuePair::Turn QueuePair::take_turn(uint32_t index) {
  SendEntry& entry = send_.entries[index & entry_mask_];
  SendFate& fate = send_.fates[index & entry_mask_];
  const uint64_t now = base::now_ns();
  if (fate.departs_ns > now) {
    return Turn::wait;
  }
  if (!fate.is_lost && !fate.is_not_ready) {
    return Turn::execute;
  }
  if (type_ == IBV_QPT_RC) {
    return try_again(index, now);
  }
  const Connection* connection = connection_.load(std::memory_order_relaxed);
  if (connection != nullptr) {
    finish(entry, *connection);
  }
  entry.phase = SendPhase::sent;  // nobody knows that it is lost
  return Turn::over;
}

/// RC hears no acknowledgement, or that the receiver is not ready, and sends again as often as it was told to.
QueuePair::Turn QueuePair::try_again(uint32_t index, uint64_t now_ns) {
  SendEntry& entry = send_.entries[index & entry_mask_];
  SendFate& fate = send_.fates[index & entry_mask_];
  constexpr uint32_t kForever = 7;
  const bool is_over = fate.is_lost
                           ? fate.losses >= send_attributes().retry_cnt
                           : send_attributes().rnr_retry != kForever && fate.refusals >= send_attributes().rnr_retry;
  if (is_over) {
    fail(entry, fate.is_lost ? IBV_WC_RETRY_EXC_ERR : IBV_WC_RNR_RETRY_EXC_ERR);
    return Turn::over;
  }
  ++(fate.is_lost ? fate.losses : fate.refusals);
  fate.is_held = true;
  const Connection* connection = connection_.load(std::memory_order_relaxed);
  const uint64_t timer_us = connection != nullptr && connection->sender
                                ? connection->sender->rnr_timer_us()
                                : wire::rnr_timer_us(send_attributes().min_rnr_timer);
  fate.departs_ns =
      now_ns + (fate.is_lost ? transport_timeout_ns() / (send_attributes().retry_cnt + 1ULL) : timer_us * 1000);
  const uint32_t repetition = fate.losses + fate.refusals;
  const fault::Verdict verdict =
      faults_.judge_again(context_.port(), fate.number, repetition, judged_bytes(entry.length));
  fate.is_lost = verdict.is_lost;
  fate.is_not_ready = verdict.is_not_ready && takes_receive(send_.requests[index & entry_mask_].opcode);
  return Turn::wait;
}

bool QueuePair::is_next_held() {
  const uint32_t next = next_.load(std::memory_order_relaxed);
  const SendFate* fate = has_queued_sends() ? known_fate(next) : nullptr;
  // Its repetitions are counted by themselves; the time that they take is not the peer's.
  return fate != nullptr && (fate->is_lost || fate->is_not_ready || fate->departs_ns > base::now_ns());
}

/// Asks the faults about a send that is complete. False: its completion is late, and it is not time yet.
bool QueuePair::suffers_fault(uint32_t index, ibv_wc_status& status) {
  SendEntry& entry = send_.entries[index & entry_mask_];
  if (!make_fates()) {
    return true;  // a poll can't refuse: it is told as if there were no fault
  }
  SendFate& fate = fate_of(index);
  const uint64_t now = base::now_ns();
  if (!fate.is_judged) {
    const fault::Verdict verdict = faults_.judge(fault::Subject::completion, context_.port());
    fate.is_judged = true;
    fate.is_missing = verdict.is_lost;
    entry.status = static_cast<uint8_t>(verdict.status);
    fate.tells_ns = verdict.hold_ns == 0 ? 0 : now + verdict.hold_ns;
  }
  status = static_cast<ibv_wc_status>(entry.status);
  return now >= fate.tells_ns;
}

}  // namespace ringbolt::device
