#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/overlay_device.h"

namespace ringbolt::cluster {

/// The address of a port: 127.77.<node>.<port number>, host order. Thread-safe. Both are indices: `node` below
/// kMaxNodes, `port_index` below kMaxPortsPerNode, unchecked; the port's number is its index plus kFirstPortNumber.
uint32_t port_ipv4(uint32_t node, uint32_t port_index);

/// The GUID of a port, host order: a locally administered EUI-64 made of 24 bits hashed from the cluster's name, the
/// node and the port number, so it is the same at every `up` and unique within a cluster. Thread-safe. Two clusters
/// whose names hash alike have the same GUIDs, which does no harm as no cable joins clusters. Bounds as for
/// port_ipv4().
uint64_t port_guid(std::string_view cluster, uint32_t node, uint32_t port_index);

/// The address of a port at a stream with this GUID, host order: link-local (RFC 3927), of no interface, only to tell
/// the two ends apart. Thread-safe. Different GUIDs may get one address: whoever compares by it must compare within a
/// cable.
uint32_t stream_ipv4(uint64_t guid);

/// The overlay device, by which every node of a cluster reaches every other (docs/overlay.md): its name, and its GUID
/// and IPv4 address on a node, in host order. Both end in the node's number plus one, in 16 bits, and are the same in
/// all clusters: no cable leads from one to another. Thread-safe.
using base::kOverlayDevice;
// 02: locally administered (IEEE 802, the U/L bit). The address is of RFC 3927's range, in the part from 169.254.240
// on, which stream_ipv4() may also hit: the two are never compared.
inline constexpr uint64_t kOverlayGuid = 0x0252'42f0'0000'0000U;
inline constexpr uint32_t kOverlayIpv4 = 0xa9fe'f000U;  // 169.254.240.0
constexpr uint64_t overlay_guid(uint32_t node) { return kOverlayGuid + node + 1; }
constexpr uint32_t overlay_ipv4(uint32_t node) { return kOverlayIpv4 + node + 1; }

/// "127.77.0.2". Thread-safe.
std::string ipv4_text(uint32_t ipv4);

/// "0x0252421234560002". Thread-safe.
std::string guid_text(uint64_t guid);

}  // namespace ringbolt::cluster
