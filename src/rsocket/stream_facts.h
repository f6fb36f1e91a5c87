#pragma once

#include <rdma/rdma_cma.h>
#include <sys/socket.h>

#include "base/result.h"
#include "rsocket/options.h"

namespace ringbolt::rsocket {

/// What getsockopt() tells of a stream that nobody has set.
/// Under the socket's lock; `route` is the id's.
struct StreamFacts {
  int family;
  bool is_listening;
  const rdma_route& route;  ///< as the connection manager has found it, if it has
};

/// The value of an option, from the facts or from what was set; SO_ERROR is the caller's. Errors as getsockopt:
/// ENOPROTOOPT for one that does not exist. Pure. Source: socket(7), tcp(7), rsocket(7).
base::Result<void> get_stream_option(const StreamFacts& facts, const Options& options, int level, int name, void* value,
                                     socklen_t* length);

}  // namespace ringbolt::rsocket
