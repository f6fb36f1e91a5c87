// Sends that complete before they are delivered, as on a Mac: their bytes are copied, the completion is told, and they
// leave when their turn on the cable comes.

#include <time.h>

#include <algorithm>
#include <bit>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/lock_guard.h"
#include "device/queue_pair.h"
#include "profile/frames.h"

namespace ringbolt::device {
namespace {

// Beyond that sends complete when they are delivered, so that a program which never receives does not eat all memory.
constexpr size_t kMostStagedBytes = 16U << 20U;
constexpr uint64_t kBitsPerByte = 8;
// Between two looks whether the peer has got on.
constexpr long kFirstPauseNs = 20'000;
constexpr long kLastPauseNs = 1'000'000;

}  // namespace

bool QueuePair::may_complete_early() const {
  const Port& port = context_.port();
  return type_ != IBV_QPT_UD && (port.profile.knobs.completes_early || faults_.has_rule(fault::Kind::early, port));
}

size_t QueuePair::send_slots() const {
  // Sends that have completed early still lie in the queue.
  constexpr size_t kMostEarly = 8192;
  return std::bit_ceil(size_t{caps_.max_send_wr} + (completes_early_ ? kMostEarly : 0));
}

uint64_t QueuePair::early_departure_ns(uint32_t length, uint64_t now_ns) {
  const profile::Knobs& knobs = context_.port().profile.knobs;
  const uint64_t rate_gbps = knobs.holds_line_rate ? context_.port().speed_gbps : 0;
  const uint64_t transfer_ns = rate_gbps == 0 ? 0 : length * kBitsPerByte / rate_gbps;  // bits at bits per ns
  send_.line_free_ns = std::max(now_ns + knobs.early_lead_ns, send_.line_free_ns) + transfer_ns;
  return send_.line_free_ns;
}

bool QueuePair::stage(uint32_t index) {
  const uint32_t slot = index & entry_mask_;
  SendRequest& stored = send_.requests[slot];
  if (send_.staged_bytes + stored.length > kMostStagedBytes || stored.opcode == IBV_WR_RDMA_READ ||
      stored.opcode == IBV_WR_ATOMIC_CMP_AND_SWP || stored.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ||
      stored.opcode == IBV_WR_LOCAL_INV || stored.opcode == IBV_WR_BIND_MW) {
    return false;
  }
  Pieces pieces;
  if (!translate({stored.pieces, stored.pieces_count}, stored.is_inline, 0, pieces)) {
    return false;  // fails when its turn comes
  }
  if (send_.staged.empty()) {
    send_.staged.resize(send_.entries.size());
  }
  StagedBytes& staged = send_.staged[slot];
  staged = {std::make_unique_for_overwrite<std::byte[]>(stored.length), stored.length};
  pieces.gather(0, staged.bytes.get(), stored.length);
  send_.request_pieces[size_t{slot} * caps_.max_send_sge] = {reinterpret_cast<uint64_t>(staged.bytes.get()),
                                                             stored.length, 0};
  stored.pieces_count = stored.length == 0 ? 0 : 1;
  stored.is_inline = true;
  send_.staged_bytes += stored.length;
  send_.fates[slot].is_staged = true;
  return true;
}

void QueuePair::tell_early(CompletionQueue& cq) {
  const ibv_qp_state state = state_.load(std::memory_order_relaxed);
  const uint32_t tail = tail_.load(std::memory_order_relaxed);
  for (; state == IBV_QPS_RTS && send_.told != tail && cq.has_room(); ++send_.told) {
    const SendEntry& entry = send_.entries[send_.told & entry_mask_];
    SendFate* fate = known_fate(send_.told);
    if (fate == nullptr || !fate->is_early || entry.status != IBV_WC_SUCCESS) {
      return;  // completes when its turn has come
    }
    ibv_wc_status status = IBV_WC_SUCCESS;
    if (faults_.has(fault::Subject::completion) && !suffers_fault(send_.told, status)) {
      return;
    }
    if (status != IBV_WC_SUCCESS) {
      return;
    }
    fate->is_told = true;
    count_out(entry);
    if (entry.is_signaled && !fate->is_missing) {
      push_send(cq, entry, IBV_WC_SUCCESS);
    }
  }
}

void QueuePair::drop_copy(uint32_t index) {
  const uint32_t slot = index & entry_mask_;
  if (send_.entries[slot].has_fate && send_.fates[slot].is_staged) {
    send_.staged_bytes -= send_.staged[slot].length;
    send_.staged[slot] = {};
  }
}

void QueuePair::forget_staged(uint32_t index) {
  drop_copy(index);
  send_.told = send_.told == index ? index + 1 : send_.told;
}

void QueuePair::count_out(const SendEntry& entry) {
  if (counts_frames_) {
    send_.frames -= std::min(send_.frames, profile::frames_of(entry.length));
  }
}

bool QueuePair::is_delivered(uint32_t index) const {
  const SendEntry& entry = send_.entries[index & entry_mask_];
  const bool is_executed = static_cast<int32_t>(next_.load(std::memory_order_relaxed) - index) > 0;
  // What lies in the lane is the peer's.
  return is_executed && entry.phase != SendPhase::failed &&
         (entry.phase != SendPhase::wired || requesting()->is_complete(entry.operation));
}

bool QueuePair::may_yet_leave(uint32_t index, uint64_t now_ns) {
  const SendEntry& entry = send_.entries[index & entry_mask_];
  const SendFate& fate = send_.fates[index & entry_mask_];
  if (state_.load(std::memory_order_relaxed) != IBV_QPS_RTS || send_.has_failed_send ||
      entry.phase == SendPhase::failed || is_cut_off() || (fate.is_held && fate.departs_ns > now_ns)) {
    return false;
  }
  if (requesting() != nullptr) {
    return wired_failure() == IBV_WC_SUCCESS;
  }
  Connection* connection = connection_.load(std::memory_order_relaxed);
  if (connection == nullptr || connection->remote == nullptr || connection->remote->peer().is_gone() ||
      connection->peer_state.load() != PeerState::present) {
    return false;
  }
  if (!connection->sender) {
    return true;  // the offer of the lane is on its way
  }
  connection->sender->refresh();
  if (connection->sender->is_closed() || connection->sender->waits_for_receive()) {
    return false;
  }
  connection->remote->peer().ring();  // its lane is full, and its program may sleep
  return true;
}

bool QueuePair::push_told() {
  const uint64_t now = base::now_ns();
  if (is_wired_.load(std::memory_order_relaxed)) {
    process_.network().poll(now);
  }
  const base::LockGuard guard(send_lock_);
  if (requesting() != nullptr) {
    take_answers();
  }
  run_queue();
  for (uint32_t index = done_.load(std::memory_order_relaxed); index != send_.told; ++index) {
    if (!is_delivered(index)) {
      return may_yet_leave(index, now);
    }
  }
  return false;
}

void QueuePair::deliver_told(uint64_t deadline_ns) {
  if (!completes_early_) {
    return;
  }
  timespec pause{0, kFirstPauseNs};
  while (push_told() && base::now_ns() < deadline_ns) {
    nanosleep(&pause, nullptr);
    pause.tv_nsec = std::min(pause.tv_nsec * 2, kLastPauseNs);
  }
}

void QueuePair::settle_told(const char* ending, uint64_t deadline_ns) {
  if (completes_early_) {
    deliver_told(deadline_ns);
    tell_undelivered(ending);
  }
}

void QueuePair::count_undelivered(const SendEntry& entry) {
  ++send_.undelivered;
  counts_.note(kSharedXmitDiscards, load_of(entry.length, mtu_shift_, 0).packets);
}

void QueuePair::tell_undelivered(const char* ending) {
  uint32_t lost = 0;
  {
    const base::LockGuard guard(send_lock_);
    for (uint32_t index = done_.load(std::memory_order_relaxed); index != send_.told; ++index) {
      if (!is_delivered(index)) {
        count_undelivered(send_.entries[index & entry_mask_]);
      }
    }
    lost = std::exchange(send_.undelivered, 0);
  }
  if (lost != 0) {
    context_.port().warn(profile::Rule::undelivered,
                         fmt::format("{} with {} completed, undelivered messages", ending, lost));
  }
}

}  // namespace ringbolt::device
