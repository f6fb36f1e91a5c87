#include "cabling_file.h"

#include <string.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bootstrap/mlx_hostfile.h"
#include "cluster/cluster_file.h"
#include "cluster/names.h"
#include "cluster/read_file.h"
#include "failure.h"

namespace ringbolt::tools {
namespace {

using bootstrap::JacclDevices;

struct Ranks {
  std::vector<std::string> ssh;  ///< empty: the file has none
  JacclDevices devices;
};

Ranks ranks_of(const std::string& path, const std::string& text) {
  const MlxFormat format = format_of(text);
  if (format == MlxFormat::ring) {
    throw UsageError(
        fmt::format("{}: has the addresses of a ring of TCP, and no devices: cables can't be told from it; "
                    "take the hostfile (mlx) or the device file (jaccl)",
                    path));
  }
  if (format == MlxFormat::devices) {
    auto devices = bootstrap::parse_jaccl_devices(text);
    if (!devices) {
      throw UsageError(fmt::format("{}: {}", path, devices.error().text()));
    }
    return {{}, std::move(*devices)};
  }
  const auto file = bootstrap::parse_mlx_hostfile(text);
  if (!file) {
    throw UsageError(fmt::format("{}: {}", path, file.error().text()));
  }
  std::optional<JacclDevices> devices = file->devices();
  if (!devices) {
    throw UsageError(fmt::format("{}: its hosts have no rdma: cables can't be told from it", path));
  }
  Ranks ranks{{}, std::move(*devices)};
  for (const bootstrap::MlxHost& host : file->hosts) {
    ranks.ssh.push_back(host.ssh);
  }
  return ranks;
}

/// By the numbers in them: rdma_en2 comes before rdma_en10.
bool comes_before(const std::string& a, const std::string& b) { return ::strverscmp(a.c_str(), b.c_str()) < 0; }

/// A device is a port, and a port has one cable.
std::vector<cluster::Port> ports_of(const std::string& path, const JacclDevices& devices, size_t rank) {
  std::vector<std::string> names;
  for (const auto& cell : devices.cells[rank]) {
    names.insert(names.end(), cell.begin(), cell.end());
  }
  std::ranges::sort(names, comes_before);
  if (const auto twice = std::ranges::adjacent_find(names); twice != names.end()) {
    throw UsageError(
        fmt::format("{}: {} of rank {} leads to two places, and a port has one cable; see ringbolt hostfile "
                    "--check",
                    path, *twice, rank));
  }
  std::vector<cluster::Port> ports;
  for (std::string& name : names) {
    if (!cluster::is_device_name(name)) {
      throw UsageError(fmt::format("{}: \"{}\" of rank {} is no name of a device", path, name, rank));
    }
    ports.push_back({std::move(name)});
  }
  return ports;
}

uint32_t port_number(const cluster::Node& node, const std::string& name) {
  return static_cast<uint32_t>(std::ranges::find(node.ports, name, &cluster::Port::name) - node.ports.begin());
}

cluster::Cluster cluster_of(const std::string& path, const Ranks& ranks) {
  const auto n_ranks = ranks.devices.n_ranks();
  if (n_ranks > cluster::kMaxNodes) {
    throw UsageError(fmt::format("{}: has {} ranks; a cluster has up to {} nodes", path, n_ranks, cluster::kMaxNodes));
  }
  cluster::Cluster model;
  std::set<std::string> taken;
  for (uint32_t rank = 0; rank < n_ranks; ++rank) {
    cluster::Node& node = model.nodes.emplace_back();
    node.host = ranks.ssh.empty() ? "" : ranks.ssh[rank];
    const std::string name = node.host.substr(node.host.find('@') + 1);  // npos + 1 is 0
    node.name = cluster::is_node_name(name) && taken.insert(name).second ? name : "";
    node.ports = ports_of(path, ranks.devices, rank);
  }
  for (uint32_t rank = 0; rank < n_ranks; ++rank) {
    std::string& name = model.nodes[rank].name;
    for (std::string number = fmt::format("n{}", rank); name.empty(); number += '-') {
      name = taken.insert(number).second ? number : "";
    }
  }
  const auto& cells = ranks.devices.cells;
  for (uint32_t a = 0; a < n_ranks; ++a) {
    for (uint32_t b = a + 1; b < n_ranks; ++b) {
      for (size_t rail = 0; rail < cells[a][b].size(); ++rail) {
        model.cables.push_back(
            {{a, port_number(model.nodes[a], cells[a][b][rail])}, {b, port_number(model.nodes[b], cells[b][a][rail])}});
      }
    }
  }
  return model;
}

}  // namespace

const char* format_text(MlxFormat format) {
  constexpr std::array kTexts{"mlx", "mlx-v1", "mlx-ring", "jaccl"};
  return kTexts.at(static_cast<size_t>(format));
}

MlxFormat parse_format(const std::string& text) {
  for (const MlxFormat format : {MlxFormat::hostfile, MlxFormat::host_list, MlxFormat::ring}) {
    if (text == format_text(format)) {
      return format;
    }
  }
  return MlxFormat::devices;
}

MlxFormat format_of(const std::string& text) {
  std::string begin;
  for (const char c : text) {
    if (c != ' ' && c != '\n' && c != '\r' && c != '\t') {
      begin += c;
    }
    if (begin.size() == 3) {
      break;
    }
  }
  if (begin.starts_with('{')) {
    return MlxFormat::hostfile;
  }
  if (begin.starts_with("[{")) {
    return MlxFormat::host_list;
  }
  const size_t quote = text.find('"');
  const bool has_port = quote != std::string::npos &&
                        text.substr(quote + 1, text.find('"', quote + 1) - quote - 1).find(':') != std::string::npos;
  return begin == "[[\"" && has_port ? MlxFormat::ring : MlxFormat::devices;
}

/// A cluster file is an object that has no hosts. What is no JSON is refused as a cluster file.
bool is_mlx_file(const std::string& text) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  return json.is_array() || (json.is_object() && json.contains("hosts") && !json.contains("ringbolt"));
}

cluster::Cluster parse_cabling(const std::string& path, const std::string& text) {
  if (is_mlx_file(text)) {
    return cluster_of(path, ranks_of(path, text));
  }
  auto model = cluster::parse_cluster(text);
  if (!model) {
    throw UsageError(fmt::format("{}: {}", path, model.error().text()));
  }
  return std::move(*model);
}

cluster::Cluster load_cabling(const std::string& path) {
  const std::string text = cluster::read_file(path, cluster::kMaxClusterFileBytes);
  return is_mlx_file(text) ? parse_cabling(path, text) : cluster::load_cluster(path);
}

}  // namespace ringbolt::tools
