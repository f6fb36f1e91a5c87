// The cluster that is up, as a file that MLX's launcher and JACCL read.
#include "hostfile.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/overlay_device.h"
#include "bootstrap/mlx_hostfile.h"
#include "cluster/address.h"
#include "cluster/address_plan.h"
#include "cluster_state.h"
#include "commands.h"
#include "failure.h"
#include "page_file.h"

namespace ringbolt::tools {
namespace {

using bootstrap::JacclDevices;
using bootstrap::MlxHost;
using bootstrap::MlxHostfile;
using bootstrap::MlxRingfile;

/// How the others reach a node: without cables if they can, else by its ports, which are on the way anyhow. A host's
/// ports lead to its neighbours alone (streams have no addresses at all), so its name comes first.
std::vector<std::string> addresses_of(const cluster::Cluster& model, uint32_t node) {
  if (model.kind == cluster::Kind::netns && model.has_management) {
    return {cluster::management_address(node).text()};
  }
  std::vector<std::string> found;
  const cluster::Node& one = model.nodes[node];
  if (model.kind == cluster::Kind::hosts) {
    const std::string host = one.host.empty() ? one.name : one.host;
    found.push_back(host.substr(host.find('@') + 1));  // npos + 1 is 0
  }
  for (uint32_t port = 0; port < one.ports.size(); ++port) {
    if (model.kind == cluster::Kind::emulated) {
      found.push_back(cluster::ipv4_text(cluster::port_ipv4(node, port)));
      continue;
    }
    const auto& addresses = one.ports[port].addresses;
    const auto v4 = std::find_if(addresses.begin(), addresses.end(), [](const auto& at) { return at.is_ipv4(); });
    // A link-local address would need the interface of whoever reads the file.
    const auto reachable = v4 != addresses.end() ? v4
                                                 : std::find_if(addresses.begin(), addresses.end(),
                                                                [](const auto& at) { return !at.is_link_local(); });
    if (reachable != addresses.end()) {
      found.push_back(reachable->text());
    }
  }
  if (found.empty()) {
    throw UsageError(
        fmt::format("node {} has no address by which others reach it: leave out --no-management, or give "
                    "its ports addresses that are not link-local",
                    one.name));
  }
  return found;
}

/// cells[i][j]: the devices of the cables between i and j, in the order of the cables at both ends, since rails pair by
/// their place in the list. Where no cable is and the cluster has an overlay, its device: JACCL itself relays nothing.
JacclDevices devices_of(const cluster::Cluster& model) {
  JacclDevices devices;
  const size_t n = model.nodes.size();
  devices.cells.assign(n, std::vector<std::vector<std::string>>(n));
  for (const cluster::Cable& cable : model.cables) {
    if (cable.a.node != cable.b.node) {
      devices.cells[cable.a.node][cable.b.node].push_back(model.nodes[cable.a.node].ports[cable.a.port].name);
      devices.cells[cable.b.node][cable.a.node].push_back(model.nodes[cable.b.node].ports[cable.b.port].name);
    }
  }
  for (size_t i = 0; model.has_overlay && i < n; ++i) {
    for (size_t j = 0; j < n; ++j) {
      if (i != j && devices.cells[i][j].empty()) {
        devices.cells[i][j].emplace_back(base::kOverlayDevice);
      }
    }
  }
  return devices;
}

/// Only what a ring of the ranks in order uses, with as many rails everywhere: JACCL wants it so.
void leave_ring(JacclDevices& devices) {
  const size_t n = devices.cells.size();
  size_t n_rails = SIZE_MAX;
  for (size_t i = 0; n > 1 && i < n; ++i) {
    const size_t rails = devices.cells[i][(i + 1) % n].size();
    if (rails == 0) {
      throw UsageError(
          fmt::format("no cable joins node {} to node {}: a ring of the nodes in their order needs one; take "
                      "--backend jaccl, or ringbolt up --overlay",
                      i, (i + 1) % n));
    }
    n_rails = std::min(n_rails, rails);
  }
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < n; ++j) {
      const bool is_edge = j == (i + 1) % n || i == (j + 1) % n;
      devices.cells[i][j].resize(is_edge ? std::min(n_rails, devices.cells[i][j].size()) : 0);
    }
  }
}

std::string text_for(const cluster::Cluster& model, const HostfileOptions& options) {
  if (options.format == "mlx-ring") {
    MlxRingfile file;
    for (uint32_t node = 0; node < model.nodes.size(); ++node) {
      const auto port = static_cast<uint16_t>(bootstrap::kMlxCoordinatorPort + node);
      file.ranks.push_back({{addresses_of(model, node)[0], port}});
    }
    return bootstrap::to_text(file);
  }
  JacclDevices devices = devices_of(model);
  const bool has_devices = options.backend != "ring";
  if (options.backend == "jaccl-ring") {
    leave_ring(devices);
  }
  if (const std::string problem = bootstrap::problem_of(devices, "node {} to node {}");
      has_devices && !problem.empty()) {
    throw UsageError(problem);
  }
  if (options.format == "jaccl") {
    return bootstrap::to_text(devices);
  }
  MlxHostfile file{.is_object = options.format == "mlx", .backend = options.backend};
  for (uint32_t node = 0; node < model.nodes.size(); ++node) {
    const cluster::Node& one = model.nodes[node];
    MlxHost host{one.host.empty() ? one.name : one.host, addresses_of(model, node)};
    if (has_devices) {
      host.rdma = devices.cells[node];
    }
    file.hosts.push_back(std::move(host));
  }
  return bootstrap::to_text(file);
}

}  // namespace

int hostfile(const HostfileOptions& given) {
  if (!given.checked_path.empty()) {
    return check_hostfile(given);
  }
  HostfileOptions options = given;
  options.format = given.format.empty() ? "mlx" : given.format;
  options.backend = given.backend.empty() ? "jaccl" : given.backend;
  if (options.is_json) {
    throw UsageError("--json is for --check FILE: what is written is JSON anyhow");
  }
  if (options.format == "jaccl" && options.backend == "ring") {
    throw UsageError("a device file is for JACCL: take --backend jaccl or jaccl-ring, or --format mlx-ring");
  }
  const LiveCluster live = open_cluster(options.cluster);
  const std::string text = text_for(live.model, options);  // refuses before the file is touched
  PageFile file(options.path, "-o");
  file.write(text);
  return kOk;
}

}  // namespace ringbolt::tools
