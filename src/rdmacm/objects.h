#pragma once

#include <rdma/rdma_cma.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "base/unique_fd.h"
#include "cm/types.h"
#include "rdmacm/devices.h"

/// The objects that programs hold by pointer: each begins with the C structure. All are guarded by Station's lock.
namespace ringbolt::rdmacm {

class Station;
struct Id;
struct Channel;

/// An event that waits in a channel or that the program has taken.
struct QueuedEvent {
  rdma_cm_event c{};
  Id* counts_for = nullptr;  ///< whose destruction waits for its acknowledgement
  cm::Event source;          ///< what it was made from; for events of the peer
  std::array<std::byte, 256> private_data{};

  static QueuedEvent& of(rdma_cm_event* c) { return *reinterpret_cast<QueuedEvent*>(c); }
};
static_assert(offsetof(QueuedEvent, c) == 0);

struct Channel {
  rdma_event_channel c{};
  Station* station = nullptr;
  base::UniqueFd fd;  ///< an eventfd that counts the queue: readable while an event waits, a new edge for each
  std::deque<std::unique_ptr<QueuedEvent>> queue;
  uint32_t users = 0;      ///< identifiers that live on it
  bool is_closed = false;  ///< the program destroyed it; it goes after its last identifier

  static Channel& of(rdma_event_channel* c) { return *reinterpret_cast<Channel*>(c); }
  void push(std::unique_ptr<QueuedEvent> event);
  /// The oldest event; the queue must not be empty.
  std::unique_ptr<QueuedEvent> pop();
  /// Takes out what `matches`.
  template <class Matches>
  std::vector<std::unique_ptr<QueuedEvent>> take_if(Matches matches) {
    std::vector<std::unique_ptr<QueuedEvent>> taken;
    std::deque<std::unique_ptr<QueuedEvent>> kept;
    for (auto& event : queue) {
      if (matches(*event)) {
        count_down();
        taken.push_back(std::move(event));
      } else {
        kept.push_back(std::move(event));
      }
    }
    queue = std::move(kept);
    return taken;
  }

 private:
  void count_down();
};
static_assert(offsetof(Channel, c) == 0);

struct Id {
  enum class Phase : uint8_t { idle, bound, address_resolved, route_resolved, connecting, listening, ended };

  rdma_cm_id c{};
  Station* station = nullptr;
  Phase phase = Phase::idle;
  bool is_sync = false;
  bool is_passive = false;   ///< made from a request
  bool is_rejected = false;  ///< by rdma_reject: nothing more can come of it
  uint32_t delivered = 0;
  uint32_t acknowledged = 0;

  // Addresses.
  bool is_bound = false;  ///< has a port number
  uint64_t token = 0;     ///< of the service known to the host; 0: none
  std::optional<Route> route;
  ibv_sa_path_rec path{};

  // Options.
  uint8_t type_of_service = 0;
  std::optional<uint8_t> ack_timeout;
  bool reuses_address = false;
  std::optional<bool> is_family_only;

  // The connection.
  cm::Handle handle = 0;
  wire::CmReq request;  ///< sent or received
  wire::CmRep reply;    ///< sent or received
  bool has_reply = false;
  bool has_seen_end = false;  ///< the program took its DISCONNECTED
  wire::CmSidrReq question;
  wire::CmSidrRep answer;

  // What rdma_create_ep keeps.
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
