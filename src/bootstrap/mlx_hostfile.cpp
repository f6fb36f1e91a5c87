#include "bootstrap/mlx_hostfile.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "bootstrap/mlx_json.h"

namespace ringbolt::bootstrap {
namespace {

using base::Json;

// Nesting is bounded before the tree is built: the parser recurses.
constexpr int kMaxDepth = 5;  // {"hosts": [{"rdma": [["rdma_en2"]]}]}
// Bounds on what a file of a stranger makes this hold; far beyond what MLX writes.
constexpr size_t kMaxWordBytes = 255;
constexpr size_t kMaxAddresses = 64;
constexpr size_t kMaxEnvs = 256;
constexpr size_t kMaxEnvBytes = 4096;

// Printable: what it says is shown to people.
std::string env_of(const Json& value, const std::string& place) {
  const std::string& text = base::text_of(value, place);
  const size_t equals = text.find('=');
  const bool is_printable =
      std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) >= ' '; });
  if (equals == std::string::npos || equals == 0 || text.size() > kMaxEnvBytes || !is_printable) {
    base::stop(place, fmt::format("{} is no NAME=VALUE", base::quote(text)));
  }
  return text;
}

MlxHost host_of(const Json& value, const std::string& place, size_t n_hosts) {
  base::check_fields(value, place, {"ssh", "ips", "rdma"});
  MlxHost host;
  host.ssh = word_of(base::field(value, place, "ssh"), place + ".ssh", kMaxWordBytes);
  if (value.contains("ips")) {
    const std::string ips = place + ".ips";
    for (const Json& ip : base::list(value["ips"], ips, 0, kMaxAddresses)) {
      host.ips.push_back(word_of(ip, fmt::format("{}[{}]", ips, host.ips.size()), kMaxWordBytes));
    }
  }
  if (value.contains("rdma")) {
    const std::string rdma = place + ".rdma";
    // MLX itself writes an empty row for hosts without devices: as none.
    if (!base::list(value["rdma"], rdma, 0, kMaxMlxRanks).empty()) {
      auto& cells = host.rdma.emplace();
      // A cell for each host: the rows together are a square table. The cell of the host itself is there too;
      // problem_of() sees to it that it is empty.
      for (const Json& cell : base::list(value["rdma"], rdma, n_hosts, n_hosts)) {
        cells.push_back(cell_of(cell, fmt::format("{}[{}]", rdma, cells.size())));
      }
    }
  }
  return host;
}

bool is_jaccl(std::string_view backend) { return backend == "jaccl" || backend == "jaccl-ring"; }

void check_rdma(const MlxHostfile& file) {
  const auto has_rdma = [](const MlxHost& host) { return host.rdma.has_value(); };
  const auto n_with = std::count_if(file.hosts.begin(), file.hosts.end(), has_rdma);
  // Backends other than JACCL use no devices, and one host has nobody to reach.
  if (n_with == 0 && (!is_jaccl(file.backend) || file.hosts.size() == 1)) {
    return;
  }
  const auto without = std::find_if_not(file.hosts.begin(), file.hosts.end(), has_rdma);
  if (without != file.hosts.end()) {
    base::stop(fmt::format("hosts[{}]", without - file.hosts.begin()),
               n_with == 0
                   ? fmt::format("field \"rdma\" is missing or empty, and backend \"{}\" needs it", file.backend)
                   : "field \"rdma\" is missing or empty, and other hosts have it");
  }
  // All hosts have a row here, so that devices() has a value.
  if (std::string problem = problem_of(*file.devices(), "hosts[{}].rdma[{}]"); !problem.empty()) {
    base::stop("", problem);
  }
}

MlxHostfile hostfile_of(const Json& json) {
  MlxHostfile file;
  file.is_object = json.is_object();
  if (file.is_object) {
    base::check_fields(json, "the file", {"backend", "envs", "hosts"});
    if (json.contains("backend") && json["backend"] != "") {  // as MLX writes it when nobody has said
      file.backend = word_of(json["backend"], "backend", kMaxWordBytes);
    }
    if (json.contains("envs")) {
      for (const Json& env : base::list(json["envs"], "envs", 0, kMaxEnvs)) {
        file.envs.push_back(env_of(env, fmt::format("envs[{}]", file.envs.size())));
      }
    }
  }
  // MLX reads both forms, an object and a bare list of hosts.
  const Json& hosts = file.is_object ? base::field(json, "the file", "hosts") : json;
  for (const Json& host : base::list(hosts, "hosts", 1, kMaxMlxRanks)) {
    file.hosts.push_back(host_of(host, fmt::format("hosts[{}]", file.hosts.size()), hosts.size()));
  }
  check_rdma(file);
  return file;
}

