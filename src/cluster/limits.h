#pragma once

#include <cstddef>
#include <cstdint>

namespace ringbolt::cluster {

/// The address plan gives a node the third byte of 127.77.<node>.<port number>, a port the fourth.
inline constexpr uint32_t kMaxNodes = 250;
// With kFirstPortNumber added, a port's number is 251 at most: a byte, and never 255, which could be read as
// broadcast.
inline constexpr uint32_t kMaxPortsPerNode = 250;
// A full mesh of the largest cluster.
inline constexpr uint32_t kMaxCables = kMaxNodes * (kMaxNodes - 1) / 2;
/// Numbers of a plan's cables: each is a /30 of a /16 (docs/plan.md).
inline constexpr uint32_t kMaxCableId = (1U << 14U) - 1;
// Gbit/s, as declared; the default is what cables of Thunderbolt 3 and 4 are sold as.
inline constexpr uint32_t kMaxSpeedGbps = 10'000;
inline constexpr uint32_t kDefaultSpeedGbps = 40;
inline constexpr size_t kMaxNameBytes = 32;
inline constexpr size_t kMaxProfileBytes = 128;
inline constexpr size_t kMaxNetdevBytes = 15;  // the kernel's IFNAMSIZ less its end
inline constexpr size_t kMaxStreamBytes = 255;
inline constexpr size_t kMaxHostBytes = 255;
inline constexpr size_t kMaxAddressesPerPort = 16;

/// Of interfaces that carry cables. Below 1280 the kernel takes IPv6 off an interface.
inline constexpr uint32_t kMinMtu = 1280;
inline constexpr uint32_t kMaxMtu = 65'535;
inline constexpr uint32_t kDefaultMtu = 9000;
inline constexpr uint32_t kMaxRateMbps = kMaxSpeedGbps * 1000;

/// Ports are numbered as on a Mac, where Thunderbolt ports begin at en2.
inline constexpr uint32_t kFirstPortNumber = 2;

/// Texts longer than this are refused unread.
inline constexpr size_t kMaxNodeFileBytes = size_t{256} * 1024;
inline constexpr size_t kMaxClusterFileBytes = size_t{16} * 1024 * 1024;

}  // namespace ringbolt::cluster
