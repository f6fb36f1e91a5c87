#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>

#include "base/mutex.h"
#include "base/result.h"
#include "device/connection.h"
#include "device/queue_pair_core.h"
#include "device/stored_offer.h"
#include "link/messages.h"

namespace ringbolt::device {

class SendQueue;

/// The lanes between a queue pair and others of this host: they are offered, come as offers, and end with their peers.
/// RC and UC have one, UD one for each queue pair that it talks to. The functions of the second group are the service
/// thread's, and take locks themselves: that for sending, the one for receiving, that of the offers, in this order.
/// Owns the connections and the offers that wait. Pointers and references to a connection are good while one of the two
/// locks is held: it ends under both.
class Lanes {
 public:
  Lanes(QueuePairCore& core, SendQueue& sends) : core_(core), sends_(sends) {}

  /// The one lane of RC or UC, to the peer that the attributes name, made and offered. Errno; throws std::bad_alloc;
  /// either way nothing has changed then.
  base::Result<Connection*> connect() RINGBOLT_REQUIRES(send_half, receive_half);
  /// UD: the lane to that queue pair, made if there is none. Null when there are too many, or no memory or descriptor
  /// for one more.
  /// Takes the lock for receiving where it makes or ends a lane. May connect to the peer's process: see
  /// Rendezvous::peer_at().
  Connection* reach(uint32_t remote_qpn, const std::array<uint8_t, 16>& remote_gid) RINGBOLT_REQUIRES(send_half);
  /// Attributes have changed of which peers want to know.
  void publish_attributes() RINGBOLT_REQUIRES(send_half, receive_half);
  /// Ends all, and tells the peers.
  /// Queues messages to them, and waits for none. The connections are gone then, and transports that refer to them must
  /// not be used any more.
  void disconnect() RINGBOLT_REQUIRES(send_half, receive_half);
  /// Calls `use` with each connection. Changed under both locks, so either will do.
  template <class Use>
  void each_sending(Use use) const RINGBOLT_REQUIRES(send_half) RINGBOLT_NOT_ANALYSED {
    each(use);
  }
  template <class Use>
  void each_receiving(Use use) const RINGBOLT_REQUIRES(receive_half) RINGBOLT_NOT_ANALYSED {
    each(use);
  }
  /// The same, beginning with the peer of that number, if it is there.
  template <class Use>
  void each_receiving_from(uint32_t remote_qpn, Use use) const RINGBOLT_REQUIRES(receive_half) RINGBOLT_NOT_ANALYSED {
    const auto first = connections_.find(remote_qpn);
    for (auto at = first; at != connections_.end(); ++at) {
      use(*at->second);
    }
    for (auto at = connections_.begin(); at != first; ++at) {
      use(*at->second);
    }
  }
  /// No peer may ask for anything any more. Under either lock.
  /// It goes for good: a lane is never opened again.
  void close() RINGBOLT_NOT_ANALYSED;
  /// Before lanes go: closes them, and returns when no peer copies on their behalf any more, for afterwards nobody
  /// could tell. Bounded as Process::wait_for_accesses is. Nobody else may connect or disconnect meanwhile; under no
  /// lock of the halves, since the peer may be a thread of this process that holds locks of its own.
  void end_accesses() RINGBOLT_NOT_ANALYSED;
  /// The queue pair is being destroyed: its domain and context may be gone. Nothing is connected after this.
  void retire() RINGBOLT_REQUIRES(send_half) { is_retired_ = true; }

  /// False: it has no use for that offer. A lane that could not be mapped ends the queue pair as soon as it needs it.
  /// True: it was taken, or is kept for a later connect(), or has failed the queue pair as `offered.lane` was an error:
  /// the peer is to be told of that. Throws std::bad_alloc, and the offer is lost: the peer's time limits end it.
  bool on_offer(const std::shared_ptr<link::RemoteProcess>& remote, const link::Offer& offer, Offered offered);
  /// The peer can't use the lane that we offered. False: it is none of ours any more.
  bool on_refuse(const link::Refuse& refuse);
  void on_withdraw(const link::Withdraw& withdraw);
  /// What the peer sent before it went lies in the lane still, and is taken in first (Process::on_gone).
  void on_peer_gone(const link::Peer& peer, bool was_orderly);
  /// A peer copies from or to the region of `key`.
  /// Behind a heavy fence after the key was hidden: who announces a copy from then on finds it hidden. Dead peers do
  /// not count: their announcement stands for ever.
  bool is_accessed(uint32_t key);
  /// Tells every peer how far we are: before the process exits.
  void tell_peers();
  /// The service thread waits until peers make room for sends that found none, or no longer. Before a heavy fence.
  void wait_for_room(bool waits);

 private:
  template <class Use>
  void each(Use use) const RINGBOLT_NOT_ANALYSED {
    for (const auto& [qpn, connection] : connections_) {
      use(*connection);
    }
  }
  base::Result<std::unique_ptr<Connection>> make(uint32_t remote_qpn, const std::array<uint8_t, 16>& remote_gid)
      RINGBOLT_REQUIRES(send_half);
  void offer(Connection& connection) RINGBOLT_REQUIRES(send_half);
  void adopt(std::unique_ptr<Connection> connection) RINGBOLT_REQUIRES(send_half, receive_half);
  void attach(Connection& connection, const link::Offer& offer, Offered offered)
      RINGBOLT_REQUIRES(send_half, receive_half);
  void publish_attributes(Connection& connection) RINGBOLT_REQUIRES(send_half);
  void disconnect(Connection& connection) RINGBOLT_REQUIRES(send_half, receive_half);
  void fail(Connection& connection, ibv_wc_status status) RINGBOLT_REQUIRES(send_half);
  void purge() RINGBOLT_REQUIRES(send_half);
  Connection* find(uint32_t remote_qpn) RINGBOLT_REQUIRES(send_half) RINGBOLT_NOT_ANALYSED;
  bool is_busy(const Connection& connection) RINGBOLT_REQUIRES(send_half);

  QueuePairCore& core_;
  SendQueue& sends_;
  bool is_retired_ RINGBOLT_GUARDED_BY(send_half) = false;
  size_t purge_at_ RINGBOLT_GUARDED_BY(send_half) =
      0;  // UD: how many there are when those that are over are looked for
  /// By the number of the remote queue pair.
  std::unordered_map<uint32_t, std::unique_ptr<Connection>> connections_ RINGBOLT_GUARDED_BY(send_half)
      RINGBOLT_GUARDED_BY(receive_half);
  // A leaf, and short: offers are looked at where only one of the halves is locked.
  base::Mutex offers_lock_ RINGBOLT_ACQUIRED_AFTER(receive_half);
  std::unordered_map<uint32_t, StoredOffer> offers_ RINGBOLT_GUARDED_BY(offers_lock_);
};

}  // namespace ringbolt::device
