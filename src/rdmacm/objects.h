#pragma once

#include <rdma/rdma_cma.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/calling_place.h"
#include "base/thread_safety.h"
#include "base/unique_fd.h"
#include "cm/types.h"
#include "rdmacm/devices.h"

/// The objects that programs hold by pointer: each begins with the C structure.
namespace ringbolt::rdmacm {

class ConnectionManager;
struct Id;
struct Channel;

/// Stands for ConnectionManager::mutex() of whichever manager an object belongs to: a process uses one at a time, and
/// what is left of the one before a fork is never locked.
class RINGBOLT_CAPABILITY("mutex") ManagerLock {};
inline ManagerLock manager_lock;

/// An event that waits in a channel or that the program has taken. The program's from rdma_get_cm_event() to
/// rdma_ack_cm_event(), which deletes it. Its C part stands first, so that one pointer leads to both.
struct QueuedEvent {
  rdma_cm_event c{};
  Id* counts_for = nullptr;  ///< whose destruction waits for its acknowledgement
  cm::Event source;          ///< what it was made from; for events of the peer
  std::array<std::byte, 256> private_data{};
  std::unique_ptr<QueuedEvent> next;  ///< in an EventQueue

  static QueuedEvent& of(rdma_cm_event* c) { return *reinterpret_cast<QueuedEvent*>(c); }
};
static_assert(offsetof(QueuedEvent, c) == 0);

/// Events in their order. None but their own memory is needed, so that putting one in can't fail. Owns its events.
/// Not thread-safe.
class EventQueue {
 public:
  EventQueue() = default;
  EventQueue(EventQueue&& other) noexcept
      : first_(std::move(other.first_)), last_(std::exchange(other.last_, nullptr)) {}
  EventQueue& operator=(EventQueue&&) = delete;
  ~EventQueue() {
    // One by one: a chain of unique_ptr would be destroyed by recursion.
    while (!is_empty()) {
      pop();
    }
  }

  bool is_empty() const { return first_ == nullptr; }
  QueuedEvent* first() const { return first_.get(); }
  void push(std::unique_ptr<QueuedEvent> event) noexcept {
    QueuedEvent* const added = event.get();
    (last_ == nullptr ? first_ : last_->next) = std::move(event);
    last_ = added;
  }
  /// The oldest; there is one.
  std::unique_ptr<QueuedEvent> pop() noexcept {
    auto event = std::move(first_);
    first_ = std::move(event->next);
    last_ = first_ == nullptr ? nullptr : last_;
    return event;
  }

 private:
  std::unique_ptr<QueuedEvent> first_;
  QueuedEvent* last_ = nullptr;
};

/// Made by rdma_create_event_channel(), or for one synchronous identifier. Deleted by ConnectionManager::retire(), a
/// while after it was closed and its last user has gone.
struct Channel {
  rdma_event_channel c{};
  ConnectionManager* manager = nullptr;
  base::UniqueFd fd;  ///< an eventfd that counts the queue: readable while an event waits, a new edge for each
  EventQueue queue RINGBOLT_GUARDED_BY(manager_lock);
  uint32_t users RINGBOLT_GUARDED_BY(manager_lock) = 0;  ///< identifiers that live on it
  bool is_closed RINGBOLT_GUARDED_BY(manager_lock) =
      false;  ///< the program destroyed it; it goes after its last identifier

  static Channel& of(rdma_event_channel* c) { return *reinterpret_cast<Channel*>(c); }
  // Wakes whoever waits on `fd`.
  void push(std::unique_ptr<QueuedEvent> event) noexcept RINGBOLT_REQUIRES(manager_lock);
  /// The oldest event; the queue must not be empty.
  std::unique_ptr<QueuedEvent> pop() RINGBOLT_REQUIRES(manager_lock);
  /// Takes out what `matches`. In their order.
  template <class Matches>
  EventQueue take_if(Matches matches) RINGBOLT_REQUIRES(manager_lock) {
    EventQueue all(std::move(queue));
    EventQueue taken;
    while (!all.is_empty()) {
      auto event = all.pop();
      const bool is_taken = matches(*event);
      (is_taken ? taken : queue).push(std::move(event));
      if (is_taken) {
        count_down();
      }
    }
    return taken;
  }

