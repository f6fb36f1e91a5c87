#pragma once

#include "device/completion_queue.h"
#include "device/connection.h"
#include "device/queue_pair_core.h"

namespace ringbolt::device {

/// A message takes a receive when it is whole.
inline bool takes_receive(link::SlotKind kind) {
  return kind == link::SlotKind::send || kind == link::SlotKind::send_shared || kind == link::SlotKind::write_done ||
         kind == link::SlotKind::datagram || kind == link::SlotKind::send_private;
}

/// Takes slots out of the lane to us and gives them to `receive`, which says whether a slot is dealt with; if not, it
/// stays and is looked at again. Takes at most so many that one busy lane does not starve the others of a completion
/// queue. Then tells the producer how far we are, where that is due.
/// `receive` is called with a copy of the slot's header, so that the producer can't change it in between; it releases
/// the slot that it has dealt with. May throw std::bad_alloc: the slot stays. What was taken before is told with the
/// next look.
template <class Receive>
void drain_lane(QueuePairCore& core, CompletionQueue& cq, Connection& connection, Receive receive)
    RINGBOLT_REQUIRES(receive_half, cq.lock) {
  constexpr int kMaxSlotsAtOnce = 64;
  // A producer is told how far we are when the lane runs empty, with a message of ours to it, or after so much.
  // Telling costs the producer a cache line each time; not telling in time would have it run out of room.
  constexpr uint32_t kTellAfterBytes = link::kLaneDataBytes / 8;
  constexpr uint32_t kTellAfterSlots = link::kLaneSlots / 4;

  link::LaneConsumer& lane = connection.receiver;
  link::SlotHeader header;
  bool is_stuck = false;
  bool ran_empty = false;
  int taken = 0;
  for (; taken < kMaxSlotsAtOnce; ++taken) {
    if (!lane.peek(header)) {
      ran_empty = true;  // for this look: the program may act on it, and be gone before the next one
      break;
    }
    const bool is_message = takes_receive(header.kind);
    if (is_message && !cq.has_room()) {
      break;  // others go on: a program that spins on its memory may leave its queue full
    }
    connection.heard_consumed.store(header.consumed, std::memory_order_release);
    // Before the slot is released: who publishes sees it with the count. What a peer asked us to do it waits for.
    if (!is_message || (header.flags & link::kSlotSignaled) != 0) {
      connection.owed.store(connection.owed.load(std::memory_order_relaxed) | link::kSlotSignaled,
                            std::memory_order_relaxed);
    }
    if (!base::call_locked(receive, header)) {
      is_stuck = true;  // what came before must not wait with the one that can't be received yet
      break;
    }
    connection.untold_bytes += header.length;
  }
  if (taken == kMaxSlotsAtOnce && cq.is_armed()) {
    // What is left was rung for already, and what was taken need not have raised an event.
    core.process.request_service(cq);
  }
  const bool is_due = connection.untold_bytes >= kTellAfterBytes || lane.untold() >= kTellAfterSlots;
  if (lane.has_news() && (is_due || is_stuck || ran_empty || !cq.has_room() || !lane.has_slot())) {
    connection.tell();
  }
}

}  // namespace ringbolt::device
