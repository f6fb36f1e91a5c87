// What lies on the cables: bridges, MTU, addresses and their subnets.
#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "doctor/check.h"

namespace ringbolt::tools::doctor {
namespace {

std::string mtu_command(const Host& host, const std::string& netdev, uint64_t mtu) {
  return host.is_mac ? fmt::format("ifconfig {} mtu {}", netdev, mtu)
                     : fmt::format("ip link set {} mtu {}", netdev, mtu);
}

Finding& mtu_seen(Finding& found, const Host& host, const Netdev& netdev) {
  return host.is_mac ? found.seen(host, "ifconfig -a", line_with(host.text("ifconfig -a"), netdev.name + ": flags"))
                     : found.file(host, fmt::format("/sys/class/net/{}/mtu", netdev.name));
}

std::string address_source(const Host& host) { return host.is_mac ? "ifconfig -a" : "ip -o address"; }

void bridged_ports(Probe& probe) {
  probe.each_cabled([&](const Host& host, const Netdev& netdev) {
    probe.looked();
    // A bridge may stay where the port has an address of its own.
    if (netdev.master.empty() || netdev.ipv4() != nullptr) {
      return;
    }
    Finding& found =
        probe.found(host, netdev.name, fmt::format("it belongs to {}, and has no address of its own", netdev.master));
    if (host.is_mac) {
      found.seen(host, "ifconfig -a", fmt::format("{}: member: {}", netdev.master, netdev.name))
          .step(host, fmt::format("ifconfig {} deletem {}", netdev.master, netdev.name),
                fmt::format("ifconfig {} addm {}", netdev.master, netdev.name));
    } else {
      found.seen(host, fmt::format("/sys/class/net/{}/master", netdev.name), netdev.master)
          .step(host, fmt::format("ip link set {} nomaster", netdev.name),
                fmt::format("ip link set {} master {}", netdev.name, netdev.master));
    }
  });
}

/// The smaller one is the odd one, unless the plan says otherwise.
void differing_mtus(Probe& probe) {
  probe.each_link([&](const Link& link) {
    const Facts& facts = probe.facts;
    const Netdev& a = facts.netdev(link.a);
    const Netdev& b = facts.netdev(link.b);
    if (a.mtu == 0 || b.mtu == 0) {
      return;
    }
    probe.looked();
    if (a.mtu != b.mtu) {
      const bool is_a_odd = facts.plan && facts.plan->mtu != 0 ? a.mtu != facts.plan->mtu : a.mtu < b.mtu;
      const End& odd = is_a_odd ? link.a : link.b;
      const End& other = is_a_odd ? link.b : link.a;
      Finding& found = probe.found(facts.host(odd), facts.netdev(odd).name,
                                   fmt::format("its MTU is {}, that of {} at the other end {}", facts.netdev(odd).mtu,
                                               end_text(facts, other), facts.netdev(other).mtu));
      mtu_seen(found, facts.host(odd), facts.netdev(odd));
      mtu_seen(found, facts.host(other), facts.netdev(other))
          .step(facts.host(odd), mtu_command(facts.host(odd), facts.netdev(odd).name, facts.netdev(other).mtu),
                mtu_command(facts.host(odd), facts.netdev(odd).name, facts.netdev(odd).mtu));
    }
  });
}

void small_mtus(Probe& probe) {
  constexpr uint64_t kFastMbps = 20'000;
  constexpr uint64_t kLeast = 4200;  // a packet of 4096 bytes of RoCEv2 with its headers
  constexpr uint64_t kGood = 9000;
  probe.each_cabled([&](const Host& host, const Netdev& netdev) {
    if (netdev.mtu == 0 || netdev.speed_mbps < kFastMbps || !netdev.has_carrier.value_or(false)) {
      return;
    }
    probe.looked();
    if (netdev.mtu < kLeast) {
      Finding& found = probe.found(
          host, netdev.name, fmt::format("its MTU is {}: packets of RDMA hold 1024 bytes and not 4096", netdev.mtu));
      mtu_seen(found, host, netdev)
          .step(host, mtu_command(host, netdev.name, kGood), mtu_command(host, netdev.name, netdev.mtu))
          .advise("at both ends of the cable");
    }
  });
}

void default_routes(Probe& probe) {
  for (const Link& link : probe.facts.links) {
    for (const End& end : {link.a, link.b}) {
      const Host& host = probe.facts.host(end);
      const Netdev& netdev = probe.facts.netdev(end);
      probe.looked();
      if (netdev.has_default_route && link.origin == Link::Origin::planned) {
        std::string_view route;
        for (const std::string_view line : lines_of(host.text("ip route"))) {
          const bool is_it = line.starts_with("default") && contains(line, "dev " + netdev.name);
          route = is_it && route.empty() ? trimmed(line) : route;
        }
        Finding& found = probe.found(host, netdev.name, "the way to the rest of the world leads over this cable")
                             .seen(host, "ip route", route);
        const auto is_plain = [](char c) {
          return std::isalnum(static_cast<unsigned char>(c)) || contains(" .:/-_", {&c, 1});
        };
        if (!route.empty() && std::ranges::all_of(route, is_plain)) {
          found.step(host, fmt::format("ip route del {}", route), fmt::format("ip route add {}", route));
        }
      }
    }
  }
}

void missing_addresses(Probe& probe) {
  probe.each_link([&](const Link& link) {
    const Facts& facts = probe.facts;
    for (const auto& [end, other] : {std::pair(link.a, link.b), std::pair(link.b, link.a)}) {
      const Host& host = facts.host(end);
      const Netdev& netdev = facts.netdev(end);
      if (host.recording->find(host.name, address_source(host)) == nullptr) {
        continue;
      }
      probe.looked();
      const bool has_one =
          std::ranges::any_of(netdev.addresses, [](const Address& one) { return !one.ip.is_link_local(); });
      const bool is_wanted = link.origin == Link::Origin::planned || facts.netdev(other).ipv4() != nullptr;
      if (has_one || !netdev.master.empty() || !is_wanted) {
        continue;
      }
      Finding& found = probe.found(host, netdev.name, "no address lies on it")
                           .seen(host, address_source(host), fmt::format("{}: no inet line", netdev.name));
      if (const Address* peer = facts.netdev(other).ipv4(); peer != nullptr && !host.is_mac) {
        cluster::IpAddress own = peer->ip;  // the other one of a pair
        own.bytes[15] = static_cast<uint8_t>(own.bytes[15] % 4 == 1 ? own.bytes[15] + 1 : own.bytes[15] - 1);
        found.seen(facts.host(other), address_source(facts.host(other)), peer->line)
            .step(host, fmt::format("ip address add {} dev {}", own.text_with_prefix(), netdev.name),
                  fmt::format("ip address del {} dev {}", own.text_with_prefix(), netdev.name));
      } else {
        found.advise("`ringbolt plan` has an address for each end of each cable");
      }
    }
  });
}

struct Place {
  const Host* host;
  const Netdev* netdev;
  const Address* address;
};

std::vector<Place> ipv4_places(const Facts& facts, bool only_cabled) {
  std::vector<Place> places;
  for (const Host& host : facts.hosts) {
    for (const Netdev& netdev : host.netdevs) {
      for (const Address& one : netdev.addresses) {
        if (one.ip.is_ipv4() && (!only_cabled || netdev.is_cabled)) {
          places.push_back({&host, &netdev, &one});
        }
      }
    }
  }
  return places;
}

void twice_used(Probe& probe) {
  const std::vector<Place> places = ipv4_places(probe.facts, true);
  for (size_t i = 0; i < places.size(); ++i) {
    probe.looked();
    for (size_t j = 0; j < i; ++j) {
      const Place& one = places[i];
      const Place& first = places[j];
      if (one.address->ip.bytes == first.address->ip.bytes) {
        probe
            .found(*one.host, one.netdev->name,
                   fmt::format("{} is its address and that of {}:{}", one.address->ip.text(), first.host->name,
                               first.netdev->name))
            .seen(*one.host, address_source(*one.host), one.address->line)
            .seen(*first.host, address_source(*first.host), first.address->line)
            .advise("give one of them another address; `ringbolt plan` has some");
      }
    }
  }
}

void differing_subnets(Probe& probe) {
  probe.each_link([&](const Link& link) {
    const Facts& facts = probe.facts;
    const Address* a = facts.netdev(link.a).ipv4();
    const Address* b = facts.netdev(link.b).ipv4();
    if (a == nullptr || b == nullptr) {
      return;
    }
    probe.looked();
    const auto shares = [](const Address* one, const Netdev& netdev) {
      return std::ranges::any_of(netdev.addresses,
                                 [&](const Address& other) { return one->ip.shares_subnet(other.ip); });
    };
    if (!shares(a, facts.netdev(link.b)) && !shares(b, facts.netdev(link.a))) {
      probe
          .found(facts.host(link.a), facts.netdev(link.a).name,
                 fmt::format("its address {} and {} of {}, at the other end, are in different subnets",
                             a->ip.text_with_prefix(), b->ip.text_with_prefix(), end_text(facts, link.b)))
          .seen(facts.host(link.a), address_source(facts.host(link.a)), a->line)
          .seen(facts.host(link.b), address_source(facts.host(link.b)), b->line)
          .advise("give both ends addresses of one subnet, which no other cable has");
    } else if (a->ip.prefix_bits != b->ip.prefix_bits) {
      probe
          .found(facts.host(link.a), facts.netdev(link.a).name,
                 fmt::format("its subnet is a /{}, that of {} a /{}", a->ip.prefix_bits, end_text(facts, link.b),
                             b->ip.prefix_bits))
          .seen(facts.host(link.a), address_source(facts.host(link.a)), a->line)
          .seen(facts.host(link.b), address_source(facts.host(link.b)), b->line)
          .advise("give both ends the same prefix length");
    }
  });
}

/// Two interfaces of a machine in one subnet, at least one of them at a cable.
void shared_subnets(Probe& probe) {
  const std::vector<Place> places = ipv4_places(probe.facts, false);
  for (size_t i = 0; i < places.size(); ++i) {
    const Place& one = places[i];
    if (!one.netdev->is_cabled) {
      continue;
    }
    probe.looked();
    for (size_t j = 0; j < places.size(); ++j) {
      const Place& other = places[j];
      const bool is_told_there = other.netdev->is_cabled && j > i;
      if (one.host == other.host && one.netdev != other.netdev && !is_told_there &&
          !other.address->ip.is_link_local() && one.address->ip.shares_subnet(other.address->ip) &&
          one.address->ip.bytes != other.address->ip.bytes) {
        probe
            .found(
                *one.host, one.netdev->name,
                fmt::format("it and {} are in one subnet, {}", other.netdev->name, one.address->ip.text_with_prefix()))
            .seen(*one.host, address_source(*one.host), one.address->line)
            .seen(*other.host, address_source(*other.host), other.address->line)
            .advise(
                "give each cable a subnet of its own; `ringbolt plan` has one for each. Each also answers ARP for the "
                "other "
                "unless net.ipv4.conf.all.arp_ignore is 1");
      }
    }
  }
}

bool is_automatic(const cluster::IpAddress& ip) { return ip.is_ipv4() && (ip.ipv4() >> 16U) == 0xa9feU; }

void automatic_addresses(Probe& probe) {
  for (const Place& one : ipv4_places(probe.facts, true)) {
    probe.looked();
    if (is_automatic(one.address->ip)) {
      probe
          .found(*one.host, one.netdev->name,
                 fmt::format("its address {} was made up by itself", one.address->ip.text()))
          .seen(*one.host, address_source(*one.host), one.address->line)
          .advise("give each cable a subnet of its own; `ringbolt plan` has one for each");
    }
  }
}

void duplicate_addresses(Probe& probe) {
  probe.each_cabled([&](const Host& host, const Netdev& netdev) {
    for (const Address& one : netdev.addresses) {
      probe.looked();
      if (one.is_duplicate) {
        Finding& found =
            probe.found(host, netdev.name, fmt::format("{} is somebody else's, too: it is not used", one.ip.text()))
                .seen(host, address_source(host), one.line);
        if (!host.is_mac) {
          found.step(host, fmt::format("ip address del {} dev {}", one.ip.text_with_prefix(), netdev.name),
                     fmt::format("ip address add {} dev {}", one.ip.text_with_prefix(), netdev.name));
        }
      }
    }
  });
}

constexpr Check kLinkChecks[] = {
    {"bridge-owns-port", Severity::error, Platform::all, "a port belongs to a bridge and has no address of its own",
     "its GID has no IPv4: the change to RTR fails with EINVAL, and a ring through bridges is a storm",
     "interfaces|ifconfig -a", bridged_ports},
    {"mtu-differs", Severity::error, Platform::all, "the ends of a cable have different MTUs",
     "what is longer than the smaller one never arrives, without an error", "interfaces|ifconfig -a", differing_mtus},
    {"mtu-small", Severity::warning, Platform::all, "a fast cable has a small MTU",
     "the path MTU of RDMA is 1024, and every byte costs four times the packets", "interfaces|ifconfig -a", small_mtus},
    {"default-route-on-cable", Severity::warning, Platform::linux, "the default route leads over a cable",
     "everything goes over it that should not, and installing or ssh stops when it is pulled", "ip route",
     default_routes},
};

constexpr Check kAddressChecks[] = {
    {"address-missing", Severity::error, Platform::all, "an end of a cable has no IPv4 address",
     "its RDMA port has no IPv4 GID, and nobody can connect to it", "ip -o address|ifconfig -a", missing_addresses},
    {"address-twice", Severity::error, Platform::all, "two ports have one address",
     "whoever asks for it gets the one or the other", "ip -o address|ifconfig -a", twice_used},
    {"subnets-differ", Severity::error, Platform::all, "the ends of a cable are in different subnets",
     "the change to RTR fails with ETIMEDOUT: the peer's GID is not on this cable", "ip -o address|ifconfig -a",
     differing_subnets},
    {"subnet-shared", Severity::error, Platform::all, "two interfaces of a machine are in one subnet",
     "the kernel sends by the first one: traffic takes the wrong cable", "ip -o address|ifconfig -a", shared_subnets},
    {"address-duplicate", Severity::warning, Platform::all, "the kernel found an address in use elsewhere",
     "it is not used, and its GID is missing", "ip -o address|ifconfig -a", duplicate_addresses},
    {"address-automatic", Severity::warning, Platform::all, "a cable has addresses of 169.254.0.0/16",
     "all cables are then one subnet to NCCL and to the kernel, and addresses change", "ip -o address|ifconfig -a",
     automatic_addresses},
};

}  // namespace

std::span<const Check> link_checks() { return kLinkChecks; }
std::span<const Check> address_checks() { return kAddressChecks; }

}  // namespace ringbolt::tools::doctor
