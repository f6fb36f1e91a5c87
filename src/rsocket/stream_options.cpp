#include <netinet/in.h>
#include <netinet/tcp.h>
#include <rdma/rsocket.h>

#include <algorithm>
#include <cstring>

#include "rsocket/route.h"
#include "rsocket/stream.h"

namespace ringbolt::rsocket {

Status Stream::set_option(int level, int name, const void* value, socklen_t length) {
  const base::LockGuard lock(lock_);
  const auto status = options_.set(level, name, value, length, phase_ >= Phase::resolving_address);
  if (!status) {
    return status;
  }
  const bool is_reuse = level == SOL_SOCKET && name == SO_REUSEADDR;
  if (is_reuse || (level == IPPROTO_IPV6 && name == IPV6_V6ONLY)) {
    int flag = is_reuse ? options_.reuse_address : options_.ipv6_only;
    const int option = is_reuse ? RDMA_OPTION_ID_REUSEADDR : RDMA_OPTION_ID_AFONLY;
    // Once there is an address it is too late, as with other sockets, but no error there.
    if (rdma_set_option(link_.id(), RDMA_OPTION_ID, option, &flag, sizeof flag) != 0 && phase_ == Phase::fresh) {
      return base::fail(errno == 0 ? EINVAL : errno);
    }
  }
  if (level == SOL_SOCKET && name == SO_KEEPALIVE) {
    heard_at_ns_ = base::now_ns();
  }
  return {};
}

Status Stream::get_option(int level, int name, void* value, socklen_t* length) {
  const base::LockGuard lock(lock_);
  if (level == SOL_SOCKET) {
    switch (name) {
      case SO_ERROR:
        progress();
        return put_option(std::exchange(unreported_error_, 0), value, length);
      case SO_TYPE:
        return put_option(SOCK_STREAM, value, length);
      case SO_DOMAIN:
        return put_option(family_, value, length);
      case SO_PROTOCOL:
        return put_option(IPPROTO_TCP, value, length);
      case SO_ACCEPTCONN:
        return put_option(phase_ == Phase::listening ? 1 : 0, value, length);
      default:
        break;
    }
  }
  if (level == IPPROTO_TCP && name == TCP_MAXSEG) {
    return put_option(path_mtu_bytes(link_.id()->route), value, length);
  }
  if (level == SOL_RDMA && name == RDMA_ROUTE) {
    const std::vector<ibv_path_data> paths = options_.route.empty() ? paths_of(link_.id()->route) : options_.route;
    const size_t bytes = paths.size() * sizeof(ibv_path_data);
    if (length == nullptr || *length < std::max(bytes, sizeof(ibv_path_data))) {
      return base::fail(EINVAL);
    }
    return put_option(paths.data(), bytes, value, length);
  }
  return options_.get(level, name, value, length);
}

}  // namespace ringbolt::rsocket
