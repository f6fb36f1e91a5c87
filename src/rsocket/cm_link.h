#pragma once

#include <cstddef>
#include <span>

#include "base/result.h"
#include "rsocket/address.h"
#include "rsocket/verbs_objects.h"

namespace ringbolt::rsocket {

/// A connection manager's id with an event channel of its own that never blocks, and the calls on it: each answers 0 or
/// an errno, and none waits. Move-only. Not thread-safe, but for what rdma_cm makes so.
/// Source: rdma_cm(7).
/// Owns the id and the channel. A queue pair that is made on the id is to be destroyed before.
class CmLink {
 public:
  static base::Result<CmLink> create(rdma_port_space space);
  /// Takes over an id that came with a connection request, all of whose events are acknowledged. Destroys it on
  /// failure.
  static base::Result<CmLink> adopt(rdma_cm_id* id);

  /// Good as long as this, also when this is moved.
  rdma_cm_id* id() const { return id_.get(); }
  int fd() const { return channel_->fd; }
  /// The next event; null if there is none now.
  CmEvent next() const;

  Address local() const { return Address::from(*rdma_get_local_addr(id_.get())); }
  Address peer() const { return Address::from(*rdma_get_peer_addr(id_.get())); }

  int bind(const Address& address) const;
  int listen(int backlog) const;
  /// A flag of the id: RDMA_OPTION_ID_REUSEADDR, RDMA_OPTION_ID_AFONLY.
  int set_flag(int option, int value) const;

  // Steps of a connection. An event says how each has ended.
  int resolve_address(const Address& to, int timeout_ms) const;
  /// `chosen`: the paths to take instead, if the connection manager takes them.
  int resolve_route(std::span<const ibv_path_data> chosen, int timeout_ms) const;
  /// `data`: what the peer is told, with the request and with the answer to it.
  /// Up to 255 bytes, of which the connection manager may take fewer; copied before it returns.
  int connect(std::span<const std::byte> data) const;
  int accept(const rdma_conn_param& request, std::span<const std::byte> data) const;
  /// What it answers does not matter: the peer learns of it by a timeout at worst.
  void reject() const { rdma_reject(id_.get(), nullptr, 0); }
  void disconnect() const { rdma_disconnect(id_.get()); }

 private:
  static base::Result<EventChannel> make_channel();

  EventChannel channel_;
  CmId id_;  // gone before its channel
};

/// What a failed event means for the caller: an errno.
int error_of(const rdma_cm_event& event);

}  // namespace ringbolt::rsocket
