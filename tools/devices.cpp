#include <algorithm>

#include <fmt/format.h>

#include "cluster/address.h"
#include "cluster_state.h"
#include "commands.h"
#include "failure.h"
#include "sysroot.h"
#include "table.h"

namespace ringbolt::tools {
namespace {

using Kind = Table::Kind;

Table device_table(bool is_json) {
  return {"devices",
          {{"NODE"},
           {"DEVICE"},
           {"GUID"},
           {"ADDRESS"},
           {"STATE"},
           {"CABLE", Kind::kNumber},
           {"SPEED_GBPS", Kind::kNumber},
           {"LEADS_TO"}},
          is_json};
}

void print_default(const cluster::RuntimeDir& dir, bool is_json) {
  const SysrootDevice device = local_device(dir, {});
  Table table = device_table(is_json);
  table.add({"local", device.name, cluster::guid_text(device.guid), cluster::ipv4_text(device.ipv4), "up", "",
             std::to_string(device.speed_gbps), "every process of this user"});
  table.print();
}

}  // namespace

int devices(const ListOptions& options) {
  const cluster::RuntimeDir dir = cluster::RuntimeDir::from_environment();
  if (options.cluster.empty() && cluster_names(dir).empty()) {
    print_default(dir, options.is_json);
    return kOk;
  }
  const LiveCluster live = open_cluster(options.cluster);
  Table table = device_table(options.is_json);
  for (uint32_t node = 0; node < live.model.nodes.size(); ++node) {
    const cluster::NodeSpec spec = cluster::node_spec(live.model, node);
    for (uint32_t port = 0; port < live.model.nodes[node].ports.size(); ++port) {
      const std::string& device = live.model.nodes[node].ports[port].name;
      const auto found = std::find_if(spec.ports.begin(), spec.ports.end(),
                                      [&](const cluster::PortSpec& one) { return one.device == device; });
      if (found == spec.ports.end()) {
        table.add({spec.name, device, cluster::guid_text(cluster::port_guid(live.model.name, node, port)),
                   cluster::ipv4_text(cluster::port_ipv4(node, port)), "no cable", "", "", ""});
        continue;
      }
      table.add({spec.name, device, cluster::guid_text(found->guid), cluster::ipv4_text(found->ipv4),
                 live.control.cable_up(found->cable) ? "up" : "cut", std::to_string(found->cable),
                 std::to_string(found->speed_gbps),
                 fmt::format("{}:{}", live.model.nodes[found->peer_node].name, found->peer_device)});
    }
  }
  table.print();
  return kOk;
}

}  // namespace ringbolt::tools
