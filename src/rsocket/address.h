#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <optional>

namespace ringbolt::rsocket {

/// An IPv4 or IPv6 address with its port.
struct Address {
  sockaddr_storage storage{};

  /// What a program passed; nothing if it is too short or of another family.
  static std::optional<Address> from(const sockaddr* given, socklen_t length) {
    Address address;
    if (given == nullptr || length < sizeof(sa_family_t) || length > sizeof address.storage) {
      return std::nullopt;
    }
    std::memcpy(&address.storage, given, length);
    return length >= address.length() && address.length() > 0 ? std::optional(address) : std::nullopt;
  }
  static Address from(const sockaddr& known) {
    Address address;
    address.storage.ss_family = known.sa_family;
    std::memcpy(&address.storage, &known, address.length());
    return address;
  }

  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  int family() const { return storage.ss_family; }
  socklen_t length() const {
    return family() == AF_INET    ? socklen_t{sizeof(sockaddr_in)}
           : family() == AF_INET6 ? socklen_t{sizeof(sockaddr_in6)}
                                  : 0;
  }

  /// As getsockname() does: as much as fits, and how long it is.
  void copy_to(sockaddr* out, socklen_t* out_length) const {
    if (out == nullptr || out_length == nullptr) {
      return;
    }
    std::memcpy(out, &storage, std::min(*out_length, length()));
    *out_length = length();
  }
};

}  // namespace ringbolt::rsocket
