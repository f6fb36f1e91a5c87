#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace ringbolt::wire {

/// The UDP port of RoCEv2.
inline constexpr uint16_t kRocePort = 4791;

/// A GID: an IPv6 address, or ::ffff:a.b.c.d for IPv4. Bytes as on the wire.
// Both forms in one type, since a GID is both; is_ipv4() tells them apart.
using Address = std::array<uint8_t, 16>;

inline constexpr bool is_ipv4(const Address& address) {
  using Words = std::array<uint32_t, 4>;  // asked of every packet: not byte by byte
  constexpr auto prefix = std::bit_cast<Words>(Address{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff});
  const auto words = std::bit_cast<Words>(address);
  return (words[0] | words[1] | (words[2] ^ prefix[2])) == 0;
}

inline constexpr Address ipv4_address(uint8_t a, uint8_t b, uint8_t c, uint8_t d) {
  return {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d};
}

/// Where a datagram comes from and goes to: what the ICRC covers of its IP and UDP headers. Ports in host order.
/// The addresses are both IPv4 or both IPv6.
struct Flow {
  Address source{};
  Address destination{};
  uint16_t source_port = kRocePort;
  uint16_t destination_port = kRocePort;
  friend bool operator==(const Flow&, const Flow&) = default;
};

inline constexpr bool is_ipv4(const Flow& flow) { return is_ipv4(flow.source) && is_ipv4(flow.destination); }

}  // namespace ringbolt::wire
