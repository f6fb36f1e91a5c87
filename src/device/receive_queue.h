#pragma once

// Hot path: open(), begin(), place() and complete(), which are here for the transports to take them in.

#include <infiniband/verbs.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/in_place.h"
#include "device/completion_queue.h"
#include "device/current_receive.h"
#include "device/queue_pair_core.h"
#include "device/receive_ring.h"
#include "device/received_message.h"
#include "link/lane.h"

namespace ringbolt::device {

class ReceiveQuirks;

/// The receive queue of a queue pair, or its way to a shared one: takes receives, gives them to messages, completes
/// them. Thread-safe: post() takes the lock for receiving itself, the others are called under it.
/// Owns copies of the posted receives' pieces, not their memory. One receive is open at a time: it is the device's from
/// open() until complete() or fail(), which both make a completion.
class ReceiveQueue {
 public:
  /// `has_quirks`: of the port's profile or faults, see SendQuirks::are_needed. Throws std::bad_alloc.
  ReceiveQueue(QueuePairCore& core, uint32_t depth, uint32_t max_pieces, bool has_quirks);
  ~ReceiveQueue();
  ReceiveQueue(const ReceiveQueue&) = delete;
  ReceiveQueue& operator=(const ReceiveQueue&) = delete;

  /// As ibv_post_recv.
  /// 0, EINVAL, ENOMEM when it is full; `*bad` then names the first that was not taken. Any thread, never throws.
  int post(ibv_recv_wr* wr, ibv_recv_wr** bad);
  /// The same, with notes of where it was posted; there are notes.
  int post_noted(ibv_recv_wr* wr, ibv_recv_wr** bad, const ReceivePosting& from);
  /// 0 or EOPNOTSUPP. Any thread; for messages that are taken in from here on, and for good.
  /// Messages that lie in memory which this process sees anyway are not copied from here on: see base/in_place.h.
  /// EOPNOTSUPP where a profile or a shared receive queue has other ideas of receives.
  int receive_in_place();
  /// Relaxed: a message that misses it by a hair is copied.
  bool receives_in_place() const { return receives_in_place_.load(std::memory_order_relaxed); }

  QueuePairCore& core() const { return core_; }
  /// Null for a plain device.
  ReceiveQuirks* quirks() const RINGBOLT_REQUIRES(receive_half) { return quirks_.get(); }
  /// There are faults now, which a plain queue knows nothing of. Throws std::bad_alloc.
  void add_quirks() RINGBOLT_REQUIRES(receive_half);
  // References are good as long as the lock is held.
  CurrentReceive& current() RINGBOLT_REQUIRES(receive_half) { return current_; }
  ReceiveRing& ring() RINGBOLT_REQUIRES(receive_half) { return ring_; }

  /// Opens the oldest receive for a message; true if one is open already. False: there is none.
  bool open() RINGBOLT_REQUIRES(receive_half);
  /// A message of `total` bytes begins in the open receive. Success, or what the receive has to complete with.
  /// IBV_WC_LOC_LEN_ERR, IBV_WC_LOC_PROT_ERR, or what a fault wants: the caller fails the receive with it.
  ibv_wc_status begin(uint32_t total) RINGBOLT_REQUIRES(receive_half);
  /// Finds the memory of the open receive. False: its keys don't allow it.
  /// When a message begins, not when the receive is posted: what was deregistered in between is refused.
  bool translate() RINGBOLT_REQUIRES(receive_half) {
    current_.pieces.count = 0;  // not all of it: clearing 256 bytes costs more than a short message
    current_.pieces.arena = {};
    return core_.translate({current_.wanted.data(), current_.wanted_count}, false, IBV_ACCESS_LOCAL_WRITE,
                           current_.pieces);
  }
  /// Puts bytes of the message at `offset`, where there is room for them.
  void place(uint32_t offset, const std::byte* data, uint32_t length) RINGBOLT_REQUIRES(receive_half) {
    if (quirks_ == nullptr) [[likely]] {
      current_.pieces.scatter(offset, data, length);
    } else {
      place_with_quirks(offset, data, length);
    }
  }
  /// The message is whole; `in_place`, if not null, is where it lies.
  /// `cq` is the completion queue of its receives.
  void complete(CompletionQueue& cq, const ReceivedMessage& message, const std::byte* in_place = nullptr)
      RINGBOLT_REQUIRES(receive_half, cq.lock);
  /// The open receive, if there is one, completes with an error.
  void fail(CompletionQueue& cq, ibv_wc_status status) RINGBOLT_REQUIRES(receive_half, cq.lock);
  /// The open receive is about to fail, for a message of `total` bytes: for RINGBOLT_EXPLAIN.
  void note_failure(ibv_wc_status status, uint64_t total, bool is_at_least) RINGBOLT_REQUIRES(receive_half);
  /// In the state ERR: whatever is posted is flushed, as far as there is room, and the events that follow are raised.
  void flush(CompletionQueue& cq) RINGBOLT_REQUIRES(receive_half, cq.lock);
  /// In the state ERR: nothing is left that flush() would still do.
  bool is_flushed() const RINGBOLT_REQUIRES(receive_half) {
    return ring_.is_empty() && !current_.is_open && !core_.owes_fatal.load(std::memory_order_relaxed);
  }
  /// The first message of the peer has come: an event, in the state RTR.
  void note_established() RINGBOLT_REQUIRES(receive_half);
  /// The step to RTR.
  void note_rtr() RINGBOLT_REQUIRES(receive_half);
  /// A fault holds back what has come.
  bool is_coalescing() RINGBOLT_REQUIRES(receive_half);
  /// Gives receives to messages that came before them, where there are any. False: the queue pair has failed by it.
  /// Only with a profile that has ideas of its own of messages without receives.
  bool deliver_unexpected(CompletionQueue& cq) RINGBOLT_REQUIRES(receive_half, cq.lock);
  /// Forgets all receives without completions. When no completion queue knows the queue pair.
  void reset() RINGBOLT_REQUIRES(receive_half);

