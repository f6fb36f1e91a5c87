#include "cluster/model.h"

#include <algorithm>

#include "base/assert.h"
#include "cluster/address.h"

namespace ringbolt::cluster {
namespace {

// Host order; 0 for a port of an interface without an IPv4 address.
uint32_t ipv4_of(const Cluster& cluster, const CableEnd& end) {
  return cluster.kind == Kind::emulated ? port_ipv4(end.node, end.port)
                                        : first_ipv4(cluster.nodes[end.node].ports[end.port]);
}

// As seen from `here`; `there` is the other end of the same cable, or the same port of a loopback plug.
PortSpec port_spec(const Cluster& cluster, uint32_t cable_index, const CableEnd& here, const CableEnd& there) {
  PortSpec port;
  port.device = cluster.nodes[here.node].ports[here.port].name;
  port.guid = port_guid(cluster.name, here.node, here.port);
  port.ipv4 = ipv4_of(cluster, here);
  port.cable = cable_index;
  port.speed_gbps = cluster.cables[cable_index].speed_gbps;
  port.peer_node = there.node;
  port.peer_device = cluster.nodes[there.node].ports[there.port].name;
  port.peer_guid = port_guid(cluster.name, there.node, there.port);
  port.peer_ipv4 = ipv4_of(cluster, there);
  if (cluster.kind != Kind::emulated) {
    port.netdev = cluster.nodes[here.node].ports[here.port].netdev;
    port.stream = cluster.nodes[here.node].ports[here.port].stream;
    // Callers have checked: with_found_addresses() or check_netdevs() of cluster_file.cpp.
    RINGBOLT_ASSERT(port.netdev.empty() != port.stream.empty());
    if (!port.stream.empty()) {
      port.ipv4 = stream_ipv4(port.guid);
      port.peer_ipv4 = stream_ipv4(port.peer_guid);
    }
  }
  return port;
}

}  // namespace

std::string port_device(uint32_t port_index) { return "rdma_en" + std::to_string(port_index + kFirstPortNumber); }

NodeSpec node_spec(const Cluster& cluster, uint32_t node) {
  RINGBOLT_ASSERT(node < cluster.nodes.size());
  NodeSpec spec;
  spec.cluster = cluster.name;
  spec.n_cables = static_cast<uint32_t>(cluster.cables.size());
  spec.node = node;
  spec.name = cluster.nodes[node].name;
  spec.like = cluster.nodes[node].like;
  spec.n_overlay_nodes = cluster.has_overlay ? static_cast<uint32_t>(cluster.nodes.size()) : 0;
  for (uint32_t index = 0; index < spec.n_cables; ++index) {
    const Cable& cable = cluster.cables[index];
    if (cable.a.node == node) {
      spec.ports.push_back(port_spec(cluster, index, cable.a, cable.b));
    }
    // A loopback plug is one port, not two; a cable between two ports of one node is two.
    if (cable.b.node == node && cable.a != cable.b) {
      spec.ports.push_back(port_spec(cluster, index, cable.b, cable.a));
    }
  }
  // Within a node GUIDs differ in their last byte alone, which is the port number.
  std::sort(spec.ports.begin(), spec.ports.end(),
            [](const PortSpec& left, const PortSpec& right) { return left.guid < right.guid; });  // by port number
  return spec;
}

std::string end_text(const Cluster& cluster, const CableEnd& end) {
  RINGBOLT_ASSERT(end.node < cluster.nodes.size() && end.port < cluster.nodes[end.node].ports.size());
  return cluster.nodes[end.node].name + ":" + cluster.nodes[end.node].ports[end.port].name;
}

const char* kind_text(Kind kind) {
  switch (kind) {
    case Kind::netns:
      return "netns";
    case Kind::hosts:
      return "hosts";
    case Kind::emulated:
      break;
  }
  return "emulated";
}

uint32_t first_ipv4(const Port& port) {
  const auto found = std::ranges::find_if(port.addresses, [](const IpAddress& one) { return one.is_ipv4(); });
  return found == port.addresses.end() ? 0 : found->ipv4();
}

std::vector<uint32_t> cables_between(const Cluster& cluster, uint32_t a, uint32_t b) {
  std::vector<uint32_t> found;
  for (uint32_t index = 0; index < cluster.cables.size(); ++index) {
    const Cable& cable = cluster.cables[index];
    if ((cable.a.node == a && cable.b.node == b) || (cable.a.node == b && cable.b.node == a)) {
      found.push_back(index);
    }
  }
  return found;
}

}  // namespace ringbolt::cluster
