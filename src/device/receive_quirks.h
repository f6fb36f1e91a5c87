#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <set>

#include "device/call_stream.h"
#include "device/completion_queue.h"
#include "device/current_receive.h"
#include "device/half_locks.h"
#include "device/queue_pair_core.h"
#include "device/unexpected_queue.h"

namespace ringbolt::device {

class ReceiveQueue;

/// Where a UC message goes for which no receive is posted, on a device that does not hold its sender back.
enum class Bypass : uint8_t { none, waits, dropped };

/// What makes the receive queue of a port with a profile or with faults differ from a plain one: rules for receives,
/// depths counted in frames, messages that meet no receive, addresses without a carry, and what faults do to receives.
/// A plain queue has none. docs/profiles.md and docs/faults.md are the pages for users. Under the lock for receiving.
class ReceiveQuirks {
 public:
  /// See diverts().
  static bool diverts(const Port& port, ibv_qp_type type, bool has_shared_queue);
  /// `depth`: of the receive queue, in requests or frames.
  ReceiveQuirks(QueuePairCore& core, uint32_t depth);

  // receive_quirks.cpp
  /// Posts one receive: 0, or an errno; a negated one leaves the program's pointer alone.
  int push(ReceiveQueue& queue, const ibv_recv_wr& wr) RINGBOLT_REQUIRES(receive_half);
  /// The receive was taken out of the queue.
  void on_open(CurrentReceive& current) RINGBOLT_REQUIRES(receive_half);
  /// Of a message of `total` bytes for the open receive; not success: what it completes with.
  ibv_wc_status judge(const CurrentReceive& current, uint32_t total) RINGBOLT_REQUIRES(receive_half);
  /// What faults alone say to the next message.
  ibv_wc_status judge_by_faults() RINGBOLT_REQUIRES(receive_half);
  /// Nothing is posted any more but to be flushed.
  void on_flush() RINGBOLT_REQUIRES(receive_half) { frames_ = 0; }
  void reset() RINGBOLT_REQUIRES(receive_half);
  /// The step to RTR: regions that are registered later may not be used on some devices.
  void note_rtr() RINGBOLT_REQUIRES(receive_half) { regions_at_rtr_ = core_.process.region_ages().count(); }
  /// What came waits for the next of long ticks, by a fault, until something came at two in a row.
  bool is_coalescing(bool has_arrived) RINGBOLT_REQUIRES(receive_half);

  /// The device adds addresses without the carry: what belongs beyond a 4 GiB boundary lands 4 GiB too low.
  bool wraps() const { return wraps_; }
  void place_wrapped(const CurrentReceive& current, uint32_t offset, const std::byte* data, uint32_t length) const
      RINGBOLT_REQUIRES(receive_half);

  /// RINGBOLT_SHUFFLE: puts the bytes in parts, in another order than theirs. False: nothing is done.
  bool place_in_parts(const CurrentReceive& current, uint32_t offset, const std::byte* data, uint32_t length)
      RINGBOLT_REQUIRES(receive_half);

  // unexpected_messages.cpp
  /// A UC message that meets no receive is dropped, or waits here, instead of holding its sender back.
  bool diverts() const { return diverts_; }
  /// A message of `total` bytes (0: nobody knows yet) begins: where it goes, which may be past the receives.
  Bypass choose(ReceiveQueue& queue, uint32_t total) RINGBOLT_REQUIRES(receive_half);
  Bypass bypass() const RINGBOLT_REQUIRES(receive_half) { return bypass_; }
  /// More of a message that goes past the receives.
  void append(const std::byte* data, uint32_t length) RINGBOLT_REQUIRES(receive_half);
  /// Its bytes can't be had: it is dropped after all.
  void drop() RINGBOLT_REQUIRES(receive_half);
  /// It is whole. `length` is for one that carries no bytes of its own.
  void end(const ReceivedMessage& message) RINGBOLT_REQUIRES(receive_half);
  uint32_t bypassed_bytes() const RINGBOLT_REQUIRES(receive_half) { return bypassed_bytes_; }
  /// Gives receives that were posted meanwhile to messages that wait.
  void deliver(ReceiveQueue& queue, CompletionQueue& cq) RINGBOLT_REQUIRES(receive_half, cq.lock);

 private:
  int check(ReceiveQueue& queue, const ibv_recv_wr& wr) RINGBOLT_REQUIRES(receive_half);
  int check_frames(const ibv_recv_wr& wr) RINGBOLT_REQUIRES(receive_half);
  ibv_wc_status judge_by_rules(const CurrentReceive& current, uint32_t total) RINGBOLT_REQUIRES(receive_half);
  ibv_wc_status put(ReceiveQueue& queue, const UnexpectedMessage& message) RINGBOLT_REQUIRES(receive_half);
  void note_dropped() const;

  QueuePairCore& core_;
  const uint32_t depth_;
  const bool has_rules_;      ///< the port's profile takes something away
  const bool counts_frames_;  ///< depths are numbers of 4 KiB frames
  const bool splits_pieces_;  ///< each piece of a receive is a receive of its own
  const bool wraps_;
  const bool diverts_;
  CallStream posted_ RINGBOLT_GUARDED_BY(receive_half);
  uint32_t frames_ RINGBOLT_GUARDED_BY(receive_half) = 0;  // of posted receives
  uint64_t posted_count_ RINGBOLT_GUARDED_BY(receive_half) = 0;
  uint64_t taken_count_ RINGBOLT_GUARDED_BY(receive_half) = 0;
  std::set<uint64_t> overrun_ RINGBOLT_GUARDED_BY(receive_half);  // receives beyond the depth, by number
  uint64_t regions_at_rtr_ RINGBOLT_GUARDED_BY(receive_half) = 0;
  UnexpectedQueue unexpected_ RINGBOLT_GUARDED_BY(receive_half);
  Bypass bypass_ RINGBOLT_GUARDED_BY(receive_half) = Bypass::none;   // of the message that is coming in
  uint32_t bypassed_bytes_ RINGBOLT_GUARDED_BY(receive_half) = 0;    // of it, so far
  uint64_t placed_ RINGBOLT_GUARDED_BY(receive_half) = 0;            // what place_in_parts() was asked for, ever
  uint64_t next_tick_ns_ RINGBOLT_GUARDED_BY(receive_half) = 0;      // coalescing; 0: not now
  bool has_tick_traffic_ RINGBOLT_GUARDED_BY(receive_half) = false;  // something came at the last tick
};

}  // namespace ringbolt::device
