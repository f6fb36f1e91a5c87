#pragma once

#include <cstdint>

#include "rsocket/settings.h"
#include "rsocket/verbs_objects.h"

namespace ringbolt::rsocket {

/// The verbs objects of one stream: a completion queue with its channel, a queue pair on the connection's id, and the
/// three pieces of memory. All receives are posted. Not thread-safe.
class Endpoint {
 public:
  /// More receives than the peer gets credits for: they take its control messages, which it sends without credit.
  /// Four times what a peer of ours may have under way (SendSlots::kControl).
  static constexpr uint32_t kSpareReceives = 16;

  /// `id` has a device, no queue pair, and outlives this. Lowers `settings` to what the device can do. Throws
  /// base::Error.
  Endpoint(rdma_cm_id* id, Settings& settings);
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  ibv_cq* cq() const { return cq_.get(); }
  ibv_qp* qp() const { return id_->qp; }
  int channel_fd() const { return channel_->fd; }
  const RegisteredPages& staging() const { return staging_; }
  const RegisteredPages& ring() const { return ring_; }
  const RegisteredPages& table() const { return table_; }
  /// Where control message number `number` may put its bytes; they may be overwritten SendSlots::kControl messages
  /// later.
  std::byte* control_place(uint32_t number) const;

  /// Posts `count` receives. An errno, or 0.
  /// They have no memory: all that comes is written by RDMA, and says so by its immediate data.
  int post_receives(uint32_t count);
  /// The next completion raises an event, and so does one that lies there already. An errno, or 0.
  int arm();
  /// Takes the events off the channel. Whether there was one. Does not block.
  /// Acknowledges them later, at the latest before the queue is destroyed, which waits for it (ibv_get_cq_event(3)).
  bool take_events();

 private:
  void make_queue_pair(Settings& settings);

  rdma_cm_id* id_;
  CompletionChannel channel_;
  CompletionQueue cq_;
  unsigned unacknowledged_ = 0;
  RegisteredPages staging_;
  RegisteredPages ring_;
  RegisteredPages table_;
  // without the control messages' places behind them
  uint32_t staging_bytes_ = 0;
};

}  // namespace ringbolt::rsocket
