#pragma once

#include <poll.h>
#include <sys/select.h>

#include "base/result.h"
#include "rsocket/descriptor_table.h"

namespace ringbolt::rsocket {

/// poll() for sockets of `table` and any other descriptors together. Polls for some microseconds, then sleeps. Returns
/// how many of `waits` have something. Thread-safe.
/// EFAULT, EINTR and what poll(2) answers. `timeout_ms`: negative for ever.
base::Result<int> poll_all(const DescriptorTable& table, pollfd* waits, nfds_t count, int timeout_ms);

/// select() likewise. Null sets and a null `timeout` as there. Thread-safe.
base::Result<int> select_all(const DescriptorTable& table, int limit, fd_set* readable, fd_set* writable,
                             fd_set* exceptional, const timeval* timeout);

}  // namespace ringbolt::rsocket
