#pragma once

#include "base/result.h"
#include "rsocket/address.h"
#include "rsocket/verbs_objects.h"

namespace ringbolt::rsocket {

using AddressHandle = std::unique_ptr<ibv_ah, Release<&ibv_destroy_ah>>;

/// Asks the connection manager which address of this host is the way to `destination`; its port is 0. Waits as
/// resolve_path() does. Thread-safe.
/// ETIMEDOUT, ENETUNREACH and others of rdma_cm.
base::Result<Address> resolve_source(const Address& destination);

/// Asks the connection manager for the way from `source`, an address of this host, to `destination`, and makes the
/// address handle for it in `pd`. Waits for its answer, on a fabric of our own microseconds, and at most two seconds.
/// Thread-safe.
base::Result<AddressHandle> resolve_path(ibv_pd* pd, const Address& source, const Address& destination);

}  // namespace ringbolt::rsocket
