#include "cluster/cabling.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "cluster/names.h"

namespace ringbolt::cluster {
namespace {

/// An interface by its place.
struct Place {
  uint32_t host = 0;
  uint32_t interface = 0;
  friend auto operator<=>(const Place&, const Place&) = default;
};

/// Link-local addresses don't count: all interfaces of the world share fe80::/64.
bool shares_subnet(const Interface& a, const Interface& b) {
  return std::ranges::any_of(a.addresses, [&](const IpAddress& one) {
    return !one.is_link_local() &&
           std::ranges::any_of(b.addresses, [&](const IpAddress& other) { return one.shares_subnet(other); });
  });
}

std::string interfaces_text(const HostInterfaces& host) {
  std::string text;
  for (const Interface& one : host.interfaces) {
    text += (text.empty() ? "" : ", ") + one.name;
    for (const IpAddress& address : one.addresses) {
      text += " " + address.text_with_prefix();
    }
    text += one.has_default_route ? " (default route)" : "";
  }
  return text.empty() ? "no interfaces" : text;
}

/// "root@mac1.local" -> "mac1"; "" if nothing of it makes a name. Takes apart USER@HOST, HOST:PORT and
/// ssh://USER@HOST:PORT; not an address, of which the part before the first dot or colon says nothing.
std::string short_name(std::string_view host) {
  if (const size_t scheme = host.find("://"); scheme != std::string_view::npos) {
    host.remove_prefix(scheme + 3);
  }
  if (const size_t at = host.rfind('@'); at != std::string_view::npos) {
    host.remove_prefix(at + 1);
  }
  if (host.find(':') != host.rfind(':') || IpAddress::parse(host)) {
    return "";  // an address
  }
  host = host.substr(0, host.find(':'));
  if (IpAddress::parse(host)) {
    return "";
  }
  // The first label of a domain name; two hosts with one label get numbers in nodes_of().
  const std::string name(host.substr(0, host.find('.')).substr(0, kMaxNameBytes));
  return is_node_name(name) ? name : "";
}

/// "rdma_en2"; what no device may be called becomes '_'.
std::string device_of(const std::string& netdev) {
  std::string name = "rdma_" + netdev;
  std::ranges::replace_if(
      name, [](char c) { return !is_device_name(std::string("x") + c); }, '_');
  return name.substr(0, kMaxNameBytes);
}

/// Likewise, where the node has other ports: "a.b" and "a_b" would be one device.
std::string device_beside(const std::vector<Port>& ports, const std::string& netdev) {
  std::string name = device_of(netdev);
  for (unsigned number = 2; std::ranges::find(ports, name, &Port::name) != ports.end(); ++number) {
    const std::string suffix = fmt::format("_{}", number);
    name = device_of(netdev).substr(0, kMaxNameBytes - suffix.size()) + suffix;
  }
  return name;
}

/// Adds a port to the node of that host; ports are numbered in the order of the cables that are found.
CableEnd plug(Cluster& cluster, const std::vector<HostInterfaces>& hosts, const Place& place) {
  std::vector<Port>& ports = cluster.nodes[place.host].ports;
  const std::string& netdev = hosts[place.host].interfaces[place.interface].name;
  ports.push_back({device_beside(ports, netdev), netdev});
  return {place.host, static_cast<uint32_t>(ports.size() - 1)};
}

/// Interfaces that may be an end of a cable, each with the others that it shares a subnet with.
std::map<Place, std::vector<Place>> neighbours(const std::vector<HostInterfaces>& hosts) {
  std::vector<Place> places;
  for (uint32_t host = 0; host < hosts.size(); ++host) {
    for (uint32_t index = 0; index < hosts[host].interfaces.size(); ++index) {
      const Interface& one = hosts[host].interfaces[index];
      if (!one.has_default_route && is_netdev_name(one.name)) {
        places.push_back({host, index});
      }
    }
  }
  std::map<Place, std::vector<Place>> found;
  // Quadratic, and each pair compares addresses: places are tens, not thousands.
  for (const Place& a : places) {
    for (const Place& b : places) {
      if (a != b && shares_subnet(hosts[a.host].interfaces[a.interface], hosts[b.host].interfaces[b.interface])) {
        found[a].push_back(b);
      }
    }
  }
  return found;
}

// Into `host`: valid as long as that is unchanged.
const Interface* find_interface(const HostInterfaces& host, const std::string& name) {
  const auto found = std::ranges::find(host.interfaces, name, &Interface::name);
  return found == host.interfaces.end() ? nullptr : &*found;
}

/// A process is at streams or on a network, not both; so is a cable.
std::string problem_of_streams(const Cluster& cluster) {
  std::vector<std::optional<CableEnd>> first(cluster.nodes.size());
  for (const Cable& cable : cluster.cables) {
    const auto is_at_stream = [&](const CableEnd& end) {
      return !cluster.nodes[end.node].ports[end.port].stream.empty();
    };
    if (is_at_stream(cable.a) != is_at_stream(cable.b) || (is_at_stream(cable.a) && cable.a == cable.b)) {
      return fmt::format("{} and {} are not both at streams, or are one port: give each a \"stream\" of its own",
                         end_text(cluster, cable.a), end_text(cluster, cable.b));
    }
    for (const CableEnd& end : {cable.a, cable.b}) {
      if (first[end.node] && is_at_stream(*first[end.node]) != is_at_stream(end)) {
        return fmt::format(
            "{} and {} are at a stream and on an interface: a machine's ports are all at streams, or none is",
            end_text(cluster, *first[end.node]), end_text(cluster, end));
      }
      first[end.node] = first[end.node].value_or(end);
    }
  }
  return "";
}

std::string problem_of_end(const Cluster& cluster, const CableEnd& end, const HostInterfaces& host) {
  const Port& port = cluster.nodes[end.node].ports[end.port];
  if (port.netdev.empty()) {
    return fmt::format(
        "{} names no interface: write {{\"name\": \"{}\", \"netdev\": \"...\"}} (or \"stream\"); {} has {}",
        end_text(cluster, end), port.name, host.host, interfaces_text(host));
  }
  const Interface* found = find_interface(host, port.netdev);
  if (found == nullptr) {
    return fmt::format("{} has no interface {} for {}; it has {}", host.host, port.netdev, end_text(cluster, end),
                       interfaces_text(host));
  }
  return found->addresses.empty()
             ? fmt::format("interface {} of {} has no address; bring it up", port.netdev, host.host)
             : "";
}

}  // namespace

std::vector<Node> nodes_of(const std::vector<std::string>& hosts) {
  std::vector<Node> nodes;
  std::set<std::string> taken;
  // All names first: "n1" is a host's own before it is anybody's number.
  for (const std::string& host : hosts) {
    Node node;
    node.host = host;
    node.name = short_name(host);
    if (!node.name.empty() && !taken.insert(node.name).second) {
      node.name.clear();
    }
    nodes.push_back(std::move(node));
  }
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (size_t number = i; nodes[i].name.empty(); ++number) {
      std::string name = fmt::format("n{}", number);
      if (taken.insert(name).second) {
        nodes[i].name = std::move(name);
      }
    }
  }
  return nodes;
}

