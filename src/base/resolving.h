#pragma once

#include <netdb.h>
#include <sys/socket.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace ringbolt::base {

/// An address of a socket. A value. `length`: how much of `bytes` is meant; as it is made, all of it, which is what
/// accept() and getsockname() want.
struct SocketAddress {
  sockaddr_storage bytes{};
  socklen_t length = sizeof(sockaddr_storage);

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&bytes); }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&bytes); }
};

/// The addresses of a host, or why there are none.
struct Resolved {
  std::vector<SocketAddress> addresses;
  int error = 0;        ///< EADDRNOTAVAIL: the name service knows none
  std::string problem;  ///< "nowhere: Name or service not known"
};

/// As getaddrinfo(), which it is but in tests. May be called from another thread, which may outlive the call that
/// asks: whatever it captures must be owned by it.
using LookUp = std::function<int(const char* host, const char* port, const addrinfo* hints, addrinfo** list)>;

/// Addresses, or names that the name service knows. `must_be_number`: addresses alone, and nobody is asked. Blocks
/// until `deadline_ns` (now_ns()): a name service that has not answered by then, which nothing can interrupt, is
/// left behind in a thread of its own, and the error is ETIMEDOUT. Thread-safe.
Resolved resolve(const std::string& host, uint16_t port, bool must_be_number, uint64_t deadline_ns,
                 const LookUp& look_up = &::getaddrinfo);

}  // namespace ringbolt::base
