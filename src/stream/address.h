#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/resolving.h"
#include "stream/deadline.h"

namespace ringbolt::stream {

/// An IP address and a port, as the connection manager takes them. A value.
/// Of no family until one is given: then only text() and is_ipv6() make sense of it.
class Address {
 public:
  Address() = default;
  explicit Address(const sockaddr& from);

  /// Of its family's length, for calls that look at the family; good as long as this.
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage_); }
  bool is_ipv6() const { return storage_.ss_family == AF_INET6; }
  /// Host order.
  uint16_t port() const;
  void set_port(uint16_t port);
  /// 16 bytes: IPv4 as ::ffff:a.b.c.d.
  /// By which IPv4 and IPv6 are compared alike (RFC 4291, 2.5.5.2).
  std::array<uint8_t, 16> bytes() const;
  /// "10.0.0.7:6379", "[fd77::1]:6379".
  std::string text() const;

 private:
  sockaddr_storage storage_{};
};

/// What a host's name or address stands for, in the resolver's order, one at least. An address takes no time; a name
/// may take until the deadline, see base::resolve(): by Deadline::now() addresses alone are understood. Throws
/// base::Error, ETIMEDOUT among them.
std::vector<Address> addresses_of(const std::string& host, uint16_t port, const Deadline& deadline,
                                  const base::LookUp& look_up = &::getaddrinfo);
/// The wildcards to listen at: IPv4 first.
std::array<Address, 2> any_addresses(uint16_t port);

/// Addresses that may connect. Immutable, and so thread-safe.
/// A peer's address is what the connection manager says: no proof of who it is.
class AllowList {
 public:
  /// Of addresses and networks in the form "10.1.0.0/16"; empty: everybody. Throws base::Error that names the entry.
  explicit AllowList(std::span<const std::string> entries);
  bool allows(const Address& peer) const;

 private:
  struct Network {
    std::array<uint8_t, 16> bytes;
    unsigned bits;
  };
  static std::optional<Network> parse(std::string_view text);
  std::vector<Network> networks_;
};

}  // namespace ringbolt::stream
