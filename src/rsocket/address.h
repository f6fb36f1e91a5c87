#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <optional>

namespace ringbolt::rsocket {

/// An IPv4 or IPv6 address with its port.
/// A value; of no family until one is given. Thread-safe as values are.
struct Address {
  sockaddr_storage storage{};

  /// What a program passed; nothing if it is too short or of another family.
  static std::optional<Address> from(const sockaddr* given, socklen_t length) {
    sa_family_t family = AF_UNSPEC;
    if (given == nullptr || length < sizeof family || length > sizeof(sockaddr_storage)) {
      return std::nullopt;
    }
    std::memcpy(&family, &given->sa_family, sizeof family);
    const socklen_t needed = length_of(family);
    return needed > 0 && length >= needed ? std::optional(from(*given)) : std::nullopt;
  }
  /// Of a family that length_of() knows, as long as that says; else none. What has no meaning is 0: addresses are
  /// compared byte by byte.
  static Address from(const sockaddr& known) {
    Address address;
    std::memcpy(&address.storage, &known, length_of(known.sa_family));
    if (known.sa_family == AF_INET) {
      auto& ipv4 = reinterpret_cast<sockaddr_in&>(address.storage);
      std::memset(ipv4.sin_zero, 0, sizeof ipv4.sin_zero);
    }
    return address;
  }
  static constexpr socklen_t length_of(int family) {
    return family == AF_INET    ? socklen_t{sizeof(sockaddr_in)}
           : family == AF_INET6 ? socklen_t{sizeof(sockaddr_in6)}
                                : 0;
  }

  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  /// AF_UNSPEC, AF_INET or AF_INET6. The functions below want one of the last two.
  int family() const { return storage.ss_family; }
  socklen_t length() const { return length_of(family()); }

  /// Host order, as set_port().
  uint16_t port() const {
    return family() == AF_INET ? ntohs(reinterpret_cast<const sockaddr_in&>(storage).sin_port)
                               : ntohs(reinterpret_cast<const sockaddr_in6&>(storage).sin6_port);
  }
  void set_port(uint16_t port) {
    if (family() == AF_INET) {
      reinterpret_cast<sockaddr_in&>(storage).sin_port = htons(port);
    } else {
      reinterpret_cast<sockaddr_in6&>(storage).sin6_port = htons(port);
    }
  }
  /// All hosts' addresses at once, or this one's own.
  bool is_any_or_loopback() const {
    if (family() == AF_INET) {
      const uint32_t host = ntohl(reinterpret_cast<const sockaddr_in&>(storage).sin_addr.s_addr);
      return host == INADDR_ANY || host == INADDR_LOOPBACK;
    }
    const in6_addr& host = reinterpret_cast<const sockaddr_in6&>(storage).sin6_addr;
    return IN6_IS_ADDR_UNSPECIFIED(&host) || IN6_IS_ADDR_LOOPBACK(&host);
  }
  /// Means the same on every interface: neither all addresses nor a link-local one.
  bool is_routable() const {
    if (family() == AF_INET) {
      return reinterpret_cast<const sockaddr_in&>(storage).sin_addr.s_addr != INADDR_ANY;
    }
    const in6_addr& host = reinterpret_cast<const sockaddr_in6&>(storage).sin6_addr;
    return !IN6_IS_ADDR_UNSPECIFIED(&host) && !IN6_IS_ADDR_LINKLOCAL(&host);
  }
  /// A link-local address without an interface gets the one of `local`.
  void complete_scope(const Address& local) {
    auto& own = reinterpret_cast<sockaddr_in6&>(storage);
    if (family() == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&own.sin6_addr) && own.sin6_scope_id == 0) {
      own.sin6_scope_id = reinterpret_cast<const sockaddr_in6&>(local.storage).sin6_scope_id;
    }
  }

  /// Some order, for maps; equal only if all bytes are, an IPv6 flow label and scope among them.
  friend bool operator<(const Address& a, const Address& b) {
    return std::memcmp(&a.storage, &b.storage, sizeof a.storage) < 0;
  }

  /// As getsockname() does: as much as fits, and how long it is.
  /// *out_length: how much room there is, then how long the address is, which may be more.
  void copy_to(sockaddr* out, socklen_t* out_length) const {
    if (out == nullptr || out_length == nullptr) {
      return;
    }
    std::memcpy(out, &storage, std::min(*out_length, length()));
    *out_length = length();
  }
};

}  // namespace ringbolt::rsocket
