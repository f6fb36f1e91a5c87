#include "cluster/address_plan.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "cluster/address.h"

namespace ringbolt::cluster {
namespace {

// fd77::/16 is of the unique local addresses (RFC 4193), without the random bits that its section 3.2.2 wants: nothing
// leaves the namespaces.
constexpr uint8_t kIpv4Prefix = 24;
constexpr uint8_t kIpv6Prefix = 64;
static_assert(kMaxCables <= kMaxPlannedCables);

void put_u64(IpAddress& address, size_t at, uint64_t value) {
  for (size_t i = 0; i < 8; ++i) {
    address.bytes[at + i] = static_cast<uint8_t>(value >> (56U - 8U * i));
  }
}

IpAddress planned_ipv4(uint32_t cable, uint32_t side) {
  // From cable 256 on the shift carries into the second byte: 10.78, 10.79 and so on.
  return IpAddress::from_ipv4((10U << 24U) + (77U << 16U) + (cable << 8U) + side, kIpv4Prefix);
}

IpAddress planned_ipv6(uint32_t cable, uint32_t side) {
  IpAddress address;
  put_u64(address, 0, 0xfd77'0000'0000'0000U | cable);
  put_u64(address, 8, side);
  address.prefix_bits = kIpv6Prefix;
  return address;
}

/// "en2" for port 0, or the next that the node's file has not given to another port.
std::string free_netdev(const Node& node, uint32_t port) {
  const auto is_taken = [&](const std::string& name) {
    return std::ranges::count(node.ports, name, &Port::netdev) != 0;
  };
  std::string name = fmt::format("en{}", port + kFirstPortNumber);
  // Beyond every number that a port's own place gives: no later port wants it by its place.
  for (uint32_t number = kMaxPortsPerNode + kFirstPortNumber; is_taken(name); ++number) {
    name = fmt::format("en{}", number);
  }
  return name;
}

void plan_end(Cluster& cluster, const CableEnd& end, uint32_t cable, uint32_t side) {
  Node& node = cluster.nodes[end.node];
  Port& port = node.ports[end.port];
  if (port.netdev.empty()) {
    port.netdev = free_netdev(node, end.port);
  }
  if (port.addresses.empty()) {
    port.addresses = {planned_ipv4(cable, side), planned_ipv6(cable, side)};
  }
  // One link-local address, that of the GUID; tools/namespaces.cpp keeps the kernel from making one of the MAC.
  std::erase_if(port.addresses, [](const IpAddress& one) { return one.is_link_local(); });
  port.addresses.insert(port.addresses.begin(), link_local_of(port_guid(cluster.name, end.node, end.port)));
}

}  // namespace

void plan_namespaces(Cluster& cluster) {
  cluster.kind = Kind::netns;
  std::set<std::pair<uint32_t, uint32_t>> cabled;
  for (const Cable& cable : cluster.cables) {
    cabled.insert({cable.a.node, cable.a.port});
    cabled.insert({cable.b.node, cable.b.port});
  }
  for (uint32_t node = 0; node < cluster.nodes.size(); ++node) {
    for (uint32_t port = 0; port < cluster.nodes[node].ports.size(); ++port) {
      if (cabled.count({node, port}) == 0) {
        cluster.nodes[node].ports[port].netdev.clear();
        cluster.nodes[node].ports[port].addresses.clear();
      }
    }
  }
  for (uint32_t index = 0; index < cluster.cables.size(); ++index) {
    const Cable cable = cluster.cables[index];
    plan_end(cluster, cable.a, index, 1);
    // A loopback plug has one interface, with side 1.
    if (cable.b != cable.a) {
      plan_end(cluster, cable.b, index, 2);
    }
  }
}

IpAddress link_local_of(uint64_t guid) {
  IpAddress address;
  put_u64(address, 0, 0xfe80'0000'0000'0000U);
  put_u64(address, 8, guid ^ 0x0200'0000'0000'0000U);  // RFC 4291: an EUI-64 with the universal bit turned
  address.prefix_bits = kIpv6Prefix;
  return address;
}

IpAddress management_address(uint32_t node) {
  static_assert(kMaxNodes < 255, "a node is a host number of a /24");
  return IpAddress::from_ipv4((10U << 24U) + (76U << 16U) + node + 1, kIpv4Prefix);
}

std::string management_conflict(const Cluster& cluster) {
  for (uint32_t node = 0; node < cluster.nodes.size(); ++node) {
    for (uint32_t port = 0; port < cluster.nodes[node].ports.size(); ++port) {
      const Port& one = cluster.nodes[node].ports[port];
      if (one.netdev == kManagementNetdev) {
        return fmt::format("{} is carried by {}, the name of the management network's interface",
                           end_text(cluster, {node, port}), kManagementNetdev);
      }
      for (const IpAddress& address : one.addresses) {
        if (address.shares_subnet(management_address(node))) {
          return fmt::format("{} has the address {}, which lies in the management network's 10.76.0.0/24",
                             end_text(cluster, {node, port}), address.text_with_prefix());
        }
      }
    }
  }
  return "";
}

std::string management_namespace(const std::string& cluster) { return fmt::format("rb-{}-management", cluster); }

std::string namespace_name(const std::string& cluster, uint32_t node) { return fmt::format("rb-{}-{}", cluster, node); }

}  // namespace ringbolt::cluster
