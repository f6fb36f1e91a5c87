#include "device/port.h"

#include <unistd.h>
#include <algorithm>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/variables.h"
#include "cluster/address.h"
#include "cluster/names.h"
#include "cluster/node_file.h"
#include "cluster/runtime_dir.h"
#include "device/gid_table.h"
#include "device/gids.h"
#include "device/netdev.h"
#include "device/overlay.h"
#include "device/packet_sizes.h"
#include "device/route.h"
#include "device/shuffle_source.h"
#include "device/stream_specs.h"
#include "fault/look.h"
#include "profile/catalogue.h"

namespace ringbolt::device {
namespace {

constexpr uint64_t kDefaultGuid = 0x0252420000000001U;
constexpr uint32_t kLoopbackAddress = 0x7f000001U;
constexpr uint32_t kDefaultSpeedGbps = 100;

bool holds(const std::vector<ibv_gid>& gids, const ibv_gid& gid) { return Port::index_of(gids, gid) != gids.size(); }

uint32_t node_from_environment(const char* text) {
  uint32_t node = 0;
  const char* end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, node);
  if (error != std::errc() || stop != end) {
    throw base::Error(EINVAL, "read the node number", std::string("RINGBOLT_NODE=") + text,
                      "give a number from 0, as `ringbolt env NODE` prints it");
  }
  return node;
}

/// RINGBOLT_LIKE, else what the cluster says of the node, else the device as it is.
profile::Profile wanted_profile(const std::string& of_node) {
  const char* own = std::getenv("RINGBOLT_LIKE");
  const std::string text = own != nullptr && *own != '\0' ? own : of_node;
  if (text.empty()) {
    return {};
  }
  auto parsed = profile::parse_profile(text);
  if (!parsed) {
    throw base::Error(EINVAL, "choose whom the device is like: " + parsed.error().problem, "RINGBOLT_LIKE=" + text,
                      "docs/profiles.md lists them");
  }
  return std::move(*parsed);
}

/// Gives a port whose addresses are known the face of its profile, and its files, whose names begin with `stem`.
void take_profile(Port& port, const profile::Profile& profile, const std::string& stem) {
  port.profile = profile;
  std::vector<ibv_gid> shown = port.known_gids;
  const bool has_second =
      profile.look.gids == profile::GidLayout::apple || profile.look.gids == profile::GidLayout::late;
  if (!port.is_on_network() && !has_second) {
    shown.pop_back();
  }
  port.live_gids = std::make_shared<LiveGids>(GidTables{port.known_gids, arranged(profile.look.gids, shown)});
  port.ledger = std::make_shared<Ledger>(stem + port.name + ".ledger", profile.knobs.leaks_until_reboot);
  port.counter_path = stem + port.name + cluster::RuntimeDir::kCounterSuffix;
}

using Ports = std::vector<std::shared_ptr<const Port>>;

Ports default_port(const cluster::RuntimeDir& runtime) {
  auto fabric = std::make_shared<Fabric>();
  fabric->slots_directory = runtime.make_default_slots();
  fabric->faults.own = faults_from_environment();
  auto port = std::make_shared<Port>();
  port->name = "rdma_lo";
  port->guid = kDefaultGuid;
  port->known_gids = memory_gids(kDefaultGuid, kLoopbackAddress);
  port->speed_gbps = kDefaultSpeedGbps;
  port->fabric = std::move(fabric);
  take_profile(*port, wanted_profile(""), runtime.default_dir() + "/");
  return {port};
}

/// So that one machine without a cable can try the network's side of a program.
bool loops_through_network() {
  const char* value = std::getenv("RINGBOLT_LOOPBACK");
  if (value == nullptr || std::strcmp(value, "memory") == 0) {
    return false;
  }
  if (std::strcmp(value, "network") != 0) {
    throw base::Error(EINVAL, "choose how ports reach themselves", std::string("RINGBOLT_LOOPBACK=") + value,
                      "say memory (the default) or network");
  }
  return true;
}

/// An interface that is down may have lost its addresses; its port is there all the same.
std::vector<ibv_gid> or_made_up(const std::vector<ibv_gid>& gids, uint64_t guid) {
  return gids.empty() ? std::vector{link_local_gid(guid)} : gids;
}

void take_netdev(Port& port, const Netdev& netdev) {
  port.known_gids = or_made_up(netdev.gids, port.guid);
  port.netdev_index = netdev.index;
  port.mtu = path_mtu_of(netdev.mtu_bytes);
  port.live->interface_is_down.store(!netdev.is_up, std::memory_order_relaxed);
}

std::shared_ptr<Port> port_of(const Netdev& netdev, const std::shared_ptr<Fabric>& fabric) {
  if (netdev.gids.empty()) {
    throw base::Error(EADDRNOTAVAIL, "make a device of the network interface", netdev.name,
                      "give it an address, or bring it up so that it gets its link-local one");
  }
  auto port = std::make_shared<Port>();
  port->name = "rdma_" + netdev.name;
  port->guid = netdev.guid;
  port->speed_gbps = kDefaultSpeedGbps;
  take_netdev(*port, netdev);
  port->fabric = fabric;
  return port;
}

Ports netdev_ports(const cluster::RuntimeDir& runtime, const char* list) {
  auto fabric = std::make_shared<Fabric>();
  fabric->slots_directory = runtime.make_network_slots();
  fabric->has_interfaces = true;
  fabric->faults.own = faults_from_environment();
  fabric->loops_through_network = loops_through_network();
  const profile::Profile profile = wanted_profile("");
  Ports ports;
  for (const std::string& name : netdev_names(list)) {
    auto port = port_of(read_netdev(name), fabric);
    take_profile(*port, profile, fabric->slots_directory + "/");
    port->index = static_cast<uint32_t>(ports.size());
    ports.push_back(std::move(port));
  }
  return ports;
}

void take_streams(Port& port, std::vector<std::string> rails, uint64_t outage_ns, uint32_t ipv4) {
  port.known_gids = {link_local_gid(port.guid), mapped_gid(ipv4)};
  port.netdev_index = kFirstStreamInterface + port.index;
  port.streams = std::move(rails);
  port.stream_outage_ns = outage_ns;
}

Ports stream_ports(const cluster::RuntimeDir& runtime, const char* text) {
  auto fabric = std::make_shared<Fabric>();
  fabric->slots_directory = runtime.make_default_slots();
  fabric->has_streams = true;
  fabric->loops_through_network = loops_through_network();
  fabric->faults.own = faults_from_environment();
  for (const fault::Rule& rule : fabric->faults.own.rules) {
    if (fault::subject_of(rule.kind) == fault::Subject::frame) {
      throw base::Error(EOPNOTSUPP, "set faults of frames", "RINGBOLT_FAULTS",
                        "a stream loses nothing: unset it, or take a port on a network (RINGBOLT_NETDEVS)");
    }
  }
  const profile::Profile profile = wanted_profile("");
  Ports ports;
  for (const StreamSpec& spec : parse_stream_specs(text)) {
    auto port = std::make_shared<Port>();
    port->name = "rdma_" + spec.name;
    port->index = static_cast<uint32_t>(ports.size());
    port->guid = stream_guid(spec);
    port->speed_gbps = kDefaultSpeedGbps;
    take_streams(*port, spec.rails, spec.outage_ns, stream_ipv4(port->guid));
    port->fabric = fabric;
    take_profile(*port, profile, fabric->slots_directory + "/");
    ports.push_back(std::move(port));
  }
  return ports;
}

/// The software device as it is, whatever the cables' devices are like: no machine has such a one.
std::shared_ptr<Port> overlay_port(const cluster::RuntimeDir& runtime, const cluster::NodeSpec& spec, uint32_t index,
                                   const std::shared_ptr<Fabric>& fabric) {
  auto port = std::make_shared<Port>();
  port->name = cluster::kOverlayDevice;
  port->index = index;
  port->guid = cluster::overlay_guid(spec.node);
  take_streams(*port, {"unix:" + runtime.overlay_socket(spec.cluster, spec.node)}, kDefaultOutageNs,
               cluster::overlay_ipv4(spec.node));
  port->is_overlay = true;
  port->cable = spec.n_cables;  // none
  port->peer_node = spec.node;
  port->speed_gbps = kDefaultSpeedGbps;
  port->fabric = fabric;
  take_profile(*port, wanted_profile(""), runtime.cluster(spec.cluster) + "/" + std::to_string(spec.node) + "-");
  return port;
}

Ports cluster_ports(const cluster::RuntimeDir& runtime, const char* name, const char* node) {
  if (name == nullptr || node == nullptr) {
    throw base::Error(EINVAL, "choose the node",
                      name == nullptr ? "RINGBOLT_CLUSTER is not set" : "RINGBOLT_NODE is not set",
                      "set both, as `ringbolt env NODE` prints them, or neither for the default device");
  }
  if (!cluster::is_cluster_name(name)) {
    throw base::Error(EINVAL, "open the cluster", std::string("RINGBOLT_CLUSTER=") + name,
                      "give the name of a cluster that `ringbolt status` lists");
  }
  const uint32_t number = node_from_environment(node);
  const bool is_up = ::access(runtime.cluster(name).c_str(), F_OK) == 0 || errno != ENOENT;
  if (!is_up || (::access(runtime.node_file(name, number).c_str(), F_OK) != 0 && errno == ENOENT)) {
    throw base::Error(ENOENT, is_up ? "find the node" : "open the cluster",
                      is_up ? std::string("RINGBOLT_NODE=") + node : std::string("RINGBOLT_CLUSTER=") + name,
                      fmt::format("{}; ringbolt status lists what is up; to be outside clusters unset RINGBOLT_CLUSTER "
                                  "and RINGBOLT_NODE",
                                  is_up ? fmt::format("cluster \"{}\" has no such node", name)
                                        : fmt::format("no cluster of this name is up in {}", runtime.root())));
  }
  const cluster::NodeSpec spec = cluster::load_node(runtime.node_file(name, number));
  auto fabric = std::make_shared<Fabric>();
  fabric->slots_directory = spec.is_apart() ? runtime.node_slots(name, spec.node) : runtime.cluster_slots(name);
  fabric->has_streams = spec.has_streams() || spec.n_overlay_nodes != 0;
  fabric->has_interfaces = spec.has_netdevs();
  fabric->control = cluster::ControlPage::open(runtime.control(name));
  fabric->cluster = name;
  fabric->faults = {faults_from_environment(), runtime.fault_file(name), spec.node};
  const profile::Profile profile = wanted_profile(spec.like);
  Ports ports;
  for (const cluster::PortSpec& wanted : spec.ports) {
    auto port = std::make_shared<Port>();
    port->name = wanted.device;
    port->index = static_cast<uint32_t>(ports.size());
    port->guid = wanted.guid;
    if (!wanted.stream.empty()) {
      take_streams(*port, rails_of(wanted.stream), kDefaultOutageNs, wanted.ipv4);
    } else if (wanted.netdev.empty()) {
      port->known_gids = memory_gids(wanted.guid, wanted.ipv4);
      port->peer_gids = memory_gids(wanted.peer_guid, wanted.peer_ipv4);
      port->peer_counter_path = runtime.counter_file(name, wanted.peer_node, wanted.peer_device);
    } else {
      take_netdev(*port, read_netdev(wanted.netdev));
    }
    port->cable = wanted.cable;
    port->peer_node = wanted.peer_node;
    port->speed_gbps = wanted.speed_gbps;
    port->fabric = fabric;
    take_profile(*port, profile, runtime.cluster(name) + "/" + std::to_string(spec.node) + "-");
    ports.push_back(std::move(port));
  }
  if (spec.n_overlay_nodes != 0) {
    ports.push_back(overlay_port(runtime, spec, static_cast<uint32_t>(ports.size()), fabric));
  }
  return ports;
}

/// All ports at streams have such addresses.
bool is_of_streams(const ibv_gid& gid) {
  return is_ipv4(gid) ? gid.raw[12] == 169 && gid.raw[13] == 254 : gid.raw[0] == 0xfe && (gid.raw[1] & 0xc0U) == 0x80;
}

}  // namespace

