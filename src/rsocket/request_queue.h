#pragma once

#include <deque>

#include "rsocket/cm_link.h"
#include "rsocket/connection_data.h"

namespace ringbolt::rsocket {

/// A peer that waits for accept().
struct Request {
  CmLink link;
  rdma_conn_param param;  ///< without the private data
  ConnectionData peer;
};

/// The requests at a listening socket, in their order. Those that it destroys are rejected. Not thread-safe: under the
/// socket's lock.
/// Owns the ids. How many wait is bounded by the connection manager's backlog.
class RequestQueue {
 public:
  /// Takes over the id of a connection request, at once to a channel of its own, so that whatever else happens to it is
  /// told there. `is_open`: accept() may still come. Rejects a peer that does not say who it is as rsockets do.
  void take(CmEvent event, bool is_open);

  bool is_empty() const { return requests_.empty(); }
  /// The oldest. Precondition: !is_empty().
  Request pop();
  void clear() { requests_.clear(); }

 private:
  std::deque<Request> requests_;
};

}  // namespace ringbolt::rsocket
