#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/mutex.h"
#include "base/unique_fd.h"
#include "device/connection_record.h"
#include "device/management_services.h"
#include "device/orphans.h"
#include "device/port.h"
#include "link/mad_socket.h"
#include "wire/cm_message.h"
#include "wire/cm_private.h"
#include "wire/flow.h"

namespace ringbolt::device {

/// A management datagram with the parts of its IP header that matter.
struct Mad {
  wire::Address source{};
  wire::Address destination{};
  uint32_t flow_label = 0;
  uint8_t traffic_class = 0;
  uint8_t hop_limit = 64;
  std::array<std::byte, wire::kMadBytes> bytes{};
};

/// Something for the connection manager of this process.
struct Notice {
  enum class Kind : uint8_t { mad, peer_gone } kind = Kind::mad;
  uint32_t peer_slot = 0;  ///< kNoSlot: no process of this host
  Mad mad;

  static constexpr uint32_t kNoSlot = 0xffffffff;
};

/// Queue pair 1 of this process: carries management datagrams to and from the connection manager, if the process has
/// one, over two carriers that look alike:
///
///   local    UNIX datagram sockets `<slots>/<slot>.mad`, for GIDs of this host (all ports of an emulated cluster)
///   network  packets to queue pair 1 over UDP, through the hook below
///
/// A datagram that reaches this process but belongs to another one of this host is forwarded. REQ and SIDR_REQ belong
/// to who listens for their service id, everything else to the slot in the upper bits of the remote communication id.
/// What belongs to nobody is answered as a kernel would: REJ 8, SIDR_REP 1, DREP. Thread-safe.
/// Owned by the process. Its lock is held over the sending of a datagram, never over the hook or the watcher, which may
/// take locks of their own.
class Management {
 public:
  /// Sends one datagram from `port`, that is with BTH, DETH and ICRC around it to queue pair 1 at mad.destination. 0 or
  /// an errno. Called without locks held, from any thread; must not block.
  using NetworkSender = std::function<int(const Port& port, const Mad& mad)>;
  /// Makes sure that the process hears when the one of `slot` ends (on_peer_gone is called then).
  using Watcher = std::function<void(uint32_t slot)>;

  Management(std::shared_ptr<Fabric> fabric, uint32_t slot, Watcher watch);

  /// For the UDP link: the carrier to other hosts. Without one, GIDs that no process of this host has are unreachable.
  void set_network_sender(NetworkSender sender);
  /// For the UDP link: a packet for queue pair 1 came whose ICRC, P_Key, Q_Key (wire::kGsiQkey) and length were right.
  /// `flow.destination` is an address of this host. Works without open(), too: other processes of the host may listen.
  void on_network_mad(const wire::Flow& flow, uint8_t traffic_class, wire::MadIn mad);

  /// Makes this process one with a connection manager. Throws base::Error.
  void open();
  /// The addresses of interfaces have changed. Service thread only.
  void look_at_addresses();
  bool is_open() const { return is_open_.load(std::memory_order_acquire); }
  /// Readable while receive() may have something; -1 before open().
  int descriptor() const { return poller_.get(); }
  /// The next notice; false when none waits. Also sends what found no room before.
  bool receive(Notice& notice);
  int send(const Port& port, const Mad& mad);
  uint32_t slot() const { return slot_; }
  uint32_t unsent() const { return unsent_.load(std::memory_order_relaxed); }

  ServiceBook& services() { return services_; }
  /// Whether the process of another slot receives datagrams.
  bool is_alive(uint32_t slot);

  /// A connection of the port stands, and somebody shall end it should we be killed; none does any more.
  void remember(const Port& port, const RecordEntry& connection);
  void forget(uint32_t local_id) { record_.remove(local_id); }
  Orphans& orphans() { return orphans_; }

  /// A process that we are connected to ended.
  /// Service thread only.
  void on_peer_gone(uint32_t slot);
  /// Removes our files; nothing is received any more.
  /// Further calls have no effect.
  void leave();
  /// In a forked child: the files are the parent's.
  void abandon_after_fork() RINGBOLT_NOT_ANALYSED;  // whoever held the lock stayed behind

 private:
  /// `is_in_folder`: its sender's port is on no network, so that its peers are those of the folder.
  void deliver(bool is_in_folder, const Mad& mad, bool is_from_network);
  /// False when it is nobody's, and nobody is about to listen for it.
  bool try_to_deliver(bool is_in_folder, const Mad& mad, const wire::CmMad& message, bool is_from_network);
  bool hold(bool is_in_folder, const Mad& mad, uint64_t service_id, bool is_from_network);
  /// False when nobody receives there.
  bool deliver_to_slot(uint32_t slot, const Mad& mad, bool is_from_network);
  void deliver_to_all(const Mad& mad, bool is_from_network);
  void answer_for_nobody(const Mad& mad, const wire::CmMad& message, bool is_from_network);
  Orphans::Sent send_for_the_dead(const RecordEntry& from, wire::MadIn bytes);
  void push(Notice notice);
  void send_unsent();
  void deliver_held();
  std::shared_ptr<link::MadSocket> socket();
  const std::vector<std::shared_ptr<const Port>>& ports();

  const std::shared_ptr<Fabric> fabric_;
  const uint32_t slot_;
  const Watcher watch_;
  ServiceBook services_;
  ConnectionRecord record_;
  Orphans orphans_;

  base::Mutex mutex_;
  std::vector<std::shared_ptr<const Port>> ports_ RINGBOLT_GUARDED_BY(mutex_);  // filled once
  std::shared_ptr<link::MadSocket> socket_ RINGBOLT_GUARDED_BY(mutex_);         // also without open(), for forwarding
  NetworkSender network_ RINGBOLT_GUARDED_BY(mutex_);
  std::deque<Notice> notices_ RINGBOLT_GUARDED_BY(mutex_);  // beside those in the socket
  struct Unsent {
    uint32_t slot;
    link::MadFrame frame;
    uint64_t deadline_ns;
  };
  std::deque<Unsent> unsent_queue_ RINGBOLT_GUARDED_BY(mutex_);
  /// Requests that came between two listeners.
  struct Held {
    bool is_in_folder;
    Mad mad;
    bool is_from_network;
    uint64_t next_ns;
  };
  std::deque<Held> held_ RINGBOLT_GUARDED_BY(mutex_);
  std::atomic<uint32_t> unsent_{0};
  std::atomic<bool> is_open_{false};
  // Open from open() on, and until the end or a fork: who has the descriptor may poll it without a lock.
  base::UniqueFd poller_;
  base::UniqueFd bell_;
};

}  // namespace ringbolt::device
