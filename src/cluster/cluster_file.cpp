#include "cluster/cluster_file.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json_reader.h"
#include "cluster/cabling.h"
#include "cluster/names.h"
#include "cluster/read_file.h"

namespace ringbolt::cluster {
namespace {

using base::check_fields;
using base::field;
using base::Json;
using base::JsonRefusal;
using base::list;
using base::number_of;
using base::parse_json;
using base::quote;
using base::stop;
using base::text_of;

constexpr int kMaxDepth = 6;  // {"nodes": [{"ports": [{"addresses": ["10.0.0.1/24"]}]}]}

/// Resolves "n1:rdma_en2" and "1:rdma_en2". Borrows the cluster, whose nodes must not change meanwhile.
class Directory {
 public:
  explicit Directory(const Cluster& cluster) : cluster_(cluster) {
    for (uint32_t node = 0; node < cluster.nodes.size(); ++node) {
      nodes_[cluster.nodes[node].name] = node;
    }
  }

  // Throws JsonRefusal (through stop()) that names `place`; never returns an end that is not there.
  CableEnd resolve(const std::string& end, const std::string& place) const {
    const size_t colon = end.find(':');
    if (colon == std::string::npos) {
      stop(place, fmt::format("{} is no NODE:PORT, as in \"n0:rdma_en2\"", quote(end)));
    }
    const uint32_t node = resolve_node(std::string_view(end).substr(0, colon), place);
    const std::string port = end.substr(colon + 1);
    const std::vector<Port>& ports = cluster_.nodes[node].ports;
    const auto found = std::ranges::find(ports, port, &Port::name);
    if (found == ports.end()) {
      stop(place,
           fmt::format("node {} has no port {} (it has {})", cluster_.nodes[node].name, quote(port), names_of(ports)));
    }
    return {node, static_cast<uint32_t>(found - ports.begin())};
  }