Json host_json(const MlxHost& host) {
  Json json{{"ssh", host.ssh}};
  if (!host.ips.empty()) {
    json["ips"] = host.ips;
  }
  if (host.rdma) {
    json["rdma"] = Json::array();
    for (const auto& cell : *host.rdma) {
      json["rdma"].push_back(to_json(cell));
    }
  }
  return json;
}

/// A list with an entry per line, as people keep it.
std::string lines_of(const Json& list, const std::string& indent) {
  std::string text;
  for (const Json& entry : list) {
    text += fmt::format("{}\n{}{}", text.empty() ? "" : ",", indent, entry.dump());
  }
  return "[" + text + "\n" + indent.substr(std::min<size_t>(indent.size(), 2)) + "]";
}

template <class T, class Read>
// Bounded in bytes before it is parsed. Refusals inside are exceptions of base::stop(), caught here and nowhere else.
base::Parsed<T> read(std::string_view text, int max_depth, Read of) {
  if (text.size() > kMaxMlxFileBytes) {
    return base::refuse(0, fmt::format("is longer than {} bytes", kMaxMlxFileBytes));
  }
  try {
    return of(base::parse_json(text, max_depth));
  } catch (base::JsonRefusal& refusal) {
    return tl::unexpected(std::move(refusal.error));
  }
}

MlxRingfile ringfile_of(const Json& json) {
  MlxRingfile file;
  for (const Json& row : base::list(json, "the file", 1, kMaxMlxRanks)) {
    const std::string place = fmt::format("[{}]", file.ranks.size());
    // Stays valid: no row is added while this one is filled.
    auto& addresses = file.ranks.emplace_back();
    for (const Json& entry : base::list(row, place, 1, kMaxAddresses)) {
      const std::string at = fmt::format("{}[{}]", place, addresses.size());
      const std::string& text = word_of(entry, at, kMaxWordBytes);
      const auto address = parse_host_port(text);
      if (!address) {
        base::stop(at, fmt::format("{} {}", base::quote(text), address.error().problem));
      }
      addresses.push_back(*address);
    }
  }
  return file;
}

}  // namespace

std::optional<HostPort> MlxHostfile::coordinator() const {
  if (hosts.empty() || hosts[0].ips.empty()) {
    return std::nullopt;
  }
  // MLX's convention: rank 0 is the coordinator, at its first address.
  return HostPort{hosts[0].ips[0], kMlxCoordinatorPort};
}

std::optional<JacclDevices> MlxHostfile::devices() const {
  JacclDevices devices;
  for (const MlxHost& host : hosts) {
    if (!host.rdma) {
      return std::nullopt;
    }
    devices.cells.push_back(*host.rdma);
  }
  return devices;
}

base::Parsed<MlxHostfile> parse_mlx_hostfile(std::string_view text) {
  return read<MlxHostfile>(text, kMaxDepth, hostfile_of);
}

std::string to_text(const MlxHostfile& file) {
  Json hosts = Json::array();
  for (const MlxHost& host : file.hosts) {
    hosts.push_back(host_json(host));
  }
  if (!file.is_object) {
    return lines_of(hosts, "  ") + "\n";
  }
  return fmt::format("{{\n  \"backend\": {},\n  \"envs\": {},\n  \"hosts\": {}\n}}\n", Json(file.backend).dump(),
                     Json(file.envs).dump(), lines_of(hosts, "    "));
}

base::Parsed<MlxRingfile> parse_mlx_ringfile(std::string_view text) {
  // [["10.0.0.1:5000"]]
  constexpr int kRingDepth = 2;
  return read<MlxRingfile>(text, kRingDepth, ringfile_of);
}

std::string to_text(const MlxRingfile& file) {
  Json rows = Json::array();
  for (const auto& addresses : file.ranks) {
    Json row = Json::array();
    for (const HostPort& address : addresses) {
      row.push_back(to_text(address));
    }
    rows.push_back(std::move(row));
  }
  return lines_of(rows, "  ") + "\n";
}

}  // namespace ringbolt::bootstrap