 private:
  void count_down() RINGBOLT_REQUIRES(manager_lock);
};
static_assert(offsetof(Channel, c) == 0);

/// Made by rdma_create_id() or for a request; deleted by rdma_destroy_id(). Programs read `c` without any lock: it
/// changes only in calls of theirs on this identifier, and as they take an event.
struct Id {
  enum class Phase : uint8_t { idle, bound, address_resolved, route_resolved, connecting, listening, ended };

  rdma_cm_id c{};
  // Set once. Of a forked child's parent: is_dead() then.
  ConnectionManager* manager = nullptr;
  Phase phase RINGBOLT_GUARDED_BY(manager_lock) = Phase::idle;
  // Read without the lock by calls of the same identifier; written under it.
  std::atomic<bool> is_sync = false;
  bool is_passive RINGBOLT_GUARDED_BY(manager_lock) = false;   ///< made from a request
  bool is_rejected RINGBOLT_GUARDED_BY(manager_lock) = false;  ///< by rdma_reject: nothing more can come of it
  // Events that the program has taken and that count for this; it may go when as many are acknowledged.
  uint32_t delivered RINGBOLT_GUARDED_BY(manager_lock) = 0;
  uint32_t acknowledged RINGBOLT_GUARDED_BY(manager_lock) = 0;

  // Addresses.
  bool is_bound RINGBOLT_GUARDED_BY(manager_lock) = false;  ///< has a port number
  uint64_t token RINGBOLT_GUARDED_BY(manager_lock) = 0;     ///< of the service known to the host; 0: none
  // From ADDR_RESOLVED, a bind to an address, or a request on.
  std::optional<Route> route RINGBOLT_GUARDED_BY(manager_lock);
  ibv_sa_path_rec path RINGBOLT_GUARDED_BY(manager_lock){};

  // Options.
  uint8_t type_of_service RINGBOLT_GUARDED_BY(manager_lock) = 0;
  // As RDMA_OPTION_ID_ACK_TIMEOUT has it: 4.096 us times 2^n; 0: none.
  std::optional<uint8_t> ack_timeout RINGBOLT_GUARDED_BY(manager_lock);
  bool reuses_address RINGBOLT_GUARDED_BY(manager_lock) = false;
  // RDMA_OPTION_ID_AFONLY; none: IPv4 sockets are, IPv6 ones take both families.
  std::optional<bool> is_family_only RINGBOLT_GUARDED_BY(manager_lock);

  // The connection. 0: it has no connection.
  cm::Handle handle RINGBOLT_GUARDED_BY(manager_lock) = 0;
  wire::CmReq request RINGBOLT_GUARDED_BY(manager_lock);  ///< sent or received
  wire::CmRep reply RINGBOLT_GUARDED_BY(manager_lock);    ///< sent or received
  bool has_reply RINGBOLT_GUARDED_BY(manager_lock) = false;
  bool has_seen_end RINGBOLT_GUARDED_BY(manager_lock) = false;  ///< the program took what told it so
  bool has_failed RINGBOLT_GUARDED_BY(manager_lock) = false;    ///< the program took its CONNECT_ERROR
  wire::CmSidrReq question RINGBOLT_GUARDED_BY(manager_lock);
  wire::CmSidrRep answer RINGBOLT_GUARDED_BY(manager_lock);

  base::CallSite asked_at RINGBOLT_GUARDED_BY(manager_lock);  ///< RINGBOLT_EXPLAIN: of what the events are about

  // What rdma_create_ep keeps, before anybody else knows the identifier. Without a lock: written once, then read by
  // calls on this identifier.
  std::optional<ibv_qp_init_attr> qp_attributes;
  std::vector<std::byte> connect_data;

  static Id& of(rdma_cm_id* c) { return *reinterpret_cast<Id*>(c); }
  static const Id& of(const rdma_cm_id* c) { return *reinterpret_cast<const Id*>(c); }
  Channel& channel() { return Channel::of(c.channel); }
  bool is_datagram() const { return c.qp_type == IBV_QPT_UD; }
  uint16_t source_port() const { return port_of(&c.route.addr.src_addr); }
  uint16_t destination_port() const { return port_of(&c.route.addr.dst_addr); }
};
static_assert(offsetof(Id, c) == 0);

/// -1 with errno set, as the functions of the library fail; 0 for 0.
int result(int error);

}  // namespace ringbolt::rdmacm
