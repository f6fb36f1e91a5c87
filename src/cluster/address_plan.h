#pragma once

#include <cstdint>
#include <string>

#include "cluster/model.h"

namespace ringbolt::cluster {

/// So many cables have a subnet of their own in 10.77.0.0 to 10.255.255.255.
inline constexpr uint32_t kMaxPlannedCables = (256 - 77) * 256;

/// Makes `cluster` one of network namespaces: every port that has a cable gets an interface (the name that it has
/// already, else en2, en3, ... by its number) and, if it has none, the addresses of the plan. Cable c is the subnets
/// 10.(77 + c / 256).(c mod 256).0/24 and fd77:0:0:c::/64, its ends are .1 and .2 there; first comes the
/// link-local address that is made of the port's GUID. Ports without a cable lose what they have. Pure. Thread-safe.
void plan_namespaces(Cluster& cluster);

/// The link-local address of an interface whose EUI-64 is `guid` (host order), with prefix 64. Thread-safe.
IpAddress link_local_of(uint64_t guid);

/// The name of a node's network namespace: "rb-ring4-0". Thread-safe.
std::string namespace_name(const std::string& cluster, uint32_t node);

}  // namespace ringbolt::cluster
