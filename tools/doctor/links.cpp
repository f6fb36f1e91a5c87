// Which interfaces are joined by a cable: as a plan says, as who answers on them says, or as their subnets say.
#include <algorithm>
#include <map>

#include "doctor/facts.h"
#include "doctor/plan.h"

namespace ringbolt::tools::doctor {
namespace {

/// The interface that carries a port of the plan, by its name or by that of its device; null if it was not read.
const Netdev* netdev_of(const Facts& facts, const cluster::CableEnd& end) {
  const Host* host = facts.host_of_node(end.node);
  if (host == nullptr) {
    return nullptr;
  }
  const cluster::Port& port = facts.plan->nodes[end.node].ports[end.port];
  std::string name = port.netdev;
  if (const Device* device = host->device(port.name); name.empty() && device != nullptr) {
    name = device->netdev;
  }
  if (name.empty() && port.name.starts_with("rdma_")) {
    name = port.name.substr(5);
  }
  return host->netdev(name);
}

void add_planned(Facts& facts) {
  for (const cluster::Cable& cable : facts.plan->cables) {
    const Netdev* a = netdev_of(facts, cable.a);
    const Netdev* b = netdev_of(facts, cable.b);
    if (a != nullptr && b != nullptr && a != b) {
      facts.links.push_back({a, b, Link::Origin::planned, cable.rate_mbps != 0});
    }
  }
}

/// "64 bytes from fe80::1%en2: icmp_seq=1 ..."; other pings write "from fe80::1%en2, ...".
void add_sightings(Facts& facts) {
  std::map<std::string, const Netdev*> owners;  // of link-local addresses, of which every interface has its own
  for (const Host& host : facts.hosts) {
    for (const Netdev& netdev : host.netdevs) {
      for (const Address& one : netdev.addresses) {
        if (one.ip.is_link_local()) {
          owners.insert_or_assign(one.ip.text(), &netdev);
        }
      }
    }
  }
  for (const Host& host : facts.hosts) {
    for (const std::string_view line : lines_of(host.text("ping ff02::1"))) {
      const std::string_view from = word_after(line, "from");
      const size_t percent = std::min(from.find('%'), from.size());
      const auto ip = cluster::IpAddress::parse(from.substr(0, percent));
      const std::string_view place = from.substr(std::min(percent + 1, from.size()));
      const Netdev* netdev = host.netdev(place.substr(0, place.find_first_of(":,")));
      const auto owner = ip ? owners.find(ip->text()) : owners.end();
      const Netdev* who = owner == owners.end() ? nullptr : owner->second;
      if (ip && netdev != nullptr && netdev != who) {
        facts.sightings.push_back({netdev, ip->text(), who, std::string(line)});
      }
    }
  }
}

bool is_free(const Facts& facts, const Netdev* end) { return facts.link_at(*end) == nullptr; }

void add_seen(Facts& facts) {
  for (const Sighting& one : facts.sightings) {
    if (one.who != nullptr && one.who->host != one.at->host && is_free(facts, one.at) && is_free(facts, one.who)) {
      facts.links.push_back({one.at, one.who, Link::Origin::seen});
    }
  }
}

/// Two interfaces of two machines that are alone in an IPv4 subnet, none of them with a default route.
void add_by_subnet(Facts& facts) {
  std::vector<const Netdev*> places;
  for (const Host& host : facts.hosts) {
    for (const Netdev& netdev : host.netdevs) {
      if (netdev.ipv4() != nullptr && !netdev.has_default_route) {
        places.push_back(&netdev);
      }
    }
  }
  for (const Netdev* one : places) {
    const auto is_near = [&](const Netdev* other) {
      return other != one && other->ipv4()->ip.shares_subnet(one->ipv4()->ip);
    };
    const auto near = std::ranges::find_if(places, is_near);
    const bool is_alone = std::ranges::count_if(places, is_near) == 1 && (*near)->host != one->host;
    if (is_alone && is_free(facts, one) && is_free(facts, *near)) {
      facts.links.push_back({one, *near, Link::Origin::subnet});
    }
  }
}

/// So that checks of a single machine know what they are about.
void mark_cabled(Facts& facts) {
  for (Host& host : facts.hosts) {
    for (Netdev& netdev : host.netdevs) {
      const Device* device = host.device_on(netdev.name);
      const bool has_device = device != nullptr && (host.is_mac || !device->pci.empty());
      netdev.is_cabled =
          !facts.is_emulated && (!is_free(facts, &netdev) || has_device || netdev.driver.starts_with("thunderbolt"));
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
