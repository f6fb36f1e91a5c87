#include "bootstrap/resolving.h"

#include <netdb.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include <fmt/format.h>

namespace ringbolt::bootstrap {

Resolved resolve(const std::string& host, uint16_t port, bool must_be_number) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | (must_be_number ? AI_NUMERICHOST : 0);
  addrinfo* list = nullptr;
  const int result = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
  const int system_error = errno;
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(list, &::freeaddrinfo);
  Resolved resolved;
  if (result != 0) {
    resolved.error = result == EAI_SYSTEM ? system_error : EADDRNOTAVAIL;
    resolved.problem =
        fmt::format("{}: {}", host, result == EAI_SYSTEM ? std::strerror(system_error) : ::gai_strerror(result));
    return resolved;
  }
  for (const addrinfo* each = list; each != nullptr; each = each->ai_next) {
    Address address;
    std::memcpy(&address.bytes, each->ai_addr, each->ai_addrlen);
    address.length = each->ai_addrlen;
    resolved.addresses.push_back(address);
  }
  return resolved;
}

}  // namespace ringbolt::bootstrap
