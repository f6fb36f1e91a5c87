#include "rsocket/stream_facts.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <rdma/rsocket.h>

#include <algorithm>
#include <cerrno>

#include "rsocket/route.h"

namespace ringbolt::rsocket {
namespace {

base::Result<void> put_route(const StreamFacts& facts, const Options& options, void* value, socklen_t* length) {
  const std::vector<ibv_path_data> paths = options.route.empty() ? paths_of(facts.route) : options.route;
  const size_t bytes = paths.size() * sizeof(ibv_path_data);
  if (length == nullptr || *length < std::max(bytes, sizeof(ibv_path_data))) {
    return base::fail(EINVAL);
  }
  return put_option(paths.data(), bytes, value, length);
}

}  // namespace

base::Result<void> get_stream_option(const StreamFacts& facts, const Options& options, int level, int name, void* value,
                                     socklen_t* length) {
  if (level == SOL_SOCKET) {
    switch (name) {
      case SO_TYPE:
        return put_option(SOCK_STREAM, value, length);
      case SO_DOMAIN:
        return put_option(facts.family, value, length);
      case SO_PROTOCOL:
        return put_option(IPPROTO_TCP, value, length);
      case SO_ACCEPTCONN:
        return put_option(facts.is_listening ? 1 : 0, value, length);
      default:
        break;
    }
  }
  if (level == IPPROTO_TCP && name == TCP_MAXSEG) {
    return put_option(path_mtu_bytes(facts.route), value, length);
  }
  if (level == SOL_RDMA && name == RDMA_ROUTE) {
    return put_route(facts, options, value, length);
  }
  return options.get(level, name, value, length);
}

}  // namespace ringbolt::rsocket
