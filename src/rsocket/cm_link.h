#pragma once

#include "base/result.h"
#include "rsocket/verbs_objects.h"

namespace ringbolt::rsocket {

/// A connection manager's id with an event channel of its own that never blocks. Move-only.
class CmLink {
 public:
  static base::Result<CmLink> create(rdma_port_space space);
  /// Takes over an id that came with a connection request, all of whose events are acknowledged. Destroys it on
  /// failure.
  static base::Result<CmLink> adopt(rdma_cm_id* id);

  rdma_cm_id* id() const { return id_.get(); }
  int fd() const { return channel_->fd; }
  /// The next event; null if there is none now.
  CmEvent next() const;

 private:
  static base::Result<EventChannel> make_channel();

  EventChannel channel_;
  CmId id_;  // gone before its channel
};

/// What a failed event means for the caller: an errno.
int error_of(const rdma_cm_event& event);

}  // namespace ringbolt::rsocket
