#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstdint>
#include <string>

namespace ringbolt::bringup {

/// A GID as a value: the 16 bytes of an IPv6 address, or of an IPv4 address mapped into one.
using Gid = std::array<uint8_t, 16>;

/// What frames a GID stands for, where the library can tell. The numbers are those of port cards.
enum class GidType : uint8_t { kUnknown, kInfiniBand, kRoceV1, kRoceV2 };

// All are pure.

Gid gid_of(const ibv_gid& gid);
ibv_gid ibv_gid_of(const Gid& gid);

bool is_empty(const Gid& gid);
/// ::ffff:a.b.c.d
bool is_ipv4(const Gid& gid);
/// fe80::/10, or 169.254.0.0/16 as IPv4: what a port gives itself, on every cable alike.
bool is_link_local(const Gid& gid);
/// ::1, or 127.0.0.0/8 as IPv4.
bool is_loopback(const Gid& gid);
/// An address that may be in a subnet of one cable: IPv4 or IPv6, neither link-local nor loopback nor multicast.
bool is_routable(const Gid& gid);

/// Whether ends of these types understand each other, as far as is known.
bool speak_alike(GidType a, GidType b);

/// How many bits from the front two have in common, 0 to 128.
unsigned common_bits(const Gid& a, const Gid& b);

/// "10.77.0.1" of an IPv4 one, otherwise as IPv6 addresses are written.
std::string text_of(const Gid& gid);

}  // namespace ringbolt::bringup
