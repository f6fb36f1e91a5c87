#include "cluster/cluster_file.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cluster/names.h"
#include "cluster/read_file.h"

namespace ringbolt::cluster {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMaxDepth = 5;  // {"nodes": [{"ports": ["rdma_en2"]}]} has 4
constexpr uint64_t kFormatVersion = 1;

/// Refusal inside this file only: parse_cluster() turns it into a ParseError.
struct Refusal {
  ParseError error;
};

[[noreturn]] void stop(const std::string& place, const std::string& problem, size_t line = 0) {
  throw Refusal{{line, place.empty() ? problem : place + ": " + problem}};
}

/// A part of somebody's text that is safe to print.
std::string quote(std::string_view text) {
  constexpr size_t kMostBytes = 40;
  std::string safe = "\"";
  for (const char c : text.substr(0, kMostBytes)) {
    safe += c >= ' ' && c <= '~' ? c : '?';
  }
  return safe + (text.size() > kMostBytes ? "...\"" : "\"");
}

/// Watches the parse: depth, and keys that occur twice in one object (the last would win silently).
class Watch {
 public:
  bool operator()(int depth, Json::parse_event_t event, const Json& value) {
    using Event = Json::parse_event_t;
    if (event == Event::object_start || event == Event::array_start) {
      if (depth >= kMaxDepth) {
        stop("", fmt::format("nested deeper than {} levels", kMaxDepth));
      }
      keys_.resize(static_cast<size_t>(depth) + 2);
      keys_.back().clear();
    } else if (event == Event::key) {
      const std::string& key = value.get_ref<const std::string&>();
      if (!keys_[std::min(static_cast<size_t>(depth), keys_.size() - 1)].insert(key).second) {
        stop("", fmt::format("field {} occurs twice", quote(key)));
      }
    }
    return true;
  }

 private:
  std::vector<std::set<std::string>> keys_ = std::vector<std::set<std::string>>(1);
};

Json parse_json(std::string_view text) {
  try {
    return Json::parse(text.begin(), text.end(),
                       [watch = Watch{}](int depth, Json::parse_event_t event, Json& value) mutable {
                         return watch(depth, event, value);
                       });
  } catch (const Json::parse_error& error) {
    const size_t byte = std::min(error.byte, text.size());
    const auto newlines = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(byte), '\n');
    stop("", fmt::format("no JSON at byte {}", byte), static_cast<size_t>(newlines) + 1);
  } catch (const Json::exception&) {
    stop("", "no JSON that can be held (a number out of range?)");
  }
}

void check_fields(const Json& object, const std::string& place, std::initializer_list<std::string_view> known) {
  if (!object.is_object()) {
    stop(place, "is no object");
  }
  for (const auto& [key, value] : object.items()) {
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      stop(place, fmt::format("unknown field {}; known are {}", quote(key), fmt::join(known, ", ")));
    }
  }
}

const Json& field(const Json& object, const std::string& place, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) {
    stop(place, fmt::format("field \"{}\" is missing", key));
  }
  return *found;
}

const Json& list(const Json& value, const std::string& place, size_t least, size_t most) {
  if (!value.is_array() || value.size() < least || value.size() > most) {
    stop(place, fmt::format("is no list of {} to {} entries", least, most));
  }
  return value;
}

const std::string& text_of(const Json& value, const std::string& place) {
  if (!value.is_string()) {
    stop(place, "is no text");
  }
  return value.get_ref<const std::string&>();
}

uint32_t number_of(const Json& value, const std::string& place, uint32_t least, uint32_t most) {
  if (!value.is_number_unsigned() || value.get<uint64_t>() < least || value.get<uint64_t>() > most) {
    stop(place, fmt::format("is no whole number from {} to {}", least, most));
  }
  return value.get<uint32_t>();
}

/// Resolves "n1:rdma_en2" and "1:rdma_en2".
class Directory {
 public:
  explicit Directory(const Cluster& cluster) : cluster_(cluster) {
    for (uint32_t node = 0; node < cluster.nodes.size(); ++node) {
      nodes_[cluster.nodes[node].name] = node;
    }
  }

  CableEnd resolve(const std::string& end, const std::string& place) const {
    const size_t colon = end.find(':');
    if (colon == std::string::npos) {
      stop(place, fmt::format("{} is no NODE:PORT, as in \"n0:rdma_en2\"", quote(end)));
    }
    const uint32_t node = resolve_node(std::string_view(end).substr(0, colon), place);
    const std::string port = end.substr(colon + 1);
    const std::vector<std::string>& ports = cluster_.nodes[node].ports;
    const auto found = std::find(ports.begin(), ports.end(), port);
    if (found == ports.end()) {
      stop(place, fmt::format("node {} has no port {} (it has {})", cluster_.nodes[node].name, quote(port),
                              ports.empty() ? "none" : fmt::format("{}", fmt::join(ports, ", "))));
    }
    return {node, static_cast<uint32_t>(found - ports.begin())};
  }

 private:
  uint32_t resolve_node(std::string_view name, const std::string& place) const {
    const size_t n_nodes = cluster_.nodes.size();
    uint32_t node = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), node);
    const bool is_number = !name.empty() && end == name.data() + name.size() &&
                           std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (is_number) {
      if (error != std::errc{} || node >= n_nodes) {
        stop(place, fmt::format("node {} is out of range (the nodes are 0 to {})", quote(name), n_nodes - 1));
      }
      return node;
    }
    const auto found = nodes_.find(std::string(name));
    if (found == nodes_.end()) {
      stop(place, fmt::format("there is no node {} among the {}", quote(name), n_nodes));
    }
    return found->second;
  }

  const Cluster& cluster_;
  std::map<std::string, uint32_t> nodes_;
};

