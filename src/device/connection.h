#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "device/send_ways.h"
#include "link/lane_consumer.h"
#include "link/lane_producer.h"
#include "link/messages.h"
#include "link/peer_queue.h"
#include "link/remote_process.h"
#include "link/shared_segment.h"

namespace ringbolt::device {

/// What is known of the other end of a connection.
enum class PeerState : uint32_t {
  present,    ///< as far as we know
  withdrawn,  ///< its queue pair was reset or destroyed
  left,       ///< its process exited in an orderly way
  died,       ///< its process was killed or crashed
};

/// One queue pair's tie to one other: the lane to us, which we made and offered, and the lane to it, once its offer
/// came. The receiving half is guarded by the queue pair's receive lock, the sending half by its send lock.
/// Owned by Lanes, which makes, offers and ends it; it ends under both locks, when nobody has either. The memory of the
/// lane to us is ours, that of the other one the peer's: both stay mapped here as long as this lives, whatever the peer
/// does, so that a crash of it can't end us.
struct Connection {
  Connection(uint32_t qpn, link::SharedSegment segment)
      : remote_qpn(qpn),
        receive_segment(std::move(segment)),
        receiver(*reinterpret_cast<link::LaneMemory*>(receive_segment.data())) {}

  // Of the sending half; there is a lane.
  /// Fills the next slot, whose body is written already; ring() after the last one. Only where make_room() was true.
  void publish(link::SlotKind kind, unsigned flags, uint32_t length, uint32_t immediate) {
    const uint32_t consumed = receiver.consumed();
    if (sender->consumed() == sender->published() && owed.load(std::memory_order_relaxed) == 0) {
      receiver.note_told(consumed);  // nothing before it can hold the news up, and nobody sleeps on it
    }
    news |= flags;
    sender->publish(kind, static_cast<uint16_t>(flags), length, immediate, consumed, 0, false);
  }
  /// The same with the payload that was put at `place`.
  void publish(link::SlotKind kind, unsigned flags, uint32_t length, uint32_t immediate,
               const link::LaneProducer::Place& place) {
    news |= flags;
    sender->publish(kind, static_cast<uint16_t>(flags), length, immediate, receiver.consumed(), place.data_at, true);
  }
  /// A free slot, and room for `length` bytes of payload; false when there is none.
  /// Looks at the peer's own count only when what it told with its messages is not enough: that is a cache line which
  /// the peer writes all the time.
  bool make_room(uint32_t length, link::LaneProducer::Place& place) {
    if (sender->has_slot() && (length == 0 || sender->reserve(length, place))) {
      return true;
    }
    sender->refresh();
    return sender->has_slot() && (length == 0 || sender->reserve(length, place));
  }
  /// Tells the peer of what was published, if it asked for that.
  /// A system call only where the peer waits. The fence is full, or light where both ends have heavy ones: the slot
  /// must be visible before the peer's mode is read (docs/formats/wake-table.md).
  void ring() {
    if (sender && sender->published() != rung_for) {
      rung_for = sender->published();
      const unsigned flags = std::exchange(news, 0);
      sender->fence();
      if (const uint32_t mode = receive_queue.mode(); mode != 0) [[unlikely]] {
        ring(mode, flags);
      }
    }
  }
  /// Wakes the peer's service thread, to look at what its program does not look at.
  /// Without a fence of its own: who calls it has published before, and rings again if nothing comes of it.
  void ring_service();
  /// Learns how far the peer is from its messages to us, those that wait for a receive too. Under both locks.
  void take_last_word() {
    if (sender) {
      sender->take_consumed(heard_consumed.load(std::memory_order_acquire));
      if (uint32_t consumed = 0; receiver.last_heard(consumed)) {
        sender->take_consumed(consumed);
      }
    }
  }
  // Of the receiving half.
  /// The waiting message fails at the peer, which may sleep on it: tell() after it.
  void refuse(link::Refusal why) {
    receiver.refuse(why);
    owed.store(link::kSlotSignaled | link::kSlotSolicited, std::memory_order_relaxed);
  }
  /// Tells the peer how far we are, and wakes it if it waits for that.
  /// Under the lock for receiving; reads `sender` and `send_queue`, which are set under both locks.
  void tell() {
    untold_bytes = 0;
    const unsigned flags = owed.load(std::memory_order_relaxed);
    if (sender) {  // until its offer has come nobody knows who is to be woken: then it is owed still
      owed.store(0, std::memory_order_relaxed);  // no exchange: that would wait for every store before it
    }
    const bool waits_for_room = receiver.tell();
    if (waits_for_room || (flags != 0 && send_queue.mode() != 0)) [[unlikely]] {
      tell(waits_for_room, flags);
    }
  }

