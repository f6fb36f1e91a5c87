#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "device/inbox.h"
#include "device/packet_output.h"
#include "device/queue_pair_core.h"
#include "device/send_request.h"
#include "device/wire_path.h"
#include "transport/rc_requester.h"
#include "transport/uc_requester.h"
#include "transport/uc_window.h"

namespace ringbolt::device {

class SendQueue;
class WireResponder;

/// The sending half of an RC or UC queue pair whose peer is on the network: sends go through a protocol engine, whose
/// packets are built here. Under the lock for sending, but for the atomics.
/// Part of a WireTransport, and as long-lived. What engines have sent lies in the send queue until they are done with
/// it, and its memory is looked up anew for each packet: who deregisters it meanwhile ends the queue pair, and harms
/// nothing.
class WireRequester {
 public:
  /// `path` and `inboxes` must outlive it.
  WireRequester(QueuePairCore& core, const WirePath& path, Inboxes& inboxes)
      : core_(core), path_(path), inboxes_(inboxes), output_(core, core.counts.first(), path.mtu_bytes) {}

  /// The step to RTR: the first word to the peer, of what only peers of ours understand. Throws std::bad_alloc.
  void introduce() RINGBOLT_REQUIRES(send_half);
  /// The step to RTS: the engine starts, unless it has before. Throws std::bad_alloc.
  void start(uint32_t slots) RINGBOLT_REQUIRES(send_half);

  // As QueuePairTransport has them.
  bool submit(SendQueue& queue, SendEntry& entry, const SendRequest& request) RINGBOLT_REQUIRES(send_half);
  /// Takes an acknowledgement along that `responder` withholds.
  /// Takes the lock for receiving for that.
  void push_out(SendQueue& queue, WireResponder& responder) RINGBOLT_REQUIRES(send_half);
  void take_answers(SendQueue& queue, uint64_t look_ns) RINGBOLT_REQUIRES(send_half);
  bool is_complete(const SendEntry& entry) const RINGBOLT_REQUIRES(send_half);
  bool give_up() RINGBOLT_REQUIRES(send_half);
  /// What ended the connection; success: nothing.
  ibv_wc_status failure() const RINGBOLT_REQUIRES(send_half);
  /// What found no room, before anything else. After an error it leaves alone, and its sends are flushed meanwhile.
  void send_unsent(SendQueue& queue) RINGBOLT_REQUIRES(send_half);
  void finish() RINGBOLT_REQUIRES(send_half) { output_.finish(); }

  bool may_send() const { return !inboxes_.answers.is_empty() || output_.has_unsent(); }
  bool has_unsent() const { return output_.has_unsent(); }
  /// CLOCK_MONOTONIC; 0: something found no room; UINT64_MAX: no timer runs. Relaxed: who sets it asks the service
  /// thread to look in time (Process::watch_until), with a fence of its own.
  uint64_t deadline_ns() const { return deadline_ns_.load(std::memory_order_relaxed); }

 private:
  struct AnswerHost;

  uint32_t completed() const RINGBOLT_REQUIRES(send_half);
  bool can_submit() const RINGBOLT_REQUIRES(send_half);
  bool may_have_packet() const RINGBOLT_REQUIRES(send_half) { return rc_ ? rc_->may_have_packet() : !uc_->is_idle(); }
  bool next_packet(uint64_t now_ns, transport::OutPacket& packet) RINGBOLT_REQUIRES(send_half);
  uint64_t timers_ns() const RINGBOLT_REQUIRES(send_half);
  void enable_extras() RINGBOLT_REQUIRES(send_half);
  bool is_started() const RINGBOLT_REQUIRES(send_half) { return rc_ || uc_; }
  uint32_t index_of(uint32_t operation) const RINGBOLT_REQUIRES(send_half) {
    return indices_[operation & (static_cast<uint32_t>(indices_.size()) - 1)];
  }
  bool fill(SendQueue& queue, const transport::OutPacket& packet, std::byte* target) RINGBOLT_REQUIRES(send_half);
  bool build_packets(SendQueue& queue, uint64_t now_ns, WireResponder* responder) RINGBOLT_REQUIRES(send_half);
  bool may_carry(const transport::OutPacket& packet) const RINGBOLT_REQUIRES(send_half);
  void acknowledge(const transport::OutPacket& packet) RINGBOLT_REQUIRES(send_half);
  void send_packets(SendQueue& queue, uint64_t now_ns) RINGBOLT_REQUIRES(send_half);
  void explain_failure(QueuePairNotes& notes, ibv_wc_status status) RINGBOLT_REQUIRES(send_half);
  bool send() RINGBOLT_REQUIRES(send_half);
  void greet(const wire::Greeting& greeting) RINGBOLT_REQUIRES(send_half);
  void greet_again(uint64_t now_ns) RINGBOLT_REQUIRES(send_half);
  void take_answer(SendQueue& queue, const InboundPacket& packet, uint64_t now_ns) RINGBOLT_REQUIRES(send_half);

  QueuePairCore& core_;
  const WirePath& path_;
  Inboxes& inboxes_;
  PacketOutput output_;
  std::atomic<uint64_t> deadline_ns_{UINT64_MAX};
  // Of the engines those of the queue pair's type, from RTS on.
  std::optional<transport::RcRequester> rc_ RINGBOLT_GUARDED_BY(send_half);
  std::optional<transport::UcRequester> uc_ RINGBOLT_GUARDED_BY(send_half);
  std::optional<transport::UcWindow> window_ RINGBOLT_GUARDED_BY(send_half);
  std::vector<uint32_t> indices_ RINGBOLT_GUARDED_BY(send_half);  // of sends, by operation modulo a power of two
  uint32_t submitted_ RINGBOLT_GUARDED_BY(send_half) = 0;         // operations
  uint32_t greetings_ RINGBOLT_GUARDED_BY(send_half) = 0;         // sent of our own accord
  uint64_t next_greeting_ns_ RINGBOLT_GUARDED_BY(send_half) = 0;
  transport::RequesterCounters told_ RINGBOLT_GUARDED_BY(send_half);  // what the port's counters know of the engine's
};

}  // namespace ringbolt::device
