#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "device/inbox.h"
#include "device/lanes.h"
#include "device/packet_output.h"
#include "device/queue_pair_transport.h"

namespace ringbolt::device {

/// A UD queue pair's way to all others: lanes to those of this host, each made when it is needed first, and one packet
/// a datagram to those on the network. Nothing answers, and what can't leave is lost.
/// Owned by its queue pair, from the beginning to the end: a reset empties it. Lanes come and go under it.
class DatagramTransport final : public QueuePairTransport {
 public:
  /// `lanes`, and `inboxes`, which is null for a port in shared memory, must outlive it.
  DatagramTransport(QueuePairCore& core, Lanes& lanes, Inboxes* inboxes);

  bool submit(SendQueue& queue, SendEntry& entry, const SendRequest& request) override RINGBOLT_REQUIRES(send_half);
  void push_out(SendQueue& queue) override RINGBOLT_REQUIRES(send_half);
  void take_answers(SendQueue& queue, uint64_t) override RINGBOLT_REQUIRES(send_half) { push_out(queue); }
  /// Datagrams are complete once they are on their way.
  bool is_complete(SendQueue&, SendEntry&, const SendRequest&) override RINGBOLT_REQUIRES(send_half) {
    return !output_.is_holding();
  }
  bool give_up() override RINGBOLT_REQUIRES(send_half) { return false; }
  void check_timers(SendQueue& queue, uint64_t now_ns) override;
  Delivery delivery(const SendQueue&, uint32_t) override RINGBOLT_REQUIRES(send_half) { return Delivery::delivered; }
  void send_unsent(SendQueue& queue) override RINGBOLT_REQUIRES(send_half) { push_out(queue); }
  uint32_t rnr_timer_us() const override RINGBOLT_REQUIRES(send_half) { return 0; }

  void receive(ReceiveQueue& queue, CompletionQueue& cq) override RINGBOLT_REQUIRES(receive_half, cq.lock);
  bool has_arrived() const override RINGBOLT_REQUIRES(receive_half);

  bool may_have_news() const override RINGBOLT_REQUIRES(receive_half);

  bool has_unsent() const override { return output_.has_unsent(); }
  uint64_t deadline_ns() const override { return output_.has_unsent() ? 0 : UINT64_MAX; }
  void close() override { lanes_.close(); }
  void disconnect() override RINGBOLT_REQUIRES(send_half, receive_half);

 private:
  bool may_have_arrived() const override { return true; }  // from whom, nobody knows before
  bool may_have_answers() const override { return output_.has_unsent(); }
  bool send_through_lane(SendQueue& queue, const SendRequest& request, const Pieces& pieces, SendEntry& entry)
      RINGBOLT_REQUIRES(send_half);
  bool send_packet(const SendRequest& request, const Pieces& pieces, SendEntry& entry) RINGBOLT_REQUIRES(send_half);
  void lose(SendEntry& entry) RINGBOLT_REQUIRES(send_half);
  void receive_packet(ReceiveQueue& queue, CompletionQueue& cq, const InboundPacket& packet)
      RINGBOLT_REQUIRES(receive_half, cq.lock);
  bool receive_slot(ReceiveQueue& queue, CompletionQueue& cq, Connection& connection, const link::SlotHeader& header)
      RINGBOLT_REQUIRES(receive_half, cq.lock);
  void take_slot(ReceiveQueue& queue, CompletionQueue& cq, Connection& connection, const link::SlotHeader& header)
      RINGBOLT_REQUIRES(receive_half, cq.lock);
  void explain_lost(const SendQueue& queue, const SendEntry& entry, const SendRequest& request,
                    const Connection* connection) RINGBOLT_REQUIRES(send_half);
  template <class Source>
  void explain_unwanted(ReceiveQueue& queue, const Source& source, uint32_t qkey) RINGBOLT_REQUIRES(receive_half);
  void drop(Drop why) { core_.process.network().drops().count(core_.port->netdev_index, why); }

  QueuePairCore& core_;
  Lanes& lanes_;
  Inboxes* const inboxes_;
  PacketOutput output_;
  uint32_t next_psn_ RINGBOLT_GUARDED_BY(send_half) = 0;
  uint32_t turn_ RINGBOLT_GUARDED_BY(receive_half) = 0;  // the peer whose lane is looked at first
};

}  // namespace ringbolt::device
