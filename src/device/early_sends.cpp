// Sends that complete before they are delivered, as on a Mac: their bytes are copied, the completion is told, and they
// leave when their turn on the cable comes.

#include <time.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "device/network.h"
#include "device/queue_pair_transport.h"
#include "device/send_queue.h"
#include "device/send_quirks.h"

namespace ringbolt::device {
namespace {

// Beyond that sends complete when they are delivered, so that a program which never receives does not eat all memory.
constexpr size_t kMostStagedBytes = 16U << 20U;
constexpr uint64_t kBitsPerByte = 8;
// Between two looks whether the peer has got on, without any lock, each twice the one before.
constexpr long kFirstPauseNs = 20'000;
constexpr long kLastPauseNs = 1'000'000;

bool may_be_copied(ibv_wr_opcode opcode) {
  return opcode != IBV_WR_RDMA_READ && opcode != IBV_WR_ATOMIC_CMP_AND_SWP && opcode != IBV_WR_ATOMIC_FETCH_AND_ADD &&
         opcode != IBV_WR_LOCAL_INV && opcode != IBV_WR_BIND_MW;
}

}  // namespace

bool SendQuirks::may_complete_early(const QueuePairCore& core) {
  return core.type != IBV_QPT_UD &&
         (core.port->profile.knobs.completes_early || core.faults.has_rule(fault::Kind::early, *core.port));
}

uint64_t SendQuirks::early_departure_ns(uint32_t length, uint64_t now_ns) {
  const profile::Knobs& knobs = core_.port->profile.knobs;
  const uint64_t rate_gbps = knobs.holds_line_rate ? core_.port->speed_gbps : 0;
  const uint64_t transfer_ns = rate_gbps == 0 ? 0 : length * kBitsPerByte / rate_gbps;  // bits at bits per ns
  line_free_ns_ = std::max(now_ns + knobs.early_lead_ns, line_free_ns_) + transfer_ns;
  return line_free_ns_;
}

// Afterwards the request names our copy, as inline bytes do: its keys mean nothing any more.
bool SendQuirks::stage(SendQueue& queue, uint32_t index) {
  SendRequest& stored = queue.request(index);
  if (staged_bytes_ + stored.length > kMostStagedBytes || !may_be_copied(stored.opcode)) {
    return false;
  }
  Pieces pieces;
  if (!core_.translate({stored.pieces, stored.pieces_count}, stored.is_inline, 0, pieces)) {
    return false;  // fails when its turn comes
  }
  if (staged_.empty()) {
    staged_.resize(queue.slots());
  }
  StagedBytes& staged = staged_[queue.place(index)];
  staged = {std::make_unique_for_overwrite<std::byte[]>(stored.length), stored.length};
  pieces.gather(0, staged.bytes.get(), stored.length);
  queue.pieces(index)[0] = {reinterpret_cast<uint64_t>(staged.bytes.get()), stored.length, 0};
  stored.pieces_count = stored.length == 0 ? 0 : 1;
  stored.is_inline = true;
  staged_bytes_ += stored.length;
  of_entry_[index & mask_].is_staged = true;
  return true;
}

void SendQuirks::tell_early(SendQueue& queue, CompletionQueue& cq) {
  const uint32_t tail = core_.sends.tail.load(std::memory_order_relaxed);
  for (; core_.state() == IBV_QPS_RTS && told_ != tail && cq.has_room(); ++told_) {
    const SendEntry& entry = queue.entry(told_);
    SendQuirk* const quirk = known_quirk(queue, told_);
    if (quirk == nullptr || !quirk->is_early || entry.status != IBV_WC_SUCCESS) {
      return;  // completes when its turn has come
    }
    ibv_wc_status status = IBV_WC_SUCCESS;
    if (core_.faults.has(fault::Subject::completion) && !is_due(queue, told_, status)) {
      return;
    }
    if (status != IBV_WC_SUCCESS) {
      return;
    }
    quirk->is_told = true;
    count_out(entry);
    if (entry.is_signaled && !quirk->is_missing) {
      queue.push_completion(cq, entry, IBV_WC_SUCCESS);
    }
  }
}

void SendQuirks::drop_copy(const SendEntry& entry, uint32_t index) {
  if (entry.has_quirk && of_entry_[index & mask_].is_staged) {
    staged_bytes_ -= staged_[index & mask_].length;
    staged_[index & mask_] = {};
  }
}

bool SendQuirks::may_yet_leave(SendQueue& queue, uint32_t index, uint64_t now_ns) {
  const SendQuirk& quirk = of_entry_[index & mask_];
  return core_.state() == IBV_QPS_RTS && !queue.has_failed_send() && queue.entry(index).phase != SendPhase::failed &&
         !core_.cable.is_cut_off() && !(quirk.is_held && quirk.departs_ns > now_ns);
}

bool SendQuirks::push_told(SendQueue& queue) {
  const uint64_t now = base::now_ns();
  if (Network* const network = core_.port->is_on_network() ? &core_.process.network() : nullptr) {
    network->poll(now);
  }
  const SendGuard guard(core_.locks);
  QueuePairTransport* const transport = core_.transport.load(std::memory_order_relaxed);
  if (transport == nullptr) {
    return false;
  }
  transport->take_answers(queue, 0);
  queue.run();
  for (uint32_t index = core_.sends.done.load(std::memory_order_relaxed); index != told_; ++index) {
    const auto delivery = transport->delivery(queue, index);
    if (delivery != QueuePairTransport::Delivery::delivered) {
      return delivery == QueuePairTransport::Delivery::underway && may_yet_leave(queue, index, now);
    }
  }
  return false;
}

void SendQuirks::deliver_told(SendQueue& queue, uint64_t deadline_ns) {
  if (!completes_early_) {
    return;
  }
  timespec pause{0, kFirstPauseNs};
  while (push_told(queue) && base::now_ns() < deadline_ns) {
    nanosleep(&pause, nullptr);
    pause.tv_nsec = std::min(pause.tv_nsec * 2, kLastPauseNs);
  }
}

void SendQuirks::settle_told(SendQueue& queue, const char* ending, uint64_t deadline_ns) {
  if (completes_early_) {
    deliver_told(queue, deadline_ns);
    tell_undelivered(queue, ending);
  }
}

void SendQuirks::count_undelivered(const SendEntry& entry) {
  ++undelivered_;
  core_.counts.note(kSharedXmitDiscards, load_of(entry.length, core_.mtu_shift, 0).packets);
}

void SendQuirks::tell_undelivered(SendQueue& queue, const char* ending) {
  uint32_t lost = 0;
  {
    const SendGuard guard(core_.locks);
    QueuePairTransport* const transport = core_.transport.load(std::memory_order_relaxed);
    for (uint32_t index = core_.sends.done.load(std::memory_order_relaxed); index != told_; ++index) {
      if (transport == nullptr || transport->delivery(queue, index) != QueuePairTransport::Delivery::delivered) {
        count_undelivered(queue.entry(index));
      }
    }
    lost = std::exchange(undelivered_, 0);
  }
  if (lost != 0) {
    core_.port->warn(profile::Rule::undelivered,
                     fmt::format("{} with {} completed, undelivered messages", ending, lost));
  }
}

}  // namespace ringbolt::device
