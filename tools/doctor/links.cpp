// Which interfaces are joined by a cable: as a plan says, as who answers on them says, or as their subnets say.
#include <algorithm>
#include <map>

#include "bootstrap/mlx_hostfile.h"
#include "cluster/cluster_file.h"
#include "doctor/facts.h"
#include "doctor/plan.h"

namespace ringbolt::tools::doctor {
namespace {

/// The interface that carries a port of the plan, by its name or by that of its device.
std::optional<End> end_of(const Facts& facts, const cluster::CableEnd& end) {
  const Host* host = facts.host_of_node(end.node);
  if (host == nullptr) {
    return std::nullopt;
  }
  const cluster::Port& port = facts.plan->nodes[end.node].ports[end.port];
  std::string name = port.netdev;
  if (const Device* device = host->device(port.name); name.empty() && device != nullptr) {
    name = device->netdev;
  }
  if (name.empty() && port.name.starts_with("rdma_")) {
    name = port.name.substr(5);
  }
  for (size_t i = 0; i < host->netdevs.size(); ++i) {
    if (host->netdevs[i].name == name) {
      return End{static_cast<size_t>(host - facts.hosts.data()), i};
    }
  }
  return std::nullopt;
}

bool is_in_link(const Facts& facts, const End& end) {
  return std::ranges::any_of(facts.links, [&](const Link& one) { return one.a == end || one.b == end; });
}

void add_planned(Facts& facts) {
  for (const cluster::Cable& cable : facts.plan->cables) {
    const auto a = end_of(facts, cable.a);
    const auto b = end_of(facts, cable.b);
    if (a && b && *a != *b) {
      facts.links.push_back({*a, *b, Link::Origin::planned, cable.speed_gbps, cable.rate_mbps != 0});
    }
  }
}

/// "64 bytes from fe80::1%en2: icmp_seq=1 ..."; other pings write "from fe80::1%en2, ...".
void add_sightings(Facts& facts) {
  std::map<std::string, End> owners;  // of link-local addresses, of which every interface has its own
  for (size_t h = 0; h < facts.hosts.size(); ++h) {
    for (size_t i = 0; i < facts.hosts[h].netdevs.size(); ++i) {
      for (const Address& one : facts.hosts[h].netdevs[i].addresses) {
        if (one.ip.is_link_local()) {
          owners.insert_or_assign(one.ip.text(), End{h, i});
        }
      }
    }
  }
  for (size_t h = 0; h < facts.hosts.size(); ++h) {
    for (const std::string_view line : lines_of(facts.hosts[h].text("ping ff02::1"))) {
      const auto words = words_of(line);
      const auto from = std::ranges::find(words, "from");
      if (from == words.end() || from + 1 == words.end()) {
        continue;
      }
      const size_t percent = from[1].find('%');
      const auto ip = cluster::IpAddress::parse(from[1].substr(0, percent));
      if (!ip || percent == std::string_view::npos) {
        continue;
      }
      const std::string_view rest = from[1].substr(percent + 1);
      const std::string_view name = rest.substr(0, rest.find_first_of(":,"));
      const auto& netdevs = facts.hosts[h].netdevs;
      const auto netdev = std::ranges::find(netdevs, name, &Netdev::name);
      if (netdev == netdevs.end()) {
        continue;
      }
      Sighting sighting{{h, static_cast<size_t>(netdev - netdevs.begin())}, ip->text(), {}, std::string(line)};
      if (const auto owner = owners.find(ip->text()); owner != owners.end()) {
        sighting.who = owner->second;
      }
      if (!sighting.who || *sighting.who != sighting.at) {
        facts.sightings.push_back(std::move(sighting));
      }
    }
  }
}

void add_seen(Facts& facts) {
  for (const Sighting& one : facts.sightings) {
    if (one.who && one.who->host != one.at.host && !is_in_link(facts, one.at) && !is_in_link(facts, *one.who)) {
      facts.links.push_back({one.at, *one.who, Link::Origin::seen});
    }
  }
}

/// Two interfaces of two machines that are alone in an IPv4 subnet, none of them with a default route.
void add_by_subnet(Facts& facts) {
  struct Candidate {
    End end;
    const cluster::IpAddress* ip;
  };
  std::vector<Candidate> places;
  for (size_t h = 0; h < facts.hosts.size(); ++h) {
    for (size_t i = 0; i < facts.hosts[h].netdevs.size(); ++i) {
      const Netdev& netdev = facts.hosts[h].netdevs[i];
      if (const Address* address = netdev.ipv4(); address != nullptr && !netdev.has_default_route) {
        places.push_back({{h, i}, &address->ip});
      }
    }
  }
  for (const Candidate& one : places) {
    const auto is_near = [&](const Candidate& other) {
      return other.end != one.end && other.ip->shares_subnet(*one.ip);
    };
    const auto near = std::ranges::find_if(places, is_near);
    if (near == places.end() || std::ranges::count_if(places, is_near) != 1 || near->end.host == one.end.host ||
        is_in_link(facts, one.end) || is_in_link(facts, near->end)) {
      continue;
    }
    facts.links.push_back({one.end, near->end, Link::Origin::subnet});
  }
}

/// So that checks of a single machine know what they are about.
void mark_cabled(Facts& facts) {
  for (const Link& one : facts.links) {
    facts.hosts[one.a.host].netdevs[one.a.netdev].is_cabled = true;
    facts.hosts[one.b.host].netdevs[one.b.netdev].is_cabled = true;
  }
  for (Host& host : facts.hosts) {
    for (Netdev& netdev : host.netdevs) {
      const Device* device = host.device_on(netdev.name);
      const bool has_device = device != nullptr && (host.is_mac || !device->pci.empty());
      netdev.is_cabled = netdev.is_cabled || has_device || netdev.driver.starts_with("thunderbolt");
      netdev.is_cabled = netdev.is_cabled && !facts.is_emulated;
    }
  }
}

}  // namespace

void find_links(Facts& facts) {
  for (const Reading& one : facts.recording.readings) {
    if (one.host == kNoHost && (one.source.starts_with("cluster") || one.source.starts_with("hostfile"))) {
      facts.plan = planned_cluster(one.text);
      facts.plan_source = one.source;
      facts.is_emulated = facts.plan && one.source == "cluster" && facts.plan->kind == cluster::Kind::emulated;
    }
  }
  if (!facts.is_emulated) {
    if (facts.plan) {
      add_planned(facts);
    }
    add_sightings(facts);
    add_seen(facts);
    if (!facts.plan || facts.plan->cables.empty()) {
      add_by_subnet(facts);
    }
  }
  mark_cabled(facts);
}

}  // namespace ringbolt::tools::doctor
