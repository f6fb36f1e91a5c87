#include "nccl/pair_paths.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "circuit/paths.h"
#include "ring_order.h"

namespace ringbolt::tools::nccl_command {
namespace {

/// A node of that number: 0 is nobody's.
circuit::NodeId id_of(uint32_t node) { return node + 1; }

std::string way_text(const cluster::Cluster& model, const circuit::Path& path) {
  if (path.size() == 2) {
    const auto from = static_cast<uint32_t>(path[0].member - 1);
    const auto to = static_cast<uint32_t>(path[1].member - 1);
    return fmt::format("{}-{}", cluster::end_text(model, {from, path[0].exit.port}),
                       cluster::end_text(model, {to, path[1].entry.port}));
  }
  std::vector<std::string> relays;
  for (size_t i = 1; i + 1 < path.size(); ++i) {
    relays.push_back(model.nodes[path[i].member - 1].name);
  }
  return fmt::format("by {}", fmt::join(relays, ", "));
}

}  // namespace

std::vector<PairPaths> pair_paths(const cluster::Cluster& model, const std::vector<bool>& is_up) {
  std::vector<circuit::Link> links;
  for (size_t i = 0; i < model.cables.size(); ++i) {
    cluster::CableEnd a = model.cables[i].a;
    cluster::CableEnd b = model.cables[i].b;
    if (b.node < a.node) {
      std::swap(a, b);
    }
    if (a.node != b.node && is_up[i]) {
      links.push_back({id_of(a.node), id_of(b.node), {static_cast<uint16_t>(a.port), 0},
                       {static_cast<uint16_t>(b.port), 0}, model.cables[i].speed_gbps * 1000, true});
    }
  }
  const auto n_nodes = static_cast<uint32_t>(model.nodes.size());
  circuit::MembersOfNode members;
  for (uint32_t node = 0; node < n_nodes; ++node) {
    members[id_of(node)] = {id_of(node)};
  }
  std::vector<PairPaths> pairs;
  for (uint32_t a = 0; a < n_nodes; ++a) {
    for (uint32_t b = a + 1; b < n_nodes; ++b) {
      PairPaths& pair = pairs.emplace_back(PairPaths{a, b});
      for (const circuit::PlannedPath& planned :
           circuit::plan_paths(links, {}, members, {id_of(a), id_of(a)}, {id_of(b), id_of(b)})) {
        pair.n_hops = static_cast<uint32_t>(planned.path.size() - 1);
        pair.ways.push_back(way_text(model, planned.path));
      }
    }
  }
  return pairs;
}

std::vector<uint32_t> channel_order(const cluster::Cluster& model, const std::vector<bool>& is_up) {
  const size_t n = model.nodes.size();
  if (n == 2) {
    const bool is_joined = std::ranges::any_of(
        model.cables, [&](const cluster::Cable& cable) { return is_up[static_cast<size_t>(&cable - model.cables.data())] && cable.a.node != cable.b.node; });
    return is_joined ? std::vector<uint32_t>{0, 1} : std::vector<uint32_t>();
  }
  bootstrap::JacclDevices devices;
  devices.cells.assign(n, std::vector<std::vector<std::string>>(n));
  for (size_t i = 0; i < model.cables.size(); ++i) {
    const cluster::Cable& cable = model.cables[i];
    if (is_up[i] && cable.a.node != cable.b.node) {
      devices.cells[cable.a.node][cable.b.node].push_back(model.nodes[cable.a.node].ports[cable.a.port].name);
      devices.cells[cable.b.node][cable.a.node].push_back(model.nodes[cable.b.node].ports[cable.b.port].name);
    }
  }
  return n < 3 ? std::vector<uint32_t>() : ring_order(devices).ranks;
}

}  // namespace ringbolt::tools::nccl_command
