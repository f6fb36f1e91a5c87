#pragma once

#include <memory>

#include "device/lane_requester.h"
#include "device/lane_responder.h"
#include "device/queue_pair_transport.h"
#include "device/silence_timer.h"

namespace ringbolt::device {

/// An RC or UC queue pair's way to a peer on this host: a lane each way.
/// Owned by its queue pair. The lane to us is there from the beginning, the one to the peer once its offer has come:
/// sends wait until then.
class LaneTransport final : public QueuePairTransport {
 public:
  /// `connection` must outlive it. `peer_counts`: see LaneRequester.
  LaneTransport(QueuePairCore& core, Connection& connection, std::unique_ptr<CountingCell> peer_counts)
      : QueuePairTransport(&connection.receiver),
        core_(core),
        connection_(connection),
        requester_(core, connection, std::move(peer_counts)),
        responder_(core, connection) {}

  bool submit(SendQueue& queue, SendEntry& entry, const SendRequest& request) override RINGBOLT_REQUIRES(send_half) {
    return requester_.submit(queue, entry, request);
  }
  bool execute_at_once(SendEntry& entry, const ibv_send_wr& wr) override RINGBOLT_REQUIRES(send_half) {
    return requester_.execute_at_once(entry, wr);
  }
  void push_out(SendQueue&) override RINGBOLT_REQUIRES(send_half) { connection_.ring(); }
  void take_answers(SendQueue&, uint64_t) override RINGBOLT_REQUIRES(send_half) {
    if (connection_.sender) {
      connection_.sender->take_consumed(connection_.heard_consumed.load(std::memory_order_acquire));
      note_producer(*connection_.sender);  // it stays where it is, when it is made anew too
    }
  }
  bool is_complete(SendQueue& queue, SendEntry& entry, const SendRequest& request) override
      RINGBOLT_REQUIRES(send_half) {
    return requester_.is_complete(queue, entry, request);
  }
  bool give_up() override RINGBOLT_REQUIRES(send_half) { return requester_.give_up(); }
  bool is_being_read() override RINGBOLT_REQUIRES(send_half) { return requester_.is_being_read(); }
  void flush() override RINGBOLT_REQUIRES(send_half) { requester_.flush(); }
  void check_timers(SendQueue& queue, uint64_t now_ns) override;
  Delivery delivery(const SendQueue& queue, uint32_t index) override RINGBOLT_REQUIRES(send_half);
  Reception reception(bool hurries) override RINGBOLT_REQUIRES(send_half);
  uint32_t rnr_timer_us() const override RINGBOLT_REQUIRES(send_half);

  void receive(ReceiveQueue& queue, CompletionQueue& cq) override RINGBOLT_REQUIRES(receive_half, cq.lock) {
    responder_.receive(queue, cq);
  }
  void on_posting(uint32_t posted) override RINGBOLT_REQUIRES(receive_half) { responder_.on_posting(posted); }
  bool has_arrived() const override RINGBOLT_REQUIRES(receive_half) { return connection_.receiver.has_slot(); }

  bool may_have_news() const override RINGBOLT_REQUIRES(receive_half) { return connection_.receiver.has_news(); }

  void close() override { connection_.receiver.close(); }

 private:
  // lane_timers.cpp
  ibv_wc_status overdue(uint64_t now_ns) RINGBOLT_REQUIRES(send_half);
  bool is_unready(uint64_t now_ns, ibv_wc_status& status) RINGBOLT_REQUIRES(send_half);
  bool look_for_progress(uint64_t now_ns) RINGBOLT_REQUIRES(send_half);
  void explain_overdue(QueuePairNotes& notes, ibv_wc_status status, uint64_t now_ns) RINGBOLT_REQUIRES(send_half);
  void end_unanswered(SendQueue& queue, uint64_t now_ns) RINGBOLT_REQUIRES(send_half);
  uint64_t patience_factor(bool has_lane) const;
  void take_last_word() RINGBOLT_REQUIRES(send_half);

  QueuePairCore& core_;
  Connection& connection_;
  LaneRequester requester_;
  LaneResponder responder_;

  // The timers of the sending half.
  uint32_t progress_mark_ = 0;  // what they last saw of the counts of consumed slots and of done sends
  SilenceTimer silence_;
  uint64_t not_ready_since_ns_ = 0;  // since when the receiver has no receive posted; 0: it has, or nobody looked
  uint64_t next_ring_ns_ = 0;
  uint64_t ring_pause_ns_ = 0;
};

}  // namespace ringbolt::device
