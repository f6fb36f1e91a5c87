#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <vector>

namespace ringbolt::bootstrap {

/// An address of a socket. A value.
struct Address {
  sockaddr_storage bytes{};
  socklen_t length = sizeof(sockaddr_storage);

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&bytes); }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&bytes); }
};

/// The addresses of a host, or why there are none.
struct Resolved {
  std::vector<Address> addresses;
  int error = 0;        ///< EADDRNOTAVAIL: the name service knows none
  std::string problem;  ///< "nowhere: Name or service not known"
};

/// Addresses, or names that the name service knows. `must_be_number`: addresses alone, and nobody is asked.
Resolved resolve(const std::string& host, uint16_t port, bool must_be_number);

}  // namespace ringbolt::bootstrap
