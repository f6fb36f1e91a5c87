#include "stream/address.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include <fmt/format.h>

#include "base/error.h"

namespace ringbolt::stream {
namespace {

constexpr unsigned kIpv4Prefix = 96;  // bits of ::ffff:0:0/96

std::array<uint8_t, 16> mapped(const in_addr& ipv4) {
  std::array<uint8_t, 16> bytes{};
  bytes[10] = bytes[11] = 0xff;
  std::memcpy(&bytes[12], &ipv4, sizeof ipv4);
  return bytes;
}

bool is_bit_alike(const std::array<uint8_t, 16>& a, const std::array<uint8_t, 16>& b, unsigned bit) {
  const auto mask = static_cast<uint8_t>(0x80U >> bit % 8);
  return ((a[bit / 8] ^ b[bit / 8]) & mask) == 0;
}

}  // namespace

Address::Address(const sockaddr& from) {
  if (from.sa_family == AF_INET) {
    std::memcpy(&storage_, &from, sizeof(sockaddr_in));
  } else if (from.sa_family == AF_INET6) {
    std::memcpy(&storage_, &from, sizeof(sockaddr_in6));
  }
}

uint16_t Address::port() const {
  // The port lies at one place in both kinds.
  static_assert(offsetof(sockaddr_in, sin_port) == offsetof(sockaddr_in6, sin6_port));
  return ntohs(reinterpret_cast<const sockaddr_in&>(storage_).sin_port);
}

void Address::set_port(uint16_t port) { reinterpret_cast<sockaddr_in&>(storage_).sin_port = htons(port); }

std::array<uint8_t, 16> Address::bytes() const {
  if (!is_ipv6()) {
    return mapped(reinterpret_cast<const sockaddr_in&>(storage_).sin_addr);
  }
  std::array<uint8_t, 16> bytes{};
  std::memcpy(bytes.data(), &reinterpret_cast<const sockaddr_in6&>(storage_).sin6_addr, bytes.size());
  return bytes;
}

std::string Address::text() const {
  char text[INET6_ADDRSTRLEN] = "?";
  if (is_ipv6()) {
    ::inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6&>(storage_).sin6_addr, text, sizeof text);
    return fmt::format("[{}]:{}", text, port());
  }
  ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in&>(storage_).sin_addr, text, sizeof text);
  return fmt::format("{}:{}", text, port());
}

std::vector<Address> addresses_of(const std::string& host, uint16_t port, const Deadline& deadline,
                                  const base::LookUp& look_up) {
  const base::Resolved resolved = base::resolve(host, port, false, deadline.ns(), look_up);
  if (resolved.error != 0) {
    throw base::Error(resolved.error, "look up", fmt::format("\"{}\"", host),
                      resolved.problem + ": give an address, or a name that this machine knows");
  }
  std::vector<Address> found;
  for (const base::SocketAddress& one : resolved.addresses) {
    if (one.get()->sa_family == AF_INET || one.get()->sa_family == AF_INET6) {
      found.emplace_back(*one.get());
    }
  }
  if (found.empty()) {
    throw base::Error(EADDRNOTAVAIL, "look up", fmt::format("\"{}\"", host), "it has no IP address");
  }
  return found;
}

std::array<Address, 2> any_addresses(uint16_t port) {
  sockaddr_in ipv4{};
  ipv4.sin_family = AF_INET;
  sockaddr_in6 ipv6{};
  ipv6.sin6_family = AF_INET6;
  std::array<Address, 2> both{Address(reinterpret_cast<const sockaddr&>(ipv4)),
                              Address(reinterpret_cast<const sockaddr&>(ipv6))};
  std::ranges::for_each(both, [&](Address& one) { one.set_port(port); });
  return both;
}

std::optional<AllowList::Network> AllowList::parse(std::string_view text) {
  const size_t slash = text.find('/');
  const std::string host(text.substr(0, slash));
  Network network{};
  in_addr ipv4{};
  const bool is_ipv4 = ::inet_pton(AF_INET, host.c_str(), &ipv4) == 1;
  if (is_ipv4) {
    network.bytes = mapped(ipv4);
  } else if (::inet_pton(AF_INET6, host.c_str(), network.bytes.data()) != 1) {
    return std::nullopt;
  }
  // Bits that a prefix may have.
  const unsigned most = is_ipv4 ? 32 : 128;
  unsigned bits = most;
  if (slash != std::string_view::npos) {
    const std::string_view digits = text.substr(slash + 1);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), bits);
    if (error != std::errc() || end != digits.data() + digits.size() || bits > most) {
      return std::nullopt;
    }
  }
  // "0.0.0.0/0" is all of IPv4, and none of IPv6.
  network.bits = bits + (is_ipv4 ? kIpv4Prefix : 0);
  return network;
}

AllowList::AllowList(std::span<const std::string> entries) {
  for (const std::string& entry : entries) {
    const auto network = parse(entry);
    if (!network) {
      throw base::Error(EINVAL, "read the list of allowed addresses", fmt::format("\"{}\"", entry),
                        "write 10.0.0.7, 10.1.0.0/16, fd77::1 or fd77::/64");
    }
    networks_.push_back(*network);
  }
}

bool AllowList::allows(const Address& peer) const {
  const auto bytes = peer.bytes();
  return networks_.empty() || std::ranges::any_of(networks_, [&](const Network& network) {
           for (unsigned bit = 0; bit < network.bits; ++bit) {
             if (!is_bit_alike(bytes, network.bytes, bit)) {
               return false;
             }
           }
           return true;
         });
}

}  // namespace ringbolt::stream
