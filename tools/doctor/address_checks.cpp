// What lies on the cables: bridges, MTU, addresses and their subnets.
#include <algorithm>
#include <cctype>

#include "doctor/check.h"

namespace ringbolt::tools::doctor {
namespace {

/// The smaller one is the odd one, unless the plan says otherwise.
void differing_mtus(Probe& at, const Link& link) {
  const bool is_planned = at.facts.plan && at.facts.plan->mtu != 0;
  const bool is_a_odd = is_planned ? link.a->mtu != at.facts.plan->mtu : link.a->mtu < link.b->mtu;
  const Netdev& odd = is_a_odd ? *link.a : *link.b;
  const Netdev& other = link.other(odd);
  at.given(odd.mtu != 0 && other.mtu != 0)
      .judge(odd.mtu != other.mtu, odd, "its MTU is {}, that of {} at the other end {}", odd.mtu, end_text(other),
             other.mtu)
      .seen(odd.file("mtu"))
      .seen(other.file("mtu"))
      .set_port(odd, fmt::format("mtu {}", other.mtu), fmt::format("mtu {}", odd.mtu));
}

void default_route(Probe& at, const Netdev& port, bool is_planned) {
  std::string_view route;
  for (const std::string_view line : lines_of(port.host->text("ip route"))) {
    const bool is_it = line.starts_with("default") && word_after(line, "dev") == port.name;
    route = is_it && route.empty() ? trimmed(line) : route;
  }
  const Judgement told =
      at.judge(port.has_default_route && is_planned, port, "the way to the rest of the world leads over this cable")
          .seen("ip route", route);
  const auto is_plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || contains(" .:/-_", {&c, 1});
  };
  if (!route.empty() && std::ranges::all_of(route, is_plain)) {
    told.step("ip route del {0}", "ip route add {0}", route);
  }
}

void missing_address(Probe& at, const Link& link, const Netdev& port) {
  const Netdev& other = link.other(port);
  const char* source = port.host->is_mac ? "ifconfig -a" : "ip -o address";
  const bool has_one = std::ranges::any_of(port.addresses, [](const Address& one) { return !one.ip.is_link_local(); });
  const Address* peer = other.ipv4();
  const bool is_wanted = port.master.empty() && (link.origin == Link::Origin::planned || peer != nullptr);
  const Judgement told = at.given(port.host->was_asked(source))
                             .judge(!has_one && is_wanted, port, "no address lies on it")
                             .seen(source, fmt::format("{}: no inet line", port.name));
  if (peer != nullptr && !port.host->is_mac) {
    cluster::IpAddress own = peer->ip;  // the other one of a pair
    own.bytes[15] = static_cast<uint8_t>(own.bytes[15] % 4 == 1 ? own.bytes[15] + 1 : own.bytes[15] - 1);
    told.seen(peer->value())
        .step("ip address add {0} dev {1}", "ip address del {0} dev {1}", own.text_with_prefix(), port.name);
  } else {
    told.advise("`ringbolt plan` has an address for each end of each cable");
  }
}

void differing_subnets(Probe& at, const Link& link) {
  const Address* a = link.a->ipv4();
  const Address* b = link.b->ipv4();
  if (a == nullptr || b == nullptr) {
    return;
  }
  const auto is_apart = [](const Address* one, const Netdev& port) {
    return std::ranges::none_of(port.addresses, [&](const Address& own) { return one->ip.shares_subnet(own.ip); });
  };
  const bool are_apart = is_apart(a, *link.b) && is_apart(b, *link.a);
  const std::string message =
      are_apart ? fmt::format("its address {} and {} of {}, at the other end, are in different subnets",
                              a->ip.text_with_prefix(), b->ip.text_with_prefix(), end_text(*link.b))
                : fmt::format("its subnet is a /{}, that of {} a /{}", a->ip.prefix_bits, end_text(*link.b),
                              b->ip.prefix_bits);
  at.judge(are_apart || a->ip.prefix_bits != b->ip.prefix_bits, *link.a, "{}", message)
      .seen(a->value())
      .seen(b->value())
      .advise("give both ends {}",
              are_apart ? "addresses of one subnet, which no other cable has" : "the same prefix length");
}

/// IPv4 addresses on cables.
std::vector<const Address*> cabled_addresses(const Facts& facts) {
  auto found = facts.ipv4_addresses;
  std::erase_if(found, [](const Address* one) { return !one->port->is_cabled; });
  return found;
}

void twice_used(Probe& at) {
  const auto all = cabled_addresses(at.facts);
  for (size_t i = 0; i < all.size(); ++i) {
    at.looked();
    for (size_t j = 0; j < i; ++j) {
      at.judge(all[i]->ip.bytes == all[j]->ip.bytes, *all[i]->port, "{} is its address and that of {}",
               all[i]->ip.text(), end_text(*all[j]->port))
          .seen(all[i]->value())
          .seen(all[j]->value())
          .advise("give one of them another address; `ringbolt plan` has some");
    }
  }
}

/// Two interfaces of a machine in one subnet, at least one of them at a cable. Of two cables the later one is told.
void shared_subnets(Probe& at) {
  for (const Address* one : cabled_addresses(at.facts)) {
    bool is_later = false;
    for (const Address* other : at.facts.ipv4_addresses) {
      is_later = is_later || other == one;
      const bool is_told_there = other->port->is_cabled && is_later;
      const bool is_near = one->port->host == other->port->host && one->port != other->port && !is_told_there;
      const bool is_shared = !other->ip.is_link_local() && one->ip.shares_subnet(other->ip);
      at.judge(is_near && is_shared && one->ip.bytes != other->ip.bytes, *one->port, "it and {} are in one subnet, {}",
               other->port->name, one->ip.text_with_prefix())
          .seen(one->value())
          .seen(other->value())
          .advise(
              "give each cable a subnet of its own; `ringbolt plan` has one for each. Each also answers ARP for the "
              "other unless net.ipv4.conf.all.arp_ignore is 1");
    }
  }
}

constexpr Check kAddressChecks[] = {
    {"bridge-owns-port", kError, kAll, "a port belongs to a bridge and has no address of its own",
     "its GID has no IPv4: the change to RTR fails with EINVAL, and a ring through bridges is a storm", kPortSources,
     [](Probe& at, const Netdev& port) {
       const Judgement told = at.judge(!port.master.empty() && port.ipv4() == nullptr, port,
                                       "it belongs to {}, and has no address of its own", port.master);
       if (port.host->is_mac) {
         told.seen("ifconfig -a", fmt::format("{}: member: {}", port.master, port.name))
             .step("ifconfig {0} deletem {1}", "ifconfig {0} addm {1}", port.master, port.name);
       } else {
         told.seen(fmt::format("/sys/class/net/{}/master", port.name), port.master)
             .set_port(port, "nomaster", "master " + port.master);
       }
     }},
    {"mtu-differs", kError, kAll, "the ends of a cable have different MTUs",
     "what is longer than the smaller one never arrives, without an error", kPortSources, differing_mtus},
    {"mtu-small", kWarning, kAll, "a fast cable has a small MTU",
     "the path MTU of RDMA is 1024, and every byte costs four times the packets", kPortSources,
     [](Probe& at, const Netdev& port) {
       constexpr uint64_t kFastMbps = 20'000;
       constexpr uint64_t kLeast = 4200;  // a packet of 4096 bytes of RoCEv2 with its headers
       at.given(port.mtu != 0 && port.speed_mbps >= kFastMbps && port.has_carrier.value_or(false))
           .judge(port.mtu < kLeast, port, "its MTU is {}: packets of RDMA hold 1024 bytes and not 4096", port.mtu)
           .seen(port.file("mtu"))
           .set_port(port, "mtu 9000", fmt::format("mtu {}", port.mtu))
           .advise("at both ends of the cable");
     }},
    {"default-route-on-cable", kWarning, kLinux, "the default route leads over a cable",
     "everything goes over it that should not, and installing or ssh stops when it is pulled", "ip route",
     [](Probe& at, const Netdev& port) {
       if (const Link* link = at.facts.link_at(port)) {  // whatever the system at its other end
         default_route(at, port, link->origin == Link::Origin::planned);
       }
     }},
    {"address-missing", kError, kAll, "an end of a cable has no IPv4 address",
     "its RDMA port has no IPv4 GID, and nobody can connect to it", kAddressSources,
     [](Probe& at, const Link& link) {
       for (const Netdev* end : {link.a, link.b}) {
         missing_address(at, link, *end);
       }
     }},
    {"address-twice", kError, kAll, "two ports have one address", "whoever asks for it gets the one or the other",
     kAddressSources, twice_used},
    {"subnets-differ", kError, kAll, "the ends of a cable are in different subnets",
     "the change to RTR fails with ETIMEDOUT: the peer's GID is not on this cable", kAddressSources, differing_subnets},
    {"subnet-shared", kError, kAll, "two interfaces of a machine are in one subnet",
     "the kernel sends by the first one: traffic takes the wrong cable", kAddressSources, shared_subnets},
    {"address-duplicate", kWarning, kAll, "the kernel found an address in use elsewhere",
     "it is not used, and its GID is missing", kAddressSources,
     [](Probe& at, const Netdev& port) {
       for (const Address& one : port.addresses) {
         const Judgement told =
             at.judge(one.is_duplicate, port, "{} is somebody else's, too: it is not used", one.ip.text())
                 .seen(one.value());
         if (!port.host->is_mac) {
           told.step("ip address del {0} dev {1}", "ip address add {0} dev {1}", one.ip.text_with_prefix(), port.name);
         }
       }
     }},
    {"address-automatic", kWarning, kAll, "a cable has addresses of 169.254.0.0/16",
     "all cables are then one subnet to NCCL and to the kernel, and addresses change", kAddressSources,
     [](Probe& at) {
       for (const Address* one : cabled_addresses(at.facts)) {
         at.judge(one->ip.ipv4() >> 16U == 0xa9feU, *one->port, "its address {} was made up by itself", one->ip.text())
             .seen(one->value())
             .advise("give each cable a subnet of its own; `ringbolt plan` has one for each");
       }
     }},
};

}  // namespace

std::span<const Check> address_checks() { return kAddressChecks; }

}  // namespace ringbolt::tools::doctor
