#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ringbolt::cluster {

/// The address of a port: 127.77.<node>.<port number>, host order. Thread-safe.
uint32_t port_ipv4(uint32_t node, uint32_t port_index);

/// The GUID of a port, host order: a locally administered EUI-64 made of 24 bits hashed from the cluster's name, the
/// node and the port number, so it is the same at every `up` and unique within a cluster. Thread-safe.
uint64_t port_guid(std::string_view cluster, uint32_t node, uint32_t port_index);

/// The address of a port at a stream with this GUID, host order: link-local (RFC 3927), of no interface, only to tell
/// the two ends apart. Thread-safe.
uint32_t stream_ipv4(uint64_t guid);

/// "127.77.0.2". Thread-safe.
std::string ipv4_text(uint32_t ipv4);

/// "0x0252421234560002". Thread-safe.
std::string guid_text(uint64_t guid);

}  // namespace ringbolt::cluster
