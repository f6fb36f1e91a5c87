#pragma once

#include <memory>

#include "base/result.h"
#include "verbs/connection_manager.h"

// What a program holds of a connection manager. Each class owns one object of the library and gives it back when it
// ends. All are move-only and not thread-safe.
namespace ringbolt::verbs {

/// Gives an object back through the library that made it. Nobody is left to tell what that answers to.
/// rdma_destroy_id() waits for events that are not acknowledged: none of the identifier's may be held.
class CloseCm {
 public:
  CloseCm() = default;
  explicit CloseCm(const ConnectionManager& manager) : calls_(manager.shared_calls()) {}
  void operator()(rdma_event_channel* channel) const { calls_->destroy_event_channel(channel); }
  void operator()(rdma_cm_id* id) const { calls_->destroy_id(id); }
  void operator()(rdma_cm_event* event) const { calls_->ack_cm_event(event); }

 private:
  std::shared_ptr<const CmCalls> calls_;
};

template <class T>
using OwnedCm = std::unique_ptr<T, CloseCm>;

/// An event, acknowledged when this ends: before the identifier that it tells of is destroyed or moved.
using CmEvent = OwnedCm<rdma_cm_event>;

/// Where the events of identifiers arrive. Destroyed after all identifiers on it.
class EventChannel {
 public:
  /// Throws base::Error.
  explicit EventChannel(const ConnectionManager& manager);

  /// Readable when an event waits. Does not block. Owned by the channel.
  int fd() const { return channel_->fd; }
  rdma_event_channel* get() const { return channel_.get(); }
  /// The oldest event; null if none waits. Does not block. Its identifiers are those of the program, or, of a
  /// request, a new one that is the caller's.
  CmEvent next() const;

 private:
  ConnectionManager manager_;
  OwnedCm<rdma_event_channel> channel_;
};

/// One end of a connection, or a listener, in the port space of TCP. Its channel outlives it. Destroying it ends the
/// connection; it does not destroy a queue pair that was made on it (CmCalls::destroy_qp).
class CmIdentifier {
 public:
  /// Throws base::Error.
  CmIdentifier(const ConnectionManager& manager, const EventChannel& channel);
  /// Takes over the identifier of a request for a connection, and moves it to a channel of its own. Every event of it
  /// must be acknowledged. Throws base::Error, and has destroyed it then, which rejects the request.
  CmIdentifier(const ConnectionManager& manager, OwnedCm<rdma_cm_id> request, const EventChannel& channel);

  rdma_cm_id* get() const { return id_.get(); }
  rdma_cm_id* operator->() const { return id_.get(); }

 private:
  OwnedCm<rdma_cm_id> id_;
};

}  // namespace ringbolt::verbs
