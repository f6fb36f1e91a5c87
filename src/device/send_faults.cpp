// What faults do to sends: lost messages, turned bits, cables that are slow or long, receivers that are never ready,
// and completions that are late, wrong or missing. docs/faults.md is the page for users.

#include <algorithm>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "device/explanations.h"
#include "device/queue_pair_transport.h"
#include "device/recording.h"
#include "device/send_queue.h"
#include "device/send_quirks.h"
#include "device/silence_timer.h"
#include "fault/stream.h"

namespace ringbolt::device {
namespace {

bool takes_receive(ibv_wr_opcode opcode) {
  return opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM || opcode == IBV_WR_SEND_WITH_INV ||
         opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

/// What faults judge has two bytes at least.
size_t judged_bytes(uint32_t length) { return std::max<size_t>(length, 2); }

}  // namespace

bool SendQuirks::make_room(const SendQueue& queue) noexcept try {
  if (of_entry_.empty()) {
    of_entry_.resize(queue.slots());
    mask_ = queue.slots() - 1;
  }
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

SendQuirk& SendQuirks::quirk_of(SendQueue& queue, uint32_t index) {
  SendEntry& entry = queue.entry(index);
  SendQuirk& quirk = of_entry_[index & mask_];
  if (!entry.has_quirk) {
    entry.has_quirk = true;
    quirk = {};
  }
  return quirk;
}

SendQuirk* SendQuirks::known_quirk(SendQueue& queue, uint32_t index) {
  return queue.entry(index).has_quirk ? &of_entry_[index & mask_] : nullptr;
}

bool SendQuirks::decide(SendQueue& queue, uint32_t index) noexcept try {
  const uint32_t length = queue.entry(index).length;
  const bool has_faults = core_.faults.has(fault::Subject::message);
  const bool is_like_mac = core_.port->profile.knobs.completes_early && completes_early_;
  if (!has_faults && !is_like_mac) {
    return true;
  }
  if (!make_room(queue)) {
    return false;
  }
  SendQuirk& quirk = quirk_of(queue, index);
  const uint64_t now = base::now_ns();
  const fault::Verdict verdict =
      has_faults ? core_.faults.judge(fault::Subject::message, *core_.port, judged_bytes(length)) : fault::Verdict{};
  quirk.number = verdict.number;
  record_fault(core_.qpn, verdict);
  const bool wants_early = completes_early_ && (is_like_mac || verdict.is_early);
  const bool is_staged = (wants_early || verdict.flip_count != 0) && stage(queue, index);
  if (is_staged && verdict.flip_count != 0) {
    fault::turn_bits(verdict, staged_[queue.place(index)].span());
  }
  quirk.is_early = wants_early && is_staged;
  quirk.is_lost = verdict.is_lost;
  quirk.is_not_ready = verdict.is_not_ready && takes_receive(queue.request(index).opcode);
  quirk.departs_ns = (is_like_mac ? early_departure_ns(length, now) : now) + verdict.hold_ns;
  quirk.is_held = verdict.hold_ns != 0 || (is_like_mac && core_.port->profile.knobs.early_lead_ns != 0);
  return true;
} catch (const std::bad_alloc&) {
  return false;  // the number that the message took with the faults is gone, as after any refused call
}

SendQuirks::Turn SendQuirks::take_turn(SendQueue& queue, uint32_t index) {
  SendQuirk& quirk = *known_quirk(queue, index);
  const uint64_t now = base::now_ns();
  if (quirk.between_ns != 0) {
    quirk.departs_ns = std::max(quirk.departs_ns, now + std::exchange(quirk.between_ns, 0));
  }
  if (quirk.departs_ns > now) {
    return Turn::wait;
  }
  if (!quirk.is_lost && !quirk.is_not_ready) {
    return Turn::execute;
  }
  if (core_.type == IBV_QPT_RC) {
    return try_again(queue, index, now);
  }
  queue.entry(index).phase = SendPhase::finished;  // nobody knows that it is lost
  return Turn::over;
}

/// RC hears no acknowledgement, or that the receiver is not ready, and sends again as often as it was told to.
SendQuirks::Turn SendQuirks::try_again(SendQueue& queue, uint32_t index, uint64_t now_ns) {
  SendEntry& entry = queue.entry(index);
  SendQuirk& quirk = *known_quirk(queue, index);
  const ibv_qp_attr& attributes = core_.attributes;
  constexpr uint32_t kForever = 7;
  const bool is_over = quirk.is_lost ? quirk.losses >= attributes.retry_cnt
                                     : attributes.rnr_retry != kForever && quirk.refusals >= attributes.rnr_retry;
  if (is_over) {
    core_.when_noting([&](QueuePairNotes& notes) {
      notes.say_why_send(why_fault(quirk.is_lost ? fmt::format("it was lost {} times", quirk.losses + 1)
                                                 : fmt::format("no receive for it {} times", quirk.refusals + 1)));
    });
    queue.fail(entry, quirk.is_lost ? IBV_WC_RETRY_EXC_ERR : IBV_WC_RNR_RETRY_EXC_ERR);
    return Turn::over;
  }
  ++(quirk.is_lost ? quirk.losses : quirk.refusals);
  quirk.is_held = true;
  const uint64_t pause_ns = quirk.is_lost
                                ? transport_timeout_ns(attributes) / (attributes.retry_cnt + 1ULL)
                                : core_.transport.load(std::memory_order_relaxed)->rnr_timer_us() * uint64_t{1000};
  quirk.departs_ns = now_ns + pause_ns;
  const uint32_t repetition = quirk.losses + quirk.refusals;
  const fault::Verdict verdict =
      core_.faults.judge_again(*core_.port, quirk.number, repetition, judged_bytes(entry.length));
  record_fate(trace::Kind::resent, core_.qpn);
  record_fault(core_.qpn, verdict);
  quirk.is_lost = verdict.is_lost;
  quirk.is_not_ready = verdict.is_not_ready && takes_receive(queue.request(index).opcode);
  return Turn::wait;
}

bool SendQuirks::is_next_held(SendQueue& queue) {
  const uint32_t next = core_.sends.next.load(std::memory_order_relaxed);
  const SendQuirk* const quirk = core_.sends.has_queued() ? known_quirk(queue, next) : nullptr;
  // Its repetitions are counted by themselves.
  return quirk != nullptr &&
         (quirk->is_lost || quirk->is_not_ready || quirk->between_ns != 0 || quirk->departs_ns > base::now_ns());
}

bool SendQuirks::is_due(SendQueue& queue, uint32_t index, ibv_wc_status& status) {
  if (!make_room(queue)) {
    return true;  // a poll can't refuse: it is told as if there were no fault
  }
  SendEntry& entry = queue.entry(index);
  SendQuirk& quirk = quirk_of(queue, index);
  const uint64_t now = base::now_ns();
  if (!quirk.is_judged) {
    const bool has_faults = core_.faults.has(fault::Subject::completion);
    const fault::Verdict verdict =
        has_faults ? core_.faults.judge(fault::Subject::completion, *core_.port) : fault::Verdict{};
    quirk.is_judged = true;
    record_fault(core_.qpn, verdict);
    quirk.is_missing = verdict.is_lost;
    entry.status = static_cast<uint8_t>(verdict.status);
    core_.when_noting([&](QueuePairNotes& notes) {
      if (verdict.status != IBV_WC_SUCCESS) {
        notes.say_why_send(why_fault(fmt::format("completions, status {}", static_cast<int>(verdict.status))));
      }
    });
    const uint64_t late_ns = verdict.hold_ns + quirk.late_ns;
    quirk.tells_ns = late_ns == 0 ? 0 : now + late_ns;
  }
  status = static_cast<ibv_wc_status>(entry.status);
  return now >= quirk.tells_ns;
}

}  // namespace ringbolt::device
