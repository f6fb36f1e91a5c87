// The cluster that is up, as a file that MLX's launcher and JACCL read.
// What is in somebody's hostfile or device file, and what is probably wrong with it.
#include "hostfile.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/overlay_device.h"
#include "base/say.h"
#include "bootstrap/environment.h"
#include "bootstrap/mlx_hostfile.h"
#include "cabling_file.h"
#include "cluster/address.h"
#include "cluster/address_plan.h"
#include "cluster_state.h"
#include "commands.h"
#include "failure.h"
#include "page_file.h"
#include "ring_order.h"
#include "table.h"

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

using Json = nlohmann::ordered_json;

struct JudgedRank {
  std::string ssh;  ///< empty: the format has none
  std::vector<std::string> ips;
};

/// A file of any format.
struct Judged {
  MlxFormat format;
  std::string backend = {};
  std::vector<std::string> envs = {};
  std::vector<JudgedRank> ranks = {};
  std::optional<JacclDevices> devices = std::nullopt;
  RingOrder ring = {};  ///< of those whose ring fails for their order
  std::vector<std::string> warnings = {};
};

/// `format`: which it is said to be.
base::Parsed<Judged> parsed(const std::string& text, MlxFormat format) {
  Judged file{.format = format};
  if (format == MlxFormat::ring) {
    const auto ring = bootstrap::parse_mlx_ringfile(text);
    if (!ring) {
      return tl::unexpected(ring.error());
    }
    for (const auto& addresses : ring->ranks) {
      JudgedRank& rank = file.ranks.emplace_back();
      for (const auto& address : addresses) {
        rank.ips.push_back(bootstrap::to_text(address));
      }
    }
  } else if (format == MlxFormat::devices) {
    auto devices = bootstrap::parse_jaccl_devices(text);
    if (!devices) {
      return tl::unexpected(devices.error());
    }
    file.ranks.resize(devices->n_ranks());
    file.devices = std::move(*devices);
  } else {
    auto hosts = bootstrap::parse_mlx_hostfile(text);
    if (!hosts) {
      return tl::unexpected(hosts.error());
    }
    if (hosts->is_object != (format == MlxFormat::hostfile)) {
      return tl::unexpected(base::ParseError{0, hosts->is_object ? "is an object, and mlx-v1 is the bare list of hosts"
                                                                 : "is a bare list, and mlx is an object with hosts"});
    }
    file.backend = hosts->backend;
    file.envs = hosts->envs;
    file.devices = hosts->devices();
    for (const auto& host : hosts->hosts) {
      file.ranks.push_back({host.ssh, host.ips});
    }
    if (hosts->hosts.size() > 1 && !hosts->coordinator()) {
      file.warnings.emplace_back("hosts[0] has no ips: nobody can tell where rank 0 is");
    }
  }
  return file;
}

/// What JACCL itself makes of the devices: a mesh of all pairs, a ring of the ranks in order with as many rails
/// everywhere, or neither, which leaves the relaying to us.
std::string jaccl_shape(const JacclDevices& devices) {
  const size_t n = devices.n_ranks();
  bool is_mesh = n >= 2 && n <= 8;
  bool is_ring = n >= 2;
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < n; ++j) {
      is_mesh = is_mesh && (i == j || !devices.cells[i][j].empty());
    }
    const size_t rails = devices.cells[i][(i + 1) % n].size();
    is_ring = is_ring && rails >= 1 && rails == devices.cells[0][1].size();
  }
  return is_mesh ? is_ring ? "mesh, ring" : "mesh" : is_ring ? "ring" : "neither";
}