bool Port::reaches(const ibv_gid& gid) const {
  if (!streams.empty()) {
    return is_overlay ? overlay_place(address_of(gid)).has_value()
                      : is_of_streams(gid);  // which of them is at the other end shows when it speaks
  }
  if (is_on_network()) {
    const bool speaks_family =
        std::ranges::any_of(addresses()->known, [&](const ibv_gid& own) { return is_ipv4(own) == is_ipv4(gid); });
    return owns(gid) || (speaks_family && plug() == cable && has_route(gid, netdev_index));
  }
  return holds(plugged_gids(), gid) || owns(gid);
}

size_t Port::index_of(const std::vector<ibv_gid>& gids, const ibv_gid& gid) {
  if (is_zero(gid)) {
    return gids.size();
  }
  const auto found = std::ranges::find_if(
      gids, [&](const ibv_gid& one) { return std::memcmp(one.raw, gid.raw, sizeof gid.raw) == 0; });
  return static_cast<size_t>(found - gids.begin());
}

bool Port::owns(const ibv_gid& gid) const { return holds(addresses()->known, gid); }

void Port::look_at_addresses(bool has_news) const try {
  if (has_news && is_on_network() && streams.empty()) {
    live->interface_is_down.store(!is_interface_up(netdev_index), std::memory_order_relaxed);
    live_gids->find(profile.look.gids, or_made_up(read_gids(netdev_index), guid), profile.look.gid_table_length);
  }
  live_gids->hide(address_away());
} catch (const std::exception&) {
  // What can't be read just now is no evidence: the table stays as it was.
}

