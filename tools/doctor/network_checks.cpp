// What the kernel lets through: firewalls, forwarding, filters of addresses, routes.
#include <algorithm>

#include <fmt/format.h>

#include "doctor/check.h"
#include "node_environment.h"

namespace ringbolt::tools::doctor {
namespace {

constexpr std::string_view kRocePort = "4791";

/// A word of a line of rules.
bool has_word(std::string_view line, std::string_view word) {
  const auto words = words_of(line);
  return std::ranges::any_of(words, [&](std::string_view one) {
    return one == word || (one.size() == word.size() + 2 && one.front() == '"' && one.substr(1, word.size()) == word);
  });
}

/// What a rule decides, whatever tool wrote it down.
enum class Act { none, accept, drop };
Act act_of(std::string_view line) {
  if (has_word(line, "ACCEPT") || has_word(line, "accept")) {
    return Act::accept;
  }
  const bool is_drop =
      has_word(line, "DROP") || has_word(line, "REJECT") || has_word(line, "drop") || has_word(line, "reject");
  return is_drop ? Act::drop : Act::none;
}

bool is_about_roce(std::string_view line) { return has_word(line, kRocePort); }
bool is_about(std::string_view line, const std::string& netdev) { return has_word(line, netdev); }

/// Rules of incoming packets, the same of iptables and nft.
struct Rules {
  std::string source;
  std::string_view policy_line = {};  ///< of a chain of input that drops what nothing accepts; "": there is none
  std::vector<std::string_view> lines = {};
  bool is_iptables = false;
  std::string table = {};  ///< of nft: "inet filter", and its chain
  std::string chain = {};
};

Rules iptables_rules(const Host& host) {
  Rules rules{"iptables -S"};
  rules.is_iptables = true;
  for (const std::string_view line : lines_of(host.text("iptables -S"))) {
    if (line.starts_with("-P INPUT ") && act_of(line) == Act::drop) {
      rules.policy_line = line;
    } else if (line.starts_with("-A ") && !line.starts_with("-A FORWARD") && !line.starts_with("-A OUTPUT") &&
               !contains(line, "DOCKER")) {
      rules.lines.push_back(line);
    }
  }
  return rules;
}

/// "table inet filter {", "chain input {", "type filter hook input priority filter; policy drop;", rules.
Rules nft_rules(const Host& host) {
  Rules rules{"nft list ruleset"};
  std::string table;
  std::string chain;
  bool is_input = false;
  for (const std::string_view line : lines_of(host.text("nft list ruleset"))) {
    const auto words = words_of(line);
    if (words.size() >= 3 && words[0] == "table") {
      table = fmt::format("{} {}", words[1], words[2]);
    } else if (words.size() >= 2 && words[0] == "chain") {
      chain = words[1];
      is_input = false;
    } else if (contains(line, "hook input")) {
      is_input = true;
      if (contains(line, "policy drop")) {
        rules.policy_line = trimmed(line);
        rules.table = table;
        rules.chain = chain;
      }
    } else if (is_input && act_of(line) != Act::none) {
      rules.lines.push_back(trimmed(line));
      if (rules.table.empty()) {
        rules.table = table;
        rules.chain = chain;
      }
    }
  }
  return rules;
}

/// Whether the rules let RoCEv2 and the ranks' meeting in at an interface, and the line that keeps them out.
std::string_view blocking_line(const Rules& rules, const std::string& netdev) {
  for (const std::string_view line : rules.lines) {
    const Act act = act_of(line);
    const bool is_narrow = contains(line, "dport") || contains(line, "sport") || contains(line, "state") ||
                           contains(line, " lo ") || contains(line, "\"lo\"") || contains(line, "icmp") ||
                           contains(line, "saddr") || contains(line, "-s ");
    const bool names_any = contains(line, "-i ") || contains(line, "iif");
    const bool is_here = is_about(line, netdev) || !names_any;
    if (act == Act::drop && is_here &&
        (is_about_roce(line) || (!is_narrow && (is_about(line, netdev) || names_any == false)))) {
      return line;
    }
    if (act == Act::accept && is_here && (!is_narrow || is_about_roce(line))) {
      return "";
    }
  }
  return rules.policy_line;
}

void add_mend(Finding& found, const Host& host, const Rules& rules, const std::string& netdev) {
  if (rules.is_iptables) {
    found.step(host, fmt::format("iptables -I INPUT -i {} -j ACCEPT", netdev),
               fmt::format("iptables -D INPUT -i {} -j ACCEPT", netdev));
  } else {
    const std::string at = fmt::format("{} {}", rules.table, rules.chain);
    found.step(
        host, fmt::format("nft insert rule {} iifname {} accept", at, netdev),
        fmt::format("nft delete rule {0} handle $(nft -a list chain {0} | sed -n 's/.*iifname \"{1}\" accept # handle "
                    "//p' | head -n 1)",
                    at, netdev));
  }
}

void blocked_input(Probe& probe) {
  probe.each_cabled([&](const Host& host, const Netdev& netdev) {
    for (const Rules& rules : {iptables_rules(host), nft_rules(host)}) {
      const Reading* reading = host.recording->find(host.name, rules.source);
      if (reading == nullptr || !reading->problem.empty()) {
        continue;
      }
      probe.looked();
      if (const std::string_view line = blocking_line(rules, netdev.name); !line.empty()) {
        Finding& found = probe.found(host, netdev.name, "the firewall keeps out what comes in over this cable")
                             .seen(host, rules.source, line);
        const auto plain = [](const std::string& word) {
          return word.find_first_of("'\"$`;|&<>") == std::string::npos;
        };
        if (plain(rules.table) && plain(rules.chain)) {
          add_mend(found, host, rules, netdev.name);
        }
        return;
      }
    }
  });
}

/// "10.78.0.0/24 via 10.77.0.2 dev en2": a way through another machine.
bool has_transit(const Facts& facts, const Host& through) {
  for (const Host& host : facts.hosts) {
    for (const std::string_view line : lines_of(host.text("ip route"))) {
      const auto words = words_of(line);
      const auto via = std::ranges::find(words, "via");
      const auto ip = via == words.end() || via + 1 == words.end() ? std::nullopt : cluster::IpAddress::parse(via[1]);
      if (!ip || words[0] == "default" || &host == &through) {
        continue;
      }
      for (const Netdev& netdev : through.netdevs) {
        if (netdev.is_cabled &&
            std::ranges::any_of(netdev.addresses, [&](const Address& own) { return own.ip.bytes == ip->bytes; })) {
          return true;
        }
      }
    }
  }
  return false;
}

void no_forwarding(Probe& probe) {
  const std::string path = "/proc/sys/net/ipv4/ip_forward";
  probe.each_host([&](const Host& host) {
    if (host.file(path).empty() || !has_transit(probe.facts, host)) {
      return;
    }
    probe.looked();
    if (trimmed(host.file(path)) == "0") {
      probe.found(host, "ip_forward", "other machines route through it, and its kernel forwards nothing")
          .file(host, path)
          .step(host, "sysctl -w net.ipv4.ip_forward=1", "sysctl -w net.ipv4.ip_forward=0")
          .advise("or let Ringbolt relay, which needs no forwarding: `ringbolt up --overlay`, groups, the NCCL plugin");
    }
  });
}

void dropped_transit(Probe& probe) {
  probe.each_host([&](const Host& host) {
    const std::string_view text = host.text("iptables -S");
    if (text.empty() || !has_transit(probe.facts, host)) {
      return;
    }
    probe.looked();
    const std::string_view policy = line_with(text, "-P FORWARD DROP");
    for (const Netdev& netdev : host.netdevs) {
      const bool is_let = std::ranges::any_of(lines_of(text), [&](std::string_view line) {
        return (line.starts_with("-A FORWARD") || line.starts_with("-A DOCKER-USER")) && act_of(line) == Act::accept &&
               is_about(line, netdev.name);
      });
      if (netdev.is_cabled && !policy.empty() && !is_let) {
        const std::string chain = contains(text, "-N DOCKER-USER") ? "DOCKER-USER" : "FORWARD";
        probe.found(host, netdev.name, "traffic through this machine is dropped")
            .seen(host, "iptables -S", policy)
            .step(host, fmt::format("iptables -I {} -i {} -j ACCEPT", chain, netdev.name),
                  fmt::format("iptables -D {} -i {} -j ACCEPT", chain, netdev.name));
      }
    }
  });
}

/// The kernel takes the larger one of `all` and the interface's.
void strict_filters(Probe& probe) {
  probe.each_cabled([&](const Host& host, const Netdev& netdev) {
    const std::string all = "/proc/sys/net/ipv4/conf/all/rp_filter";
    const std::string own = fmt::format("/proc/sys/net/ipv4/conf/{}/rp_filter", netdev.name);
    if (host.file(all).empty() || host.file(own).empty()) {
      return;
    }
    probe.looked();
    if (std::max(host.number(all), host.number(own)) == 1) {
      probe.found(host, netdev.name, "packets whose answer would leave by another interface are dropped")
          .file(host, host.number(own) == 1 ? own : all)
          .step(host, fmt::format("sysctl -w net/ipv4/conf/{}/rp_filter=2", netdev.name),
                fmt::format("sysctl -w net/ipv4/conf/{}/rp_filter={}", netdev.name, host.number(own)));
    }
  });
}

/// A route to the subnet of a cable that leads elsewhere: a VPN's, or a more narrow one.
void stolen_routes(Probe& probe) {
  probe.each_cabled([&](const Host& host, const Netdev& netdev) {
    const Address* own = netdev.ipv4();
    if (own == nullptr || host.text("ip route").empty()) {
      return;
    }
    probe.looked();
    for (const std::string_view line : lines_of(host.text("ip route"))) {
      const auto words = words_of(line);
      const auto dev = std::ranges::find(words, "dev");
      const auto to = words.empty() ? std::nullopt : cluster::IpAddress::parse(words[0]);
      if (!to || dev == words.end() || dev + 1 == words.end() || dev[1] == netdev.name) {
        continue;
      }
      const bool is_narrower = to->prefix_bits >= own->ip.prefix_bits && own->ip.prefix_bits != 0;
      const Netdev* other = host.netdev(dev[1]);
      const bool is_of_other = other != nullptr && other->ipv4() != nullptr && other->ipv4()->ip.shares_subnet(*to);
      if (is_narrower && own->ip.shares_subnet(*to) && !is_of_other && to->ipv4() != own->ip.ipv4()) {
        probe.found(host, netdev.name, fmt::format("what is for {} leaves by {}", words[0], dev[1]))
            .seen(host, "ip route", line)
            .seen(host, "ip -o address", own->line)
            .advise(
                fmt::format("take that route away, or the VPN that made it: ip route del {} dev {}", words[0], dev[1]));
      }
    }
  });
}

constexpr Check kNetworkChecks[] = {
    {"firewall-drops", Severity::error, Platform::linux, "a firewall keeps out what comes in over a cable",
     "ranks can't meet, and RoCEv2 in software and soft-RoCE lose every packet", "iptables -S|nft list ruleset",
     blocked_input},
    {"forwarding-off", Severity::error, Platform::linux, "machines route through one whose kernel does not forward",
     "pairs without a cable of their own can't talk", "interfaces, ip route", no_forwarding},
    {"forward-dropped", Severity::error, Platform::linux, "a firewall drops what passes through a machine",
     "it looks like a dead cable between two others", "iptables -S|nft list ruleset, ip route", dropped_transit},
    {"route-stolen", Severity::error, Platform::linux, "a route sends a cable's traffic elsewhere",
     "it goes over the management network or a VPN, slowly or not at all", "ip route", stolen_routes},
    {"rp-filter-strict", Severity::warning, Platform::linux, "the reverse path filter is strict",
     "where ways there and back differ, packets vanish without a count", "interfaces", strict_filters},
};

}  // namespace

std::span<const Check> network_checks() { return kNetworkChecks; }

}  // namespace ringbolt::tools::doctor