 private:
  // Throws JsonRefusal; what it returns is an index that is there.
  uint32_t resolve_node(std::string_view name, const std::string& place) const {
    const size_t n_nodes = cluster_.nodes.size();
    uint32_t node = 0;
    // A name of digits alone is a number: is_node_name() refuses those as names, so that nothing is ambiguous. A
    // number that overflows is out of range, not a name.
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

  static std::string names_of(const std::vector<Port>& ports) {
    std::string names;
    for (const Port& port : ports) {
      names += (names.empty() ? "" : ", ") + port.name;
    }
    return names.empty() ? "none" : names;
  }

  const Cluster& cluster_;
  std::map<std::string, uint32_t> nodes_;
};

// `place` is where the value stands, for messages, as in all functions here.
std::vector<IpAddress> read_addresses(const Json& value, const std::string& place) {
  std::vector<IpAddress> addresses;
  for (size_t index = 0; index < list(value, place, 0, kMaxAddressesPerPort).size(); ++index) {
    const std::string here = fmt::format("{}[{}]", place, index);
    const std::string& text = text_of(value[index], here);
    const std::optional<IpAddress> address = IpAddress::parse(text);
    // parse() takes an address without a prefix as one of full length, which joins no subnet: surely a mistake here.
    if (!address || text.find('/') == std::string::npos) {
      stop(here, fmt::format("{} is no address with a prefix, as in \"10.1.2.3/24\" or \"fd00::1/64\"", quote(text)));
    }
    addresses.push_back(*address);
  }
  return addresses;
}

/// A port is its name alone, or an object that also says what carries it.
Port read_port(const Json& value, const std::string& place) {
  const bool is_object = value.is_object();
  Port port;
  port.name = is_object ? text_of(field(value, place, "name"), place + ".name") : text_of(value, place);
  if (!is_device_name(port.name)) {
    stop(place, fmt::format("{} is not 1 to {} letters, digits or '_' beginning with a letter", quote(port.name),
                            kMaxNameBytes));
  }
  if (!is_object) {
    return port;
  }
  check_fields(value, place, {"name", "netdev", "addresses", "stream"});
  if (value.contains("netdev")) {
    port.netdev = text_of(value["netdev"], place + ".netdev");
    if (!is_netdev_name(port.netdev)) {
      stop(place + ".netdev", fmt::format("{} is not 1 to {} of [A-Za-z0-9_.-], or begins with . or -, or is \"lo\"",
                                          quote(port.netdev), kMaxNetdevBytes));
    }
  }
  if (value.contains("stream")) {
    port.stream = text_of(value["stream"], place + ".stream");
    if (!is_stream_text(port.stream) || !port.netdev.empty()) {
      stop(place + ".stream", fmt::format("{} is not 1 to {} printable letters without space, quotes and ;, or stands "
                                          "beside a netdev",
                                          quote(port.stream), kMaxStreamBytes));
    }
  }
  if (value.contains("addresses")) {
    port.addresses = read_addresses(value["addresses"], place + ".addresses");
  }
  return port;
}

Node read_node(const Json& value, const std::string& place) {
  check_fields(value, place, {"name", "host", "like", "ports"});
  Node node;
  node.name = text_of(field(value, place, "name"), place + ".name");
  if (!is_node_name(node.name)) {
    stop(place + ".name",
         fmt::format("{} is not 1 to {} of [A-Za-z0-9_.-], or is a number or \"local\", or begins with . or -",
                     quote(node.name), kMaxNameBytes));
  }
  if (value.contains("host")) {
    node.host = text_of(value["host"], place + ".host");
    if (!is_host(node.host)) {
      stop(place + ".host", fmt::format("{} is no host, USER@HOST or ssh://USER@HOST:PORT", quote(node.host)));
    }
  }
  if (value.contains("like")) {
    node.like = text_of(value["like"], place + ".like");
    if (!is_profile_text(node.like)) {
      stop(place + ".like", fmt::format("{} is not 1 to {} of [a-z0-9=,._-], as in \"apple,gid=2\"", quote(node.like),
                                        kMaxProfileBytes));
    }
  }
  const Json& ports = list(field(value, place, "ports"), place + ".ports", 0, kMaxPortsPerNode);
  for (size_t index = 0; index < ports.size(); ++index) {
    const std::string here = fmt::format("{}.ports[{}]", place, index);
    Port port = read_port(ports[index], here);
    // Quadratic in kMaxPortsPerNode at most: 250.
    for (const Port& other : node.ports) {
      if (other.name == port.name) {
        stop(here, fmt::format("port {} is named twice", port.name));
      }
      // Of one node alone: other machines have interfaces of the same name.
      if (!port.netdev.empty() && other.netdev == port.netdev) {
        stop(here + ".netdev", fmt::format("{} carries {} already", port.netdev, other.name));
      }
      if (!port.stream.empty() && other.stream == port.stream) {
        stop(here + ".stream", fmt::format("{} carries {} already", port.stream, other.name));
      }
    }
    node.ports.push_back(std::move(port));
  }
  return node;
}

// A node that is named twice would make "n0:rdma_en2" ambiguous.
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

/// The number that a plan has given a cable, different from those of the cables before it.
// Throws JsonRefusal. Cables without an id are told apart by their index.
uint32_t read_id(const Json& value, const std::string& place, const Cluster& cluster,
                 std::map<uint32_t, size_t>& numbered) {
  const uint32_t id = number_of(value, place, 0, kMaxCableId);
  if (const auto [other, is_new] = numbered.try_emplace(id, cluster.cables.size()); !is_new) {
    const Cable& cable = cluster.cables[other->second];
    stop(place, fmt::format("{} is the number of cables[{}] ({}-{}) already", id, other->second,
                            end_text(cluster, cable.a), end_text(cluster, cable.b)));
  }
  return id;
}

void read_cables(const Json& cables, Cluster& cluster) {
  // After read_nodes(): only cables are added from here on.
  const Directory directory(cluster);
  std::map<std::pair<uint32_t, uint32_t>, size_t> plugged;
  std::map<uint32_t, size_t> numbered;
  for (size_t index = 0; index < list(cables, "cables", 1, kMaxCables).size(); ++index) {
    const std::string place = fmt::format("cables[{}]", index);
    check_fields(cables[index], place, {"id", "between", "speed_gbps", "rate_mbps"});
    const Json& ends = list(field(cables[index], place, "between"), place + ".between", 2, 2);
    Cable cable;
    for (size_t side = 0; side < 2; ++side) {
      const std::string here = fmt::format("{}.between[{}]", place, side);
      const CableEnd end = directory.resolve(text_of(ends[side], here), here);
      // Index of the cable that is plugged in there already.
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
    if (cables[index].contains("rate_mbps")) {
      cable.rate_mbps = number_of(cables[index]["rate_mbps"], place + ".rate_mbps", 1, kMaxRateMbps);
    }
    if (cables[index].contains("id")) {
      cable.id = read_id(cables[index]["id"], place + ".id", cluster, numbered);
    }
    cluster.cables.push_back(cable);
  }
}

// The words of kind_text().
Kind kind_of(const std::string& text) {
  for (const Kind kind : {Kind::emulated, Kind::netns, Kind::hosts}) {
    if (text == kind_text(kind)) {
      return kind;
    }
  }
  // stop() doesn't return: it throws.
  stop("kind", fmt::format("{} is none of emulated, netns, hosts", quote(text)));
}

/// A cluster that has been made on interfaces says which; before that they may be left out.
void check_netdevs(const Cluster& cluster) {
  for (size_t index = 0; cluster.kind != Kind::emulated && index < cluster.cables.size(); ++index) {
    for (const CableEnd& end : {cluster.cables[index].a, cluster.cables[index].b}) {
      const Port& port = cluster.nodes[end.node].ports[end.port];
      if (port.netdev.empty() && (port.stream.empty() || cluster.kind != Kind::hosts)) {
        stop(fmt::format("cables[{}]", index),
             fmt::format("{} has no netdev, which kind {} needs", end_text(cluster, end), kind_text(cluster.kind)));
      }
    }
  }
}

// Throws JsonRefusal. Order matters: cables name nodes and ports.
Cluster read_cluster(std::string_view text) {
  // Before the parser sees it: what the parser allocates is bounded by this and by kMaxDepth.
  if (text.size() > kMaxClusterFileBytes) {
    stop("", fmt::format("{} bytes are more than a cluster file's {}", text.size(), kMaxClusterFileBytes));
  }
  const Json root = parse_json(text, kMaxDepth);
  check_fields(root, "", {"ringbolt", "name", "kind", "mtu", "management", "prefix", "overlay", "nodes", "cables"});
  // Least and most are this version: a file of a later one is refused rather than half understood.
  number_of(field(root, "", "ringbolt"), "ringbolt (the format's version)", kClusterFileVersion, kClusterFileVersion);
  Cluster cluster;
  if (root.contains("name")) {
    cluster.name = text_of(root["name"], "name");
    if (!is_cluster_name(cluster.name)) {
      stop("name", fmt::format("{} is not 1 to {} of [A-Za-z0-9_.-], or begins with . or -", quote(cluster.name),
                               kMaxNameBytes));
    }
  }
  if (root.contains("kind")) {
    cluster.kind = kind_of(text_of(root["kind"], "kind"));
  }
  if (root.contains("mtu")) {
    cluster.mtu = number_of(root["mtu"], "mtu", kMinMtu, kMaxMtu);
  }
  if (root.contains("management")) {
    if (!root["management"].is_boolean()) {
      stop("management", "must be true or false");
    }
    cluster.has_management = root["management"].get<bool>();
  }
  if (root.contains("prefix")) {
    cluster.prefix = text_of(root["prefix"], "prefix");
    if (!is_prefix(cluster.prefix)) {
      stop("prefix", fmt::format("{} is no absolute path of printable letters", quote(cluster.prefix)));
    }
  }
  if (root.contains("overlay")) {
    if (!root["overlay"].is_boolean()) {
      stop("overlay", "must be true or false");
    }
    cluster.has_overlay = root["overlay"].get<bool>();
  }
  read_nodes(field(root, "", "nodes"), cluster);
  read_cables(field(root, "", "cables"), cluster);
  // Last: it goes through ends, which read_cables() has made sure of.
  check_netdevs(cluster);
  return cluster;
}

}  // namespace

Parsed<Cluster> parse_cluster(std::string_view text) {
  try {
    return read_cluster(text);
    // Every refusal inside is one; nothing else is thrown but std::bad_alloc.
  } catch (JsonRefusal& refusal) {
    return tl::unexpected<ParseError>(std::move(refusal.error));
  }
}

Cluster load_cluster(const std::string& path) {
  Parsed<Cluster> cluster = parse_cluster(read_file(path, kMaxClusterFileBytes));
  if (!cluster) {
    throw base::Error(EINVAL, cluster.error().text(), path, "correct the file (its format: docs/cluster.md)");
  }
  return std::move(*cluster);
}

}  // namespace ringbolt::cluster
