#include "rsocket/create.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "rsocket/datagram.h"
#include "rsocket/stream.h"

namespace ringbolt::rsocket {

base::Result<std::shared_ptr<Socket>> create_socket(int domain, int type, int protocol) {
  const int kind = type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC);
  const bool is_stream = kind == SOCK_STREAM && (protocol == 0 || protocol == IPPROTO_TCP);
  const bool is_datagram = kind == SOCK_DGRAM && (protocol == 0 || protocol == IPPROTO_UDP);
  if ((domain != AF_INET && domain != AF_INET6) || (!is_stream && !is_datagram)) {
    return base::fail(EOPNOTSUPP);
  }
  auto made = is_stream ? Stream::create(domain) : Datagram::create(domain);
  // SOCK_CLOEXEC needs nothing: our descriptors are made so.
  if (made && (type & SOCK_NONBLOCK) != 0) {
    (void)(*made)->set_file_flags(O_NONBLOCK);
  }
  return made;
}

}  // namespace ringbolt::rsocket