/// Rails that JACCL's ring would trip over.
void warn_of_rails(const JacclDevices& devices, std::vector<std::string>& warnings) {
  const size_t n = devices.n_ranks();
  for (size_t i = 1; n > 2 && i < n; ++i) {
    const size_t first = devices.cells[0][1].size();
    const size_t rails = devices.cells[i][(i + 1) % n].size();
    if (first != 0 && rails != 0 && rails != first) {
      warnings.push_back(
          fmt::format("ranks 0 and 1 have {} rails, ranks {} and {} have {}: JACCL's ring needs as many "
                      "everywhere",
                      first, i, (i + 1) % n, rails));
    }
  }
}

std::string rank_text(const Judged& file, size_t rank) {
  const std::string& ssh = file.ranks[rank].ssh;
  return ssh.empty() ? std::to_string(rank) : fmt::format("{} ({})", rank, ssh);
}

/// Why no order at all is a ring.
std::string no_ring_text(const Judged& file) {
  const auto& cells = file.devices->cells;
  for (size_t rank = 0; rank < cells.size(); ++rank) {
    const auto count = std::ranges::count_if(cells[rank], [](const auto& cell) { return !cell.empty(); });
    if (count < 2) {
      return fmt::format("no order works: rank {} has cables to {} other{}, and a ring needs two",
                         rank_text(file, rank), count, count == 1 ? "" : "s");
    }
  }
  return file.ring.is_certain ? "no order works: add cables, or take another backend" : "no order that works was found";
}

/// JACCL's ring joins each rank to the next. Where it was asked for, or nothing else fits and an order would do.
void warn_of_order(Judged& file) {
  const auto& cells = file.devices->cells;
  const size_t n = cells.size();
  std::vector<std::string> apart;
  for (size_t i = 0; n > 2 && i < n; ++i) {
    if (cells[i][(i + 1) % n].empty()) {
      apart.push_back(fmt::format("{} and {}", rank_text(file, i), rank_text(file, (i + 1) % n)));
    }
  }
  const bool is_asked_for = file.backend == "jaccl-ring";
  const bool is_of_jaccl = file.backend.empty() || file.backend.starts_with("jaccl");
  if (apart.empty() || !is_of_jaccl || (!is_asked_for && jaccl_shape(*file.devices) != "neither")) {
    return;
  }
  file.ring = ring_order(*file.devices);
  std::string remedy = no_ring_text(file);
  if (!file.ring.ranks.empty()) {
    std::vector<std::string> order;
    for (const uint32_t rank : file.ring.ranks) {
      order.push_back(rank_text(file, rank));
    }
    remedy = fmt::format("this order works: {}{}", fmt::join(order, ", "),
                         file.ring.is_even ? ""
                                           : fmt::format(", with {} rail{} of each pair", file.ring.n_rails,
                                                         file.ring.n_rails == 1 ? "" : "s"));
  } else if (!is_asked_for) {
    return;  // then it is no ring, and ours relays
  }
  file.warnings.push_back(fmt::format("no cable joins ranks {}: JACCL's ring needs one from each rank to the next; {}",
                                      fmt::join(apart, ", nor "), remedy));
}

/// `backend`: instead of what the file says, unless it is empty.
base::Parsed<Judged> judged(const std::string& text, MlxFormat format, const std::string& backend) {
  auto file = parsed(text, format);
  if (file && !backend.empty()) {
    file->backend = backend;
  }
  if (file && file->devices) {
    for (std::string& line : bootstrap::warnings(*file->devices)) {
      file->warnings.push_back(std::move(line));
    }
    if (file->backend != "ring") {  // that one is of TCP, and asks for no cables
      warn_of_rails(*file->devices, file->warnings);
      warn_of_order(*file);
    }
  }
  return file;
}