 private:
  int post_locked(ibv_recv_wr* wr, ibv_recv_wr** bad) RINGBOLT_REQUIRES(receive_half);
  bool open_shared() RINGBOLT_REQUIRES(receive_half);
  void open_with_quirks() RINGBOLT_REQUIRES(receive_half);
  ibv_wc_status judge_with_quirks(uint32_t total) RINGBOLT_REQUIRES(receive_half);
  void place_with_quirks(uint32_t offset, const std::byte* data, uint32_t length) RINGBOLT_REQUIRES(receive_half);
  void push_failed(CompletionQueue& cq, uint64_t wr_id, ibv_wc_status status) RINGBOLT_REQUIRES(receive_half, cq.lock);

  QueuePairCore& core_;
  const unsigned own_wc_flags_ = core_.type == IBV_QPT_UD ? unsigned{IBV_WC_GRH} : 0U;
  std::unique_ptr<ReceiveQuirks> quirks_ RINGBOLT_GUARDED_BY(receive_half);
  std::atomic<bool> receives_in_place_{false};
  ReceiveRing ring_ RINGBOLT_GUARDED_BY(receive_half);
  CurrentReceive current_ RINGBOLT_GUARDED_BY(receive_half);
  bool has_flushed_last_ RINGBOLT_GUARDED_BY(receive_half) = false;  // IBV_EVENT_QP_LAST_WQE_REACHED was announced
  bool is_established_ RINGBOLT_GUARDED_BY(receive_half) = false;    // IBV_EVENT_COMM_EST was announced
};

inline bool ReceiveQueue::open() {
  if (current_.is_open) {
    return true;
  }
  if (core_.queues.shared != nullptr) {
    if (!open_shared()) {
      return false;
    }
  } else {
    if (ring_.is_empty()) {
      return false;
    }
    const ReceiveRing::Receive receive = ring_.front();
    current_.wr_id = receive.wr_id;
    current_.wanted_count = static_cast<uint32_t>(receive.pieces.size());
    std::ranges::copy(receive.pieces, current_.wanted.begin());
    ring_.pop();
  }
  current_.is_open = true;
  current_.received = 0;
  current_.pieces.count = 0;
  if (quirks_ != nullptr) [[unlikely]] {
    open_with_quirks();
  }
  return true;
}

inline ibv_wc_status ReceiveQueue::begin(uint32_t total) {
  if (!translate()) {
    return IBV_WC_LOC_PROT_ERR;
  }
  if (quirks_ != nullptr) [[unlikely]] {
    if (const ibv_wc_status judgement = judge_with_quirks(total); judgement != IBV_WC_SUCCESS) {
      return judgement;
    }
  }
  return total > current_.pieces.length() ? IBV_WC_LOC_LEN_ERR : IBV_WC_SUCCESS;
}

inline void ReceiveQueue::complete(CompletionQueue& cq, const ReceivedMessage& message, const std::byte* in_place) {
  core_.cable.note_traffic();
  ibv_wc& wc = cq.next();
  wc.wr_id = current_.wr_id;
  wc.status = IBV_WC_SUCCESS;
  wc.opcode = message.opcode;
  wc.vendor_err = 0;
  wc.byte_len = message.length;
  wc.imm_data = 0;
  wc.qp_num = core_.qpn;
  wc.src_qp = message.source_qpn;
  wc.wc_flags = own_wc_flags_;
  if ((message.flags & (link::kSlotImmediate | link::kSlotInvalidate)) != 0) {
    wc.imm_data = message.immediate;
    constexpr unsigned kImmediate = IBV_WC_WITH_IMM;
    constexpr unsigned kInvalidate = IBV_WC_WITH_INV;
    wc.wc_flags |= (message.flags & link::kSlotImmediate) != 0 ? kImmediate : kInvalidate;
  }
  if (in_place != nullptr) {
    wc.wc_flags |= base::kReceivedInPlace;
    base::put_place(wc, in_place);
  }
  wc.pkey_index = 0;
  wc.slid = 0;
  wc.sl = wc.dlid_path_bits = 0;
  current_.is_open = false;
  current_.received = 0;
  core_.counts.second().add(kLaneMessages, 1);
  cq.commit(IBV_WC_SUCCESS, (message.flags & link::kSlotSolicited) != 0);
}

}  // namespace ringbolt::device
