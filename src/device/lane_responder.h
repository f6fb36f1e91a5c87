#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>

#include "device/connection.h"
#include "device/queue_pair_core.h"
#include "device/received_message.h"

namespace ringbolt::device {

class CompletionQueue;
class ReceiveQueue;

/// The receiving half of an RC or UC queue pair whose peer is on this host: puts messages of the lane into receives,
/// and executes what the peer can't do itself, as it does not reach our memory. Under the lock for receiving.
/// Part of a LaneTransport, and as long-lived. Nothing in a slot is trusted: lengths, keys and places are checked here,
/// each after it was copied out of the memory that the peer can write.
class LaneResponder {
 public:
  LaneResponder(QueuePairCore& core, Connection& connection) : core_(core), connection_(connection) {}

  void receive(ReceiveQueue& queue, CompletionQueue& cq) RINGBOLT_REQUIRES(receive_half, cq.lock);
  /// Receives are about to be posted behind `posted` ones.
  /// The note that a message waits for a receive is taken back, whether this one meets it or not.
  void on_posting(uint32_t posted) RINGBOLT_REQUIRES(receive_half);

 private:
  // lane_receives.cpp. Each says whether the slot was dealt with; if not it stays and is looked at again.
  bool take(ReceiveQueue& queue, CompletionQueue& cq, const link::SlotHeader& header)
      RINGBOLT_REQUIRES(receive_half, cq.lock);
  bool take_chunk(ReceiveQueue& queue, CompletionQueue& cq, const link::SlotHeader& header)
      RINGBOLT_REQUIRES(receive_half, cq.lock);
  bool take_shared(ReceiveQueue& queue, CompletionQueue& cq, const link::SlotHeader& header)
      RINGBOLT_REQUIRES(receive_half, cq.lock);
  bool take_private(ReceiveQueue& queue, CompletionQueue& cq, const link::SlotHeader& header)
      RINGBOLT_REQUIRES(receive_half, cq.lock);
  // Copies with process_vm_readv, under the lock: one system call, which waits for nobody. `into` has `fields.total`
  // bytes.
  link::CopyOutcome pull(const link::PrivateFields& fields, std::span<const iovec> into) const;
  void note_long(const ReceiveQueue& queue, SendWays::Way way, uint32_t bytes, uint64_t begun_ns)
      RINGBOLT_REQUIRES(receive_half);
  bool take_written(ReceiveQueue& queue, CompletionQueue& cq, const link::SlotHeader& header)
      RINGBOLT_REQUIRES(receive_half, cq.lock);
  bool take_refusal(const link::SlotHeader& header) RINGBOLT_REQUIRES(receive_half);
  bool take_unexpected(ReceiveQueue& queue, const link::SlotHeader& header) RINGBOLT_REQUIRES(receive_half);
  bool open(ReceiveQueue& queue) RINGBOLT_REQUIRES(receive_half);
  bool begin(ReceiveQueue& queue, CompletionQueue& cq, uint32_t total) RINGBOLT_REQUIRES(receive_half, cq.lock);
  bool invalidate(ReceiveQueue& queue, CompletionQueue& cq, const link::SlotHeader& header)
      RINGBOLT_REQUIRES(receive_half, cq.lock);
  bool keep_in_place(uint32_t arena_id) RINGBOLT_REQUIRES(receive_half);
  void drop_rest(bool wants_receives) RINGBOLT_REQUIRES(receive_half);
  bool fail(ReceiveQueue& queue, CompletionQueue& cq, ibv_wc_status status, link::Refusal refusal)
      RINGBOLT_REQUIRES(receive_half, cq.lock);
  ReceivedMessage message_of(const link::SlotHeader& header, ibv_wc_opcode opcode, uint32_t length) const;
  void count(const link::SlotHeader& header, uint32_t length) RINGBOLT_REQUIRES(receive_half);

  // lane_serving.cpp: what the requester could not do itself
  bool serve_write(const link::SlotHeader& header) RINGBOLT_REQUIRES(receive_half);
  bool serve_read() RINGBOLT_REQUIRES(receive_half);
  bool serve_atomic(const link::SlotHeader& header) RINGBOLT_REQUIRES(receive_half);
  bool refuse(link::Refusal refusal, link::RemoteFields asked, uint32_t access) RINGBOLT_REQUIRES(receive_half);
  // RINGBOLT_EXPLAIN
  void explain_refused(link::Refusal refusal, link::RemoteFields asked, uint32_t access)
      RINGBOLT_REQUIRES(receive_half);
  void explain_death() RINGBOLT_REQUIRES(receive_half);
  void explain_starved(ReceiveQueue& queue) RINGBOLT_REQUIRES(receive_half);
  void explain_refusal(bool is_invalid) RINGBOLT_REQUIRES(receive_half);
  void explain_invalidation(uint32_t key) RINGBOLT_REQUIRES(receive_half);

  QueuePairCore& core_;
  Connection& connection_;
};

}  // namespace ringbolt::device
