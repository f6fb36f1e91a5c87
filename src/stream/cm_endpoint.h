#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stream/address.h"
#include "verbs/cm_objects.h"

namespace ringbolt::stream {

/// A stream's end at the connection manager: a channel of events, the addresses of a peer that are tried one after the
/// other, and the identifier of the attempt, or of the request that is answered. A call that the connection manager
/// refuses says why in words, and is empty otherwise; how a step ends, an event says. No call waits. Not thread-safe:
/// under the stream's lock.
/// Source: rdma_cm(7).
class CmEndpoint {
 public:
  /// Throws base::Error.
  explicit CmEndpoint(const verbs::ConnectionManager& manager) : manager_(manager), channel_(manager) {}

  /// For poll(2): readable when an event waits.
  int fd() const { return channel_.fd(); }
  /// The oldest event; null if none waits.
  verbs::CmEvent next_event() const { return channel_.next(); }
  /// Of the attempt; null before the first, and where none could be made.
  /// Good until resolve_next_target() or the end of this.
  rdma_cm_id* id() const { return id_ ? id_->get() : nullptr; }
  const Address& peer() const { return peer_; }
  std::string_view name_of(rdma_cm_event_type event) const { return manager_.calls().event_str(event); }

  // A client's side, in this order.
  void set_targets(std::vector<Address> targets) { targets_ = std::move(targets); }
  bool has_more_targets() const { return next_target_ < targets_.size(); }
  /// Begins with the next address; the attempt before has no unacknowledged event, and nothing uses its identifier.
  /// Precondition: has_more_targets(). Throws base::Error.
  /// Destroys the identifier of the attempt before. What follows comes as an event within 2 s.
  std::string resolve_next_target();
  std::string resolve_route() const;
  std::string connect() const;

  // A server's side, in this order.
  /// Takes the request over. Throws base::Error, and has rejected it then.
  void adopt(verbs::OwnedCm<rdma_cm_id> request);
  /// Throws base::Error.
  void accept() const;
  /// The peer sends, and so is connected: the message that says so may be lost, and comes again only after a minute if
  /// this side was told before that the peer's program needs time (an MRA). Once.
  void note_first_data();

  /// Ends it, and is the answer to a peer that has.
  void disconnect() const { manager_.calls().disconnect(id_->get()); }

 private:
  const verbs::ConnectionManager manager_;
  const verbs::EventChannel channel_;
  std::optional<verbs::CmIdentifier> id_;
  std::vector<Address> targets_;
  size_t next_target_ = 0;
  Address peer_;
  bool has_noted_data_ = false;
};

}  // namespace ringbolt::stream
