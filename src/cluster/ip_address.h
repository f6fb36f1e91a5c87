#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ringbolt::cluster {

/// An address of an interface with the length of its subnet's prefix. A value; thread-safe.
struct IpAddress {
  std::array<uint8_t, 16> bytes{};  ///< network order; IPv4 is mapped, ::ffff:a.b.c.d
  uint8_t prefix_bits = 0;          ///< 0 to 32 for IPv4, else 0 to 128

  /// `prefix_bits` must be 32 at most: it is not checked, and shares_subnet() reads as many bits.
  static IpAddress from_ipv4(uint32_t host_order, uint8_t prefix_bits);
  /// Reads "10.77.0.1/24" or "fd77::1/64"; without the prefix the whole address is one. Any bytes are safe to pass.
  /// No names, no zones ("%en2") and no "::ffff:10.0.0.1": each address has one way to be written.
  static std::optional<IpAddress> parse(std::string_view text);

  bool is_ipv4() const;
  bool is_link_local() const;  ///< of IPv6: fe80::/10
  uint32_t ipv4() const;       ///< host order; 0 for IPv6
  /// "10.77.0.1"
  std::string text() const;
  /// "10.77.0.1/24"
  std::string text_with_prefix() const;
  /// Whether both are of one family and one subnet, by the shorter of the two prefixes.
  bool shares_subnet(const IpAddress& other) const;

  friend bool operator==(const IpAddress&, const IpAddress&) = default;
};

}  // namespace ringbolt::cluster
