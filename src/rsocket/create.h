#pragma once

#include <memory>

#include "rsocket/socket.h"

namespace ringbolt::rsocket {

/// A new socket; the arguments as for socket(). EOPNOTSUPP: what rsockets do not have. Thread-safe.
base::Result<std::shared_ptr<Socket>> create_socket(int domain, int type, int protocol);

}  // namespace ringbolt::rsocket
