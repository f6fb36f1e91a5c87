#include "device/connection.h"

namespace ringbolt::device {

void Connection::ring_service() {
  if (remote != nullptr) {
    if (const uint32_t mode = receive_queue.mode(); mode != 0) {
      receive_queue.mark(mode, mark);
    }
    receive_queue.mark_for_service();
    remote->peer().ring();
  }
}

/// The peer wants to be told: some of its completion queues have been armed before, or its queue pairs are many.
void Connection::ring(uint32_t mode, unsigned flags) const {
  receive_queue.mark(mode, mark);
  const link::Notify wish = (mode & link::kWakeIsArmed) != 0 ? receive_queue.wish() : link::Notify::nothing;
  if (wish == link::Notify::nothing) {
    return;
  }
  const bool raises_event =
      (flags & link::kSlotLast) != 0 && (wish == link::Notify::next || (flags & link::kSlotSolicited) != 0);
  if (!raises_event || !receive_queue.ring()) {
    // Its program sleeps, and would do so in vain: what it was asked to do for us, chunks of a message that is longer
    // than the lane, and messages that raise no event, whose senders wait for them to be taken.
    receive_queue.mark_for_service();
    remote->peer().ring();
  }
}

void Connection::tell(bool waits_for_room, unsigned flags) const {
  if (remote == nullptr) {
    return;
  }
  // Else it is its service thread that waits, and LaneConsumer::tell() has made the fence before it saw that.
  if (!waits_for_room) {
    std::atomic_thread_fence(std::memory_order_seq_cst);  // between what was told and the look at its wish
    const link::Notify wish = send_queue.wish();
    const bool raises_event =
        wish == link::Notify::next || (wish == link::Notify::solicited && (flags & link::kSlotSolicited) != 0);
    if (!raises_event || send_queue.ring()) {
      return;
    }
  }
  send_queue.mark_for_service();
  remote->peer().ring();
}

}  // namespace ringbolt::device