void print_table(const Judged& file) {
  fmt::print("{}: {} ranks{}{}\n", format_text(file.format), file.ranks.size(),
             file.backend.empty() ? "" : ", backend " + file.backend,
             file.envs.empty() ? "" : fmt::format(", {}", fmt::join(file.envs, " ")));
  if (file.devices) {
    fmt::print("JACCL takes it as: {}\n", jaccl_shape(*file.devices));
  }
  fmt::print("\n");
  std::fflush(stdout);  // libsmartcols writes through the same stream, but only after this
  Table ranks("ranks", {{"RANK", Table::Kind::kNumber}, {"SSH"}, {"IPS"}}, false);
  for (size_t rank = 0; rank < file.ranks.size(); ++rank) {
    ranks.add({std::to_string(rank), file.ranks[rank].ssh, fmt::format("{}", fmt::join(file.ranks[rank].ips, " "))});
  }
  ranks.print();
  if (!file.devices) {
    return;
  }
  fmt::print("\n");
  std::fflush(stdout);
  Table pairs("pairs", {{"PAIR"}, {"RAILS", Table::Kind::kNumber}, {"DEVICES"}, {"AT_THE_OTHER_END"}}, false);
  const auto& cells = file.devices->cells;
  for (size_t a = 0; a < cells.size(); ++a) {
    for (size_t b = a + 1; b < cells.size(); ++b) {
      if (!cells[a][b].empty()) {
        pairs.add({fmt::format("{}-{}", a, b), std::to_string(cells[a][b].size()),
                   fmt::format("{}", fmt::join(cells[a][b], " ")), fmt::format("{}", fmt::join(cells[b][a], " "))});
      }
    }
  }
  pairs.print();
}

void print_json(const Judged& file) {
  Json root{{"format", format_text(file.format)}, {"backend", file.backend}, {"envs", file.envs}};
  root["ranks"] = Json::array();
  for (size_t rank = 0; rank < file.ranks.size(); ++rank) {
    root["ranks"].push_back(Json{{"rank", rank}, {"ssh", file.ranks[rank].ssh}, {"ips", file.ranks[rank].ips}});
  }
  root["pairs"] = Json::array();
  for (size_t a = 0; file.devices && a < file.ranks.size(); ++a) {
    for (size_t b = a + 1; b < file.ranks.size(); ++b) {
      if (const auto& devices = file.devices->cells[a][b]; !devices.empty()) {
        root["pairs"].push_back(
            Json{{"a", a}, {"b", b}, {"a_devices", devices}, {"b_devices", file.devices->cells[b][a]}});
      }
    }
  }
  root["jaccl"] = file.devices ? Json(jaccl_shape(*file.devices)) : Json(nullptr);
  if (!file.ring.ranks.empty()) {
    root["ring_order"] = file.ring.ranks;
  }
  root["warnings"] = file.warnings;
  fmt::print("{}\n", root.dump(2, ' ', false, Json::error_handler_t::replace));
}

/// `ringbolt hostfile --check`: reads a file of any of the four formats that it writes, or of the one that is given,
/// prints who is in it, which pairs have devices and what is probably wrong, for the given backend or else the file's.
/// kFoundProblem if something is. Throws base::Error if the file can't be read.
int check_hostfile(const HostfileOptions& options) {
  const std::string& path = options.checked_path;
  const std::string text = bootstrap::read_file(path, false);
  const MlxFormat format = options.format.empty() ? format_of(text) : parse_format(options.format);
  const auto file = judged(text, format, options.backend);
  if (!file) {
    base::say(fmt::format("ringbolt hostfile: {}: {}{}\n", path, file.error().text(),
                          options.format.empty() ? "" : fmt::format(" (read as --format {})", options.format)));
    return kFoundProblem;
  }
  if (options.is_json) {
    print_json(*file);
  } else {
    print_table(*file);
  }
  std::fflush(stdout);
  for (const std::string& line : file->warnings) {
    base::say(fmt::format("ringbolt hostfile: {}: {}\n", path, line));
  }
  return file->warnings.empty() ? kOk : kFoundProblem;
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

std::vector<std::string> hostfile_warnings(const std::string& text) {
  const auto file = judged(text, format_of(text), "");
  return file ? file->warnings : std::vector<std::string>{file.error().text()};
}

}  // namespace ringbolt::tools
