#include "cluster/model.h"

#include <algorithm>

#include "base/assert.h"
#include "cluster/address.h"

namespace ringbolt::cluster {
namespace {

PortSpec port_spec(const Cluster& cluster, uint32_t cable_index, const CableEnd& here, const CableEnd& there) {
  PortSpec port;
  port.device = cluster.nodes[here.node].ports[here.port];
  port.guid = port_guid(cluster.name, here.node, here.port);
  port.ipv4 = port_ipv4(here.node, here.port);
  port.cable = cable_index;
  port.speed_gbps = cluster.cables[cable_index].speed_gbps;
  port.peer_node = there.node;
  port.peer_device = cluster.nodes[there.node].ports[there.port];
  port.peer_guid = port_guid(cluster.name, there.node, there.port);
  port.peer_ipv4 = port_ipv4(there.node, there.port);
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
  for (uint32_t index = 0; index < spec.n_cables; ++index) {
    const Cable& cable = cluster.cables[index];
    if (cable.a.node == node) {
      spec.ports.push_back(port_spec(cluster, index, cable.a, cable.b));
    }
    if (cable.b.node == node && cable.a != cable.b) {
      spec.ports.push_back(port_spec(cluster, index, cable.b, cable.a));
    }
  }
  std::sort(spec.ports.begin(), spec.ports.end(),
            [](const PortSpec& left, const PortSpec& right) { return left.ipv4 < right.ipv4; });
  return spec;
}

std::string end_text(const Cluster& cluster, const CableEnd& end) {
  RINGBOLT_ASSERT(end.node < cluster.nodes.size() && end.port < cluster.nodes[end.node].ports.size());
  return cluster.nodes[end.node].name + ":" + cluster.nodes[end.node].ports[end.port];
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
