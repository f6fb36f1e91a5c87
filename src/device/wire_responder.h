#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "device/answer_habit.h"
#include "device/inbox.h"
#include "device/packet_output.h"
#include "device/queue_pair_core.h"
#include "device/wire_path.h"
#include "transport/rc_responder.h"
#include "transport/uc_responder.h"

namespace ringbolt::device {

class CompletionQueue;
class ReceiveQueue;

/// The receiving half of an RC or UC queue pair whose peer is on the network: a protocol engine takes its requests, and
/// what it wants done is done here. Under the lock for receiving, but for the atomics.
/// Part of a WireTransport, and as long-lived. Nothing of a packet is trusted but that its checksum was right.
class WireResponder {
 public:
  /// `path` and `inboxes` must outlive it; the attributes are those of the step to RTR.
  WireResponder(QueuePairCore& core, const WirePath& path, Inboxes& inboxes);

  /// May throw std::bad_alloc: the packet that was looked at is lost, as on the way, and those behind it stay.
  void receive(ReceiveQueue& queue, CompletionQueue& cq) RINGBOLT_REQUIRES(receive_half, cq.lock);
  /// Never blocks; what finds no room stays, and has_unsent() says so.
  void send_answers(uint64_t now_ns) RINGBOLT_REQUIRES(receive_half);
  bool has_arrived() const { return !inboxes_.requests.is_empty(); }
  // Without locks: relaxed hints, as has_unsent() and is_answer_due() are. Who sets one sees to it that somebody looks.
  bool may_receive() const { return has_arrived() || has_unsent(); }
  bool has_unsent() const { return output_.has_unsent() || is_withholding_.load(std::memory_order_relaxed); }
  void finish() RINGBOLT_REQUIRES(receive_half);
  /// The program was given a message, and has neither sent nor polled since.
  bool is_answer_due() const { return is_answer_due_.load(std::memory_order_relaxed); }
  /// The program sends a packet of which these are the headers, and which will be sealed: an acknowledgement that was
  /// withheld goes into it. If more than that is to be said, nothing happens but that the answer stays due.
  void note_answer(wire::Headers& headers, uint64_t now_ns) RINGBOLT_REQUIRES(send_half, receive_half);
  /// The program sends: an acknowledgement that was withheld goes into `output`, if there is one, to leave with that.
  void note_answer(PacketOutput* output, uint64_t now_ns) RINGBOLT_REQUIRES(send_half, receive_half);

 private:
  struct RequestHost;

  void explain_failure(transport::ResponderFailure why) RINGBOLT_REQUIRES(receive_half);
  void explain_starved(ReceiveQueue& queue) RINGBOLT_REQUIRES(receive_half);
  bool must_wait(ReceiveQueue& queue) const RINGBOLT_REQUIRES(receive_half);
  bool fill(const transport::OutPacket& packet, std::byte* target) const RINGBOLT_REQUIRES(receive_half);
  void count_request(const wire::PacketView& view) RINGBOLT_REQUIRES(receive_half);
  void count_news_of_engine() RINGBOLT_REQUIRES(receive_half);
  void note_sender(const wire::PacketView& view) RINGBOLT_REQUIRES(receive_half);
  void report(uint32_t psn) RINGBOLT_REQUIRES(receive_half);
  void build_answers(uint64_t now_ns, PacketOutput& output) RINGBOLT_REQUIRES(receive_half);
  bool may_withhold() const RINGBOLT_REQUIRES(receive_half);
  void end(ReceiveQueue& queue, CompletionQueue& cq, transport::ResponderFailure failure)
      RINGBOLT_REQUIRES(receive_half, cq.lock);

  QueuePairCore& core_;
  const WirePath& path_;
  Inboxes& inboxes_;
  PacketOutput output_;
  // Of the engines the one of the queue pair's type.
  std::optional<transport::RcResponder> rc_ RINGBOLT_GUARDED_BY(receive_half);
  std::optional<transport::UcResponder> uc_ RINGBOLT_GUARDED_BY(receive_half);
  std::optional<transport::ResponderFailure> failure_ RINGBOLT_GUARDED_BY(receive_half);
  struct Asked {
    uint64_t address;
    uint64_t length;
    uint32_t key;
    uint32_t access;
  };
  std::optional<Asked> refused_ RINGBOLT_GUARDED_BY(receive_half);          // of our memory; only where there are notes
  ibv_wc_status fault_ RINGBOLT_GUARDED_BY(receive_half) = IBV_WC_SUCCESS;  // what ended the open receive
  bool knows_sender_ RINGBOLT_GUARDED_BY(receive_half) = false;  // who sends is one of ours, and nobody else is
  bool has_unsealed_ RINGBOLT_GUARDED_BY(receive_half) = false;  // some answers were built before the seal was agreed
  transport::ResponderCounters told_ RINGBOLT_GUARDED_BY(receive_half);  // what the port's counters know
  transport::UcResponderCounters uc_told_ RINGBOLT_GUARDED_BY(receive_half);
  AnswerHabit habit_ RINGBOLT_GUARDED_BY(receive_half);
  // Written under the lock.
  std::atomic<bool> is_answer_due_{false};
  std::atomic<bool> is_withholding_{
      false};  // an acknowledgement; the next to poll sends it, if the program does not send
};

}  // namespace ringbolt::device
