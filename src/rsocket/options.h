#pragma once

#include <infiniband/sa.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "rsocket/deadline.h"
#include "rsocket/settings.h"

namespace ringbolt::rsocket {

/// What rsetsockopt has set on a stream and rgetsockopt tells. A plain value; an accepted socket begins with its
/// listener's.
struct Options {
  Settings settings;
  linger linger_time{};
  timeval send_timeout{};
  timeval receive_timeout{};
  // Two hours, as tcp(7).
  int keepalive_idle_s = 7200;
  int reuse_address = 0;
  int keepalive = 0;
  int oob_inline = 0;
  int no_delay = 0;
  int ipv6_only = 0;
  std::vector<ibv_path_data> route;  ///< RDMA_ROUTE: the path that the program chose; empty: ours

  /// How long closing waits, from here on, for a peer that lives but does not take what was sent.
  Deadline linger_deadline() const;

  /// `is_fixed`: the socket is connecting or connected, and its buffers and queues have their sizes. Errors as
  /// setsockopt: EINVAL for a value, ENOPROTOOPT for an option that does not exist.
  /// Where it fails nothing has changed.
  base::Result<void> set(int level, int name, const void* value, socklen_t length, bool is_fixed);
  /// ENOPROTOOPT: not an option that this struct knows.
  base::Result<void> get(int level, int name, void* value, socklen_t* length) const;

 private:
  base::Result<void> set_socket(int name, const void* value, socklen_t length, bool is_fixed);
  base::Result<void> set_tcp(int name, const void* value, socklen_t length);
  base::Result<void> set_rdma(int name, const void* value, socklen_t length, bool is_fixed);
};

/// Copies an option's value out, as much as fits, and says how long it is. EFAULT without a place for it.
base::Result<void> put_option(const void* from, size_t bytes, void* value, socklen_t* length);
inline base::Result<void> put_option(int from, void* value, socklen_t* length) {
  return put_option(&from, sizeof from, value, length);
}

}  // namespace ringbolt::rsocket
