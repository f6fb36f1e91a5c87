// Socket addresses and GIDs.

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>

#include "rdmacm/devices.h"

namespace ringbolt::rdmacm {

std::optional<wire::Address> address_of(const sockaddr* address) {
  if (address == nullptr) {
    return std::nullopt;
  }
  wire::Address result{};
  if (address->sa_family == AF_INET) {
    sockaddr_in v4{};
    // By copies: a program's sockaddr need not be aligned for the family's own struct.
    std::memcpy(&v4, address, sizeof v4);
    uint8_t bytes[4];
    std::memcpy(bytes, &v4.sin_addr, sizeof bytes);
    return wire::ipv4_address(bytes[0], bytes[1], bytes[2], bytes[3]);
  }
  if (address->sa_family == AF_INET6) {
    sockaddr_in6 v6{};
    std::memcpy(&v6, address, sizeof v6);
    std::memcpy(result.data(), &v6.sin6_addr, result.size());
    return result;
  }
  return std::nullopt;
}

uint16_t port_of(const sockaddr* address) {
  switch (address->sa_family) {
    case AF_INET:
      return ntohs(reinterpret_cast<const sockaddr_in*>(address)->sin_port);
    case AF_INET6:
      return ntohs(reinterpret_cast<const sockaddr_in6*>(address)->sin6_port);
    default:
      return 0;
  }
}

void set_port(sockaddr* address, uint16_t port) {
  if (address->sa_family == AF_INET) {
    reinterpret_cast<sockaddr_in*>(address)->sin_port = htons(port);
  } else if (address->sa_family == AF_INET6) {
    reinterpret_cast<sockaddr_in6*>(address)->sin6_port = htons(port);
  }
}

void write_address(const wire::Address& address, uint16_t port, uint32_t scope, sockaddr_storage& out) {
  std::memset(&out, 0, sizeof out);
  if (wire::is_ipv4(address)) {
    auto& v4 = reinterpret_cast<sockaddr_in&>(out);
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    // IPv4 lies in the last four bytes of its mapped form.
    std::memcpy(&v4.sin_addr, address.data() + 12, sizeof v4.sin_addr);
  } else {
    auto& v6 = reinterpret_cast<sockaddr_in6&>(out);
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(port);
    // Other addresses mean one thing on all links.
    v6.sin6_scope_id = is_link_local(address) ? scope : 0;
    std::memcpy(&v6.sin6_addr, address.data(), sizeof v6.sin6_addr);
  }
}

bool is_any(const wire::Address& address) {
  return address == wire::Address{} || address == wire::ipv4_address(0, 0, 0, 0);
}

bool is_loopback(const wire::Address& address) {
  constexpr uint8_t kLoopbackNet = 127;
  if (wire::is_ipv4(address)) {
    return address[12] == kLoopbackNet;
  }
  wire::Address one{};
  one.back() = 1;
  return address == one;
}

bool is_link_local(const wire::Address& address) { return address[0] == 0xfe && (address[1] & 0xc0U) == 0x80; }

}  // namespace ringbolt::rdmacm