namespace {

/// What faults make of the names and GID tables.
Ports disguised(const Ports& ports) {
  std::string complaint;  // whoever looks at the faults next says it
  const fault::Plan plan = ports.front()->fabric->faults.read(complaint);
  std::vector<fault::Place> places;
  for (const auto& port : ports) {
    places.push_back(place_of(*port));
  }
  const std::vector<std::string> names = fault::device_names(plan, places);
  Ports shown;
  for (size_t i = 0; i < ports.size(); ++i) {
    auto port = std::make_shared<Port>(*ports[i]);
    port->name = names[i];
    const auto usual = ports[i]->addresses();
    std::vector<ibv_gid> gids;
    for (const size_t index : fault::gid_order(plan, places[i], usual->shown.size())) {
      gids.push_back(usual->shown[index]);
    }
    port->live_gids = std::make_shared<LiveGids>(GidTables{port->known_gids, std::move(gids)});
    shown.push_back(std::move(port));
  }
  return shown;
}

}  // namespace

std::vector<std::shared_ptr<const Port>> list_ports() {
  base::say_odd_variables();
  const char* name = std::getenv("RINGBOLT_CLUSTER");
  const char* node = std::getenv("RINGBOLT_NODE");
  const char* netdevs = std::getenv("RINGBOLT_NETDEVS");
  const char* streams = std::getenv("RINGBOLT_STREAMS");
  const auto runtime = cluster::RuntimeDir::from_environment();
  Ports ports = name != nullptr || node != nullptr ? cluster_ports(runtime, name, node)
                : netdevs != nullptr               ? netdev_ports(runtime, netdevs)
                : streams != nullptr               ? stream_ports(runtime, streams)
                                                   : default_port(runtime);
  if (!ports.empty()) {
    check_faults(ports.front()->fabric->faults.own, ports);
    if (const auto shuffle = shuffle_from_environment()) {
      ports.front()->fabric->verb_faults.set_shuffle(*shuffle);
    }
    ports.front()->fabric->verb_faults.look();
    if (ports.front()->fabric->verb_faults.has(fault::Subject::look)) {
      ports = disguised(ports);
    }
  }
  std::erase_if(ports, [](const auto& port) { return !port->profile.look.has_devices; });
  return ports;
}

}  // namespace ringbolt::device