Parsed<Cluster> find_cables(const std::vector<HostInterfaces>& hosts) {
  Cluster cluster;
  std::vector<std::string> names;
  std::ranges::transform(hosts, std::back_inserter(names), &HostInterfaces::host);
  cluster.nodes = nodes_of(names);
  const std::map<Place, std::vector<Place>> found = neighbours(hosts);
  for (const auto& [place, others] : found) {
    // Alone together: with a third there is a switch, and within one host it is no cable to another. `place <
    // others.front()`: each pair is met twice, and makes one cable.
    if (others.size() == 1 && found.at(others.front()).size() == 1 && place < others.front() &&
        place.host != others.front().host) {
      const CableEnd a = plug(cluster, hosts, place);
      cluster.cables.push_back({a, plug(cluster, hosts, others.front())});
    }
  }
  for (uint32_t node = 0; node < hosts.size(); ++node) {
    if (cluster.nodes[node].ports.empty()) {
      return refuse(0,
                    fmt::format("found no cable of {} (it has {}): give every cable a subnet of its own, or describe "
                                "the cables in a cluster file",
                                hosts[node].host, interfaces_text(hosts[node])));
    }
  }
  return cluster;
}

Parsed<Cluster> with_found_addresses(Cluster cluster, const std::vector<HostInterfaces>& hosts) {
  if (std::string problem = problem_of_streams(cluster); !problem.empty()) {
    return refuse(0, std::move(problem));
  }
  for (uint32_t index = 0; index < cluster.cables.size(); ++index) {
    const Cable& cable = cluster.cables[index];
    // Of streams there are no addresses; problem_of_streams() has seen to it that both ends are at one.
    if (!cluster.nodes[cable.a.node].ports[cable.a.port].stream.empty()) {
      continue;
    }
    for (const CableEnd& end : {cable.a, cable.b}) {
      if (std::string problem = problem_of_end(cluster, end, hosts[end.node]); !problem.empty()) {
        return refuse(0, std::move(problem));
      }
      Port& port = cluster.nodes[end.node].ports[end.port];
      port.addresses = find_interface(hosts[end.node], port.netdev)->addresses;
      port.addresses.resize(std::min(port.addresses.size(), kMaxAddressesPerPort));
    }
    if (address_across(cluster, index, cable.a).empty()) {
      return refuse(0, fmt::format("{} and {} have no subnet in common; give both an address in one",
                                   end_text(cluster, cable.a), end_text(cluster, cable.b)));
    }
  }
  cluster.kind = Kind::hosts;
  return cluster;
}

std::string address_across(const Cluster& cluster, uint32_t cable, const CableEnd& from) {
  const CableEnd& to = cluster.cables[cable].a == from ? cluster.cables[cable].b : cluster.cables[cable].a;
  const Port& here = cluster.nodes[from.node].ports[from.port];
  const Port& there = cluster.nodes[to.node].ports[to.port];
  // Rank 3 is worse than any. The zone of a link-local address is the interface here, on which it is reached.
  std::string best;
  unsigned best_rank = 3;
  for (const IpAddress& address : there.addresses) {
    const unsigned rank = address.is_ipv4() ? 0U : address.is_link_local() ? 2U : 1U;
    const bool is_reached =
        std::ranges::any_of(here.addresses, [&](const IpAddress& own) { return own.shares_subnet(address); });
    if (is_reached && rank < best_rank) {
      best_rank = rank;
      best = address.text() + (address.is_link_local() ? "%" + here.netdev : "");
    }
  }
  return best;
}

// No space, quote, '$', ';', '&', '|', '<', '>', '*', '?', '~', '#', '!' nor backslash; [ ] and % are for addresses
// of IPv6.
bool is_host(std::string_view text) {
  return !text.empty() && text.size() <= kMaxHostBytes && text.front() != '-' && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("._-:@%[]/").find(c) != std::string_view::npos;
  });
}

}  // namespace ringbolt::cluster
