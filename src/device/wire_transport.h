#pragma once

#include <cstdint>
#include <memory>

#include "base/result.h"
#include "device/queue_pair_transport.h"
#include "device/wire_path.h"
#include "device/wire_requester.h"
#include "device/wire_responder.h"

namespace ringbolt::device {

/// An RC or UC queue pair's way to a peer on the network, or at a cable's byte stream.
/// Owned by its queue pair, whose inboxes are open for packets as long as this is connected.
class WireTransport final : public QueuePairTransport {
 public:
  /// To the peer that the attributes name, at the step to RTR. An errno, or throws std::bad_alloc: then nothing has
  /// changed. `inboxes` must outlive it.
  static base::Result<std::unique_ptr<WireTransport>> connect(QueuePairCore& core, Inboxes& inboxes)
      RINGBOLT_REQUIRES(send_half, receive_half);
  ~WireTransport() override;

  void start(uint32_t slots) override RINGBOLT_REQUIRES(send_half) { requester_.start(slots); }

  bool submit(SendQueue& queue, SendEntry& entry, const SendRequest& request) override RINGBOLT_REQUIRES(send_half) {
    return requester_.submit(queue, entry, request);
  }
  void push_out(SendQueue& queue) override RINGBOLT_REQUIRES(send_half) { requester_.push_out(queue, responder_); }
  void take_answers(SendQueue& queue, uint64_t look_ns) override RINGBOLT_REQUIRES(send_half) {
    requester_.take_answers(queue, look_ns);
  }
  bool is_complete(SendQueue&, SendEntry& entry, const SendRequest&) override RINGBOLT_REQUIRES(send_half) {
    return requester_.is_complete(entry);
  }
  bool give_up() override RINGBOLT_REQUIRES(send_half) { return requester_.give_up(); }
  Delivery delivery(const SendQueue& queue, uint32_t index) override RINGBOLT_REQUIRES(send_half);
  uint32_t rnr_timer_us() const override RINGBOLT_REQUIRES(send_half);
  void send_unsent(SendQueue& queue) override RINGBOLT_REQUIRES(send_half) { requester_.send_unsent(queue); }

  void receive(ReceiveQueue& queue, CompletionQueue& cq) override RINGBOLT_REQUIRES(receive_half, cq.lock) {
    responder_.receive(queue, cq);
  }
  bool has_arrived() const override RINGBOLT_REQUIRES(receive_half) { return responder_.has_arrived(); }
  bool may_have_news() const override RINGBOLT_REQUIRES(receive_half) { return responder_.has_unsent(); }
  void send_unsent_answers() override RINGBOLT_REQUIRES(receive_half);

  bool has_unsent() const override { return requester_.has_unsent() || responder_.has_unsent(); }
  uint64_t deadline_ns() const override { return responder_.has_unsent() ? 0 : requester_.deadline_ns(); }
  // Nothing to do: packets for a queue pair in ERR are dropped before they get here (QueuePair::arrive).
  void close() override {}
  void disconnect() override RINGBOLT_REQUIRES(send_half, receive_half);

 private:
  WireTransport(QueuePairCore& core, const WirePath& path, Inboxes& inboxes)
      : core_(core),
        path_(path),
        inboxes_(inboxes),
        requester_(core, path_, inboxes),
        responder_(core, path_, inboxes) {}
  bool may_have_arrived() const override { return responder_.may_receive(); }
  bool may_have_answers() const override { return requester_.may_send(); }

  QueuePairCore& core_;
  const WirePath path_;
  Inboxes& inboxes_;
  WireRequester requester_;
  WireResponder responder_;
};

}  // namespace ringbolt::device