Node read_node(const Json& value, const std::string& place) {
  check_fields(value, place, {"name", "ports"});
  Node node;
  node.name = text_of(field(value, place, "name"), place + ".name");
  if (!is_node_name(node.name)) {
    stop(place + ".name",
         fmt::format("{} is not 1 to {} of [A-Za-z0-9_.-], or is a number or \"local\", or begins with . or -",
                     quote(node.name), kMaxNameBytes));
  }
  const Json& ports = list(field(value, place, "ports"), place + ".ports", 0, kMaxPortsPerNode);
  for (size_t index = 0; index < ports.size(); ++index) {
    const std::string here = fmt::format("{}.ports[{}]", place, index);
    const std::string& port = text_of(ports[index], here);
    if (!is_device_name(port)) {
      stop(here,
           fmt::format("{} is not 1 to {} letters, digits or '_' beginning with a letter", quote(port), kMaxNameBytes));
    }
    if (std::find(node.ports.begin(), node.ports.end(), port) != node.ports.end()) {
      stop(here, fmt::format("port {} is named twice", port));
    }
    node.ports.push_back(port);
  }
  return node;
}

void read_nodes(const Json& nodes, Cluster& cluster) {
  std::set<std::string> names;
  for (size_t index = 0; index < list(nodes, "nodes", 1, kMaxNodes).size(); ++index) {
    const std::string place = fmt::format("nodes[{}]", index);
    cluster.nodes.push_back(read_node(nodes[index], place));
    if (!names.insert(cluster.nodes.back().name).second) {
      stop(place + ".name", fmt::format("node {} is named twice", cluster.nodes.back().name));
    }
  }
}

void read_cables(const Json& cables, Cluster& cluster) {
  const Directory directory(cluster);
  std::map<std::pair<uint32_t, uint32_t>, size_t> plugged;
  for (size_t index = 0; index < list(cables, "cables", 1, kMaxCables).size(); ++index) {
    const std::string place = fmt::format("cables[{}]", index);
    check_fields(cables[index], place, {"between", "speed_gbps"});
    const Json& ends = list(field(cables[index], place, "between"), place + ".between", 2, 2);
    Cable cable;
    for (size_t side = 0; side < 2; ++side) {
      const std::string here = fmt::format("{}.between[{}]", place, side);
      const CableEnd end = directory.resolve(text_of(ends[side], here), here);
      const auto [other, is_free] = plugged.try_emplace({end.node, end.port}, index);
      // Both ends in one port: a loopback plug.
      if (!is_free && other->second != index) {
        stop(here, fmt::format("{} has cable {} already", end_text(cluster, end), other->second));
      }
      (side == 0 ? cable.a : cable.b) = end;
    }
    if (cables[index].contains("speed_gbps")) {
      cable.speed_gbps = number_of(cables[index]["speed_gbps"], place + ".speed_gbps", 1, kMaxSpeedGbps);
    }
    cluster.cables.push_back(cable);
  }
}

Cluster read_cluster(std::string_view text) {
  if (text.size() > kMaxClusterFileBytes) {
    stop("", fmt::format("{} bytes are more than a cluster file's {}", text.size(), kMaxClusterFileBytes));
  }
  const Json root = parse_json(text);
  check_fields(root, "", {"ringbolt", "name", "nodes", "cables"});
  number_of(field(root, "", "ringbolt"), "ringbolt (the format's version)", kFormatVersion, kFormatVersion);
  Cluster cluster;
  if (root.contains("name")) {
    cluster.name = text_of(root["name"], "name");
    if (!is_cluster_name(cluster.name)) {
      stop("name", fmt::format("{} is not 1 to {} of [A-Za-z0-9_.-], or begins with . or -", quote(cluster.name),
                               kMaxNameBytes));
    }
  }
  read_nodes(field(root, "", "nodes"), cluster);
  read_cables(field(root, "", "cables"), cluster);
  return cluster;
}

}  // namespace

Parsed<Cluster> parse_cluster(std::string_view text) {
  try {
    return read_cluster(text);
  } catch (Refusal& refusal) {
    return tl::unexpected<ParseError>(std::move(refusal.error));
  }
}

std::string emit_cluster(const Cluster& cluster) {
  Json root;
  root["ringbolt"] = kFormatVersion;
  if (!cluster.name.empty()) {
    root["name"] = cluster.name;
  }
  root["nodes"] = Json::array();
  for (const Node& node : cluster.nodes) {
    root["nodes"].push_back(Json{{"name", node.name}, {"ports", node.ports}});
  }
  root["cables"] = Json::array();
  for (const Cable& cable : cluster.cables) {
    root["cables"].push_back(
        Json{{"between", {end_text(cluster, cable.a), end_text(cluster, cable.b)}}, {"speed_gbps", cable.speed_gbps}});
  }
  return root.dump(2) + "\n";
}

Cluster load_cluster(const std::string& path) {
  Parsed<Cluster> cluster = parse_cluster(read_file(path, kMaxClusterFileBytes));
  if (!cluster) {
    throw base::Error(EINVAL, cluster.error().text(), path, "correct the file (its format: docs/cluster.md)");
  }
  return std::move(*cluster);
}

}  // namespace ringbolt::cluster
