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
/// Names and addresses that the file gives are kept, unchecked against each other: management_conflict() and the
/// kernel find clashes.
void plan_namespaces(Cluster& cluster);

/// The link-local address of an interface whose EUI-64 is `guid` (host order), with prefix 64. Thread-safe.
IpAddress link_local_of(uint64_t guid);

/// The management network of a cluster of network namespaces, beside its cables: what Wi-Fi or Ethernet are to real
/// machines. Node K is 10.76.0.(K + 1)/24 at its interface mgmt0, which is no verbs device. Thread-safe.
inline constexpr const char* kManagementNetdev = "mgmt0";
IpAddress management_address(uint32_t node);

/// Why that network can't be: "n0:rdma_en2 has 10.76.0.9/24, ..." for a port that takes its interface's name or an
/// address of its range; "" if it can. The cluster must have been through plan_namespaces(). Pure. Thread-safe.
std::string management_conflict(const Cluster& cluster);

/// The namespace of the switch between them: "rb-ring4-management". Thread-safe.
std::string management_namespace(const std::string& cluster);

/// The name of a node's network namespace: "rb-ring4-0". Thread-safe.
std::string namespace_name(const std::string& cluster, uint32_t node);

}  // namespace ringbolt::cluster
