#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "device/connection.h"
#include "device/counting.h"
#include "device/queue_pair_core.h"
#include "device/send_request.h"

namespace ringbolt::device {

class SendQueue;

/// The sending half of an RC or UC queue pair whose peer is on this host: SENDs go into the lane; WRITE, READ and
/// atomics it does itself where it can reach the peer's memory, and else the peer does them, in its own poll or on its
/// service thread. Under the lock for sending.
/// Part of a LaneTransport, and as long-lived; `connection` outlives both. Where it reads or writes the peer's memory
/// it announces the region first, so that its owner can wait for the end (docs/formats/lane.md).
class LaneRequester {
 public:
  /// `peer_counts`: of a peer at another port; null where both ends count at one.
  LaneRequester(QueuePairCore& core, Connection& connection, std::unique_ptr<CountingCell> peer_counts)
      : core_(core), connection_(connection), peer_counts_(std::move(peer_counts)) {}

  // As QueuePairTransport has them.
  bool submit(SendQueue& queue, SendEntry& entry, const SendRequest& request) RINGBOLT_REQUIRES(send_half);
  bool execute_at_once(SendEntry& entry, const ibv_send_wr& wr) RINGBOLT_REQUIRES(send_half);
  bool is_complete(SendQueue& queue, SendEntry& entry, const SendRequest& request) RINGBOLT_REQUIRES(send_half);
  bool give_up() RINGBOLT_REQUIRES(send_half);
  void flush() RINGBOLT_REQUIRES(send_half);
  bool is_being_read() RINGBOLT_REQUIRES(send_half);

 private:
  // lane_sends.cpp. Each moves what it can and says whether the entry needs no more pushing.
  // False: nothing is lost, and the same is called again once there is room, a lane, or an answer.
  bool is_plain() const RINGBOLT_REQUIRES(send_half);
  bool submit_with_care(SendQueue& queue, SendEntry& entry, const SendRequest& request) RINGBOLT_REQUIRES(send_half);
  bool execute(SendQueue& queue, SendEntry& entry, const SendRequest& request) RINGBOLT_REQUIRES(send_half);
  bool send(SendQueue& queue, SendEntry& entry, const SendRequest& request) RINGBOLT_REQUIRES(send_half);
  bool send_at_once(SendEntry& entry, const ibv_send_wr& wr) RINGBOLT_REQUIRES(send_half);
  bool send_chunks(const SendRequest& request, unsigned last_flags, const Pieces& pieces, SendEntry& entry)
      RINGBOLT_REQUIRES(send_half);
  bool is_to_be_pulled(const SendRequest& request, const SendEntry& entry) const RINGBOLT_REQUIRES(send_half);
  bool finish(SendEntry& entry) RINGBOLT_REQUIRES(send_half);
  ibv_wc_status refusal() const RINGBOLT_REQUIRES(send_half);

  // lane_one_sided.cpp
  bool write(SendQueue& queue, SendEntry& entry, const SendRequest& request) RINGBOLT_REQUIRES(send_half);
  bool write_at_once(SendEntry& entry, const ibv_send_wr& wr) RINGBOLT_REQUIRES(send_half);
  bool write_and_tell_at_once(SendEntry& entry, const ibv_send_wr& wr) RINGBOLT_REQUIRES(send_half);
  bool copy_to_peer(const ibv_send_wr& wr) RINGBOLT_REQUIRES(send_half);
  bool read_at_once(SendEntry& entry, const ibv_send_wr& wr) RINGBOLT_REQUIRES(send_half);
  bool atomic_at_once(SendEntry& entry, const ibv_send_wr& wr) RINGBOLT_REQUIRES(send_half);
  ibv_wc_status write_through_kernel(SendEntry& entry, const SendRequest& request, const Pieces& pieces)
      RINGBOLT_REQUIRES(send_half);
  bool write_by_peer(SendEntry& entry, const SendRequest& request, const Pieces& pieces) RINGBOLT_REQUIRES(send_half);
  bool notify_written(const SendEntry& entry, const SendRequest& request) RINGBOLT_REQUIRES(send_half);
  void publish_written(const link::RemoteFields& fields, bool is_solicited, bool is_signaled, uint32_t immediate)
      RINGBOLT_REQUIRES(send_half);
  bool read(SendQueue& queue, SendEntry& entry, const SendRequest& request) RINGBOLT_REQUIRES(send_half);
  bool read_by_peer(SendEntry& entry, const SendRequest& request, const Pieces& pieces) RINGBOLT_REQUIRES(send_half);
  bool execute_atomic(SendQueue& queue, SendEntry& entry, const SendRequest& request) RINGBOLT_REQUIRES(send_half);
  bool ask_for_atomic(SendEntry& entry, const SendRequest& request) RINGBOLT_REQUIRES(send_half);
  bool finish_answer(SendQueue& queue, SendEntry& entry, const SendRequest& request) RINGBOLT_REQUIRES(send_half);
  /// Where the only piece of the request lies; null: its key does not allow `access`.
  /// Of an inline request the address is taken as it is: the key means nothing.
  std::byte* own_piece(const ibv_send_wr& wr, uint32_t access) const;
  /// Where the bytes are mapped here that the peer's key names, as far as it may have them; null: check_remote() knows
  /// why not.
  /// Between announcing the region and the end of the copy only.
  std::byte* reach(uint32_t key, uint64_t address, uint32_t length, uint32_t access) const;
  ibv_wc_status check_remote(const SendRequest& request, uint32_t access, link::Region& region) const;
  bool refuse_access(SendQueue& queue, SendEntry& entry, ibv_wc_status status) RINGBOLT_REQUIRES(send_half);
  void explain_failure(ibv_wc_status status) RINGBOLT_REQUIRES(send_half);
  void explain_refusal(const SendQueue& queue, const SendEntry& entry, ibv_wc_status status)
      RINGBOLT_REQUIRES(send_half);
  bool finish_one_sided(SendEntry& entry) RINGBOLT_REQUIRES(send_half);
  bool must_wait_for_peer() RINGBOLT_REQUIRES(send_half);
  void count_write(uint32_t length, uint32_t extra_words) RINGBOLT_REQUIRES(send_half);
  void count_exchange(const Load& request, const Load& answer, RingboltLaneWord kind) RINGBOLT_REQUIRES(send_half);

  QueuePairCore& core_;
  Connection& connection_;
  const std::unique_ptr<CountingCell> peer_counts_;
  uint32_t answers_pending_ RINGBOLT_GUARDED_BY(send_half) = 0;  // operations that the peer executes
  std::optional<uint32_t> pulled_end_
      RINGBOLT_GUARDED_BY(send_half);  // the slot after the last send that it reads here
  bool is_out_of_reach_ RINGBOLT_GUARDED_BY(send_half) =
      false;                                                // the last one-sided operation met memory not mapped here
  bool is_hurried_ RINGBOLT_GUARDED_BY(send_half) = false;  // it was woken for that
};

inline std::byte* LaneRequester::own_piece(const ibv_send_wr& wr, uint32_t access) const {
  const ibv_sge& piece = wr.sg_list[0];
  link::RegionTableView::Place place;
  if ((wr.send_flags & IBV_SEND_INLINE) != 0) {  // not of READ and atomics: see SendQueue::check()
    return reinterpret_cast<std::byte*>(piece.addr);
  }
  return core_.process.regions().locate(piece.lkey, core_.pd.key, link::kAnyQueuePair, access, piece.addr, piece.length,
                                        place)
             ? reinterpret_cast<std::byte*>(place.host)
             : nullptr;
}

}  // namespace ringbolt::device