  const uint32_t remote_qpn;
  std::shared_ptr<link::RemoteProcess> remote;  ///< null: nobody owned that number when we connected
  // Written by the service thread under the lock for sending (and by timers that give a peer up); read under either.
  std::atomic<PeerState> peer_state{PeerState::present};
  // Where the peer completes what we publish, which is `mark` there, and what we are done with. Set under both locks.
  link::PeerQueue receive_queue;
  link::PeerQueue send_queue;
  uint32_t mark = 0;

  // Receiving half.
  link::SharedSegment receive_segment;
  link::LaneConsumer receiver;
  /// Tells this offer of ours from those before and after it, in Withdraw and Refuse. Random, never link::kNoNonce.
  uint64_t own_nonce = 0;
  /// The peer's memory that a program may read after the receive has completed (base/in_place.h), freed by the peer or
  /// not.
  std::vector<std::pair<uint32_t, std::shared_ptr<const link::SharedSegment>>> held_arenas;
  SendWays ways;               ///< of long SENDs of private memory to us
  uint32_t told_wishes = 0;    ///< what the peer knows of them
  uint64_t long_begun_ns = 0;  ///< when the peer sent the one that comes in chunks
  uint64_t long_ended_ns = 0;  ///< when the last one was whole
  uint32_t untold_bytes = 0;   ///< taken from the lane since we last told the peer
  /// What the peer may sleep on of that: flags of slots; kSlotSolicited stands for a refusal. The sending half looks.
  /// Set and cleared under the lock for receiving. Relaxed is enough for publish(), which only decides by it whether
  /// the count that the message carries makes a tell() superfluous.
  std::atomic<unsigned> owed{0};
  /// Messages that may still take a receive; no more than receives were posted when the peer flushed its sends.
  uint32_t receivable = UINT32_MAX;

  // Sending half.
  link::SharedSegment send_segment;
  std::optional<link::LaneProducer> sender;
  std::array<uint8_t, 16> remote_gid{};
  uint32_t remote_pd_key = 0;
  /// The nonce of the offer that `sender` came with: an older one's Withdraw is not for it.
  uint64_t remote_nonce = 0;
  /// Count of our messages that the peer's last one told us of; from the receiving half, which releases it, to the
  /// sending one, which acquires it: the peer has read what lies in those slots, and they may be filled again.
  std::atomic<uint32_t> heard_consumed{0};
  /// Operations that the peer executes for us: the next one's number, and the slot after the last one's.
  uint32_t next_operation = 0;
  uint32_t operations_end_slot = 0;
  uint32_t rung_for = 0;           ///< slots published when we last looked whether to ring
  unsigned news = 0;               ///< flags of those that were published since
  uint64_t progress_since_ns = 0;  ///< since when the peer has not got on, as timers saw it; 0: not looked yet
  /// How long that is; 0 where nobody has looked.
  uint64_t waited_ns(uint64_t now_ns) const { return progress_since_ns == 0 ? 0 : now_ns - progress_since_ns; }
  uint64_t wait_began_ns = 0;  ///< datagrams: since when there is no lane, or no room in it
  bool is_refused = false;     ///< datagrams: there is no such queue pair, and so no lane to wait for

 private:
  void ring(uint32_t mode, unsigned flags) const;
  void tell(bool waits_for_room, unsigned flags) const;
};

}  // namespace ringbolt::device
