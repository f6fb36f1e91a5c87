// What the kernel lets through: firewalls, forwarding, filters of addresses, routes.
#include <algorithm>

#include "doctor/check.h"

namespace ringbolt::tools::doctor {
namespace {

constexpr std::string_view kRocePort = "4791";

/// A word of a line of rules; nft quotes names.
bool has_word(std::string_view line, std::string_view word) {
  const auto words = words_of(line);
  return std::ranges::any_of(words, [&](std::string_view one) {
    return one == word || (one.size() == word.size() + 2 && one.front() == '"' && one.substr(1, word.size()) == word);
  });
}

/// What a rule decides, whatever tool wrote it down.
enum class Act { none, accept, drop };
Act act_of(std::string_view line) {
  const auto has_any = [&](std::initializer_list<const char*> words) {
    return std::ranges::any_of(words, [&](const char* word) { return has_word(line, word); });
  };
  return has_any({"ACCEPT", "accept"})                   ? Act::accept
         : has_any({"DROP", "REJECT", "drop", "reject"}) ? Act::drop
                                                         : Act::none;
}

/// Rules of incoming packets, the same of iptables and nft.
struct Rules {
  std::string source;
  std::string_view policy_line = {};  ///< of a chain of input that drops what nothing accepts; "": there is none
  std::vector<std::string_view> lines = {};
  std::string chain = {};  ///< of nft: "inet filter input"
};

Rules iptables_rules(const Host& host) {
  Rules rules{"iptables -S"};
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
    const std::string_view first = word_at(line, 0);
    if (first == "table" && !word_at(line, 2).empty()) {
      table = fmt::format("{} {}", word_at(line, 1), word_at(line, 2));
    } else if (first == "chain" && !word_at(line, 1).empty()) {
      chain = fmt::format("{} {}", table, word_at(line, 1));
      is_input = false;
    } else if (contains(line, "hook input")) {
      is_input = true;
      if (contains(line, "policy drop")) {
        rules.policy_line = trimmed(line);
        rules.chain = chain;
      }
    } else if (is_input && act_of(line) != Act::none) {
      rules.lines.push_back(trimmed(line));
      rules.chain = rules.chain.empty() ? chain : rules.chain;
    }
  }
  return rules;
}

/// The line that keeps RoCEv2 or the ranks' meeting out of an interface; "" if the rules let both in.
std::string_view blocking_line(const Rules& rules, const std::string& netdev) {
  constexpr const char* kNarrow[] = {"dport", "sport", "state", " lo ", "\"lo\"", "icmp", "saddr", "-s "};
  for (const std::string_view line : rules.lines) {
    const Act act = act_of(line);
    const bool is_narrow = std::ranges::any_of(kNarrow, [&](const char* part) { return contains(line, part); });
    const bool names_any = contains(line, "-i ") || contains(line, "iif");
    const bool is_here = has_word(line, netdev) || !names_any;
    if (act != Act::none && is_here && (has_word(line, kRocePort) || !is_narrow)) {
      return act == Act::drop ? line : "";
    }
  }
  return rules.policy_line;
}

void blocked_input(Probe& at, const Netdev& port) {
  for (const Rules& rules : {iptables_rules(*port.host), nft_rules(*port.host)}) {
    const bool was_read = port.host->was_asked(rules.source) && port.host->problem(rules.source).empty();
    const std::string_view line = blocking_line(rules, port.name);
    const Judgement told = at.given(was_read)
                               .judge(!line.empty(), port, "the firewall keeps out what comes in over this cable")
                               .seen(rules.source, line);
    if (rules.source == "iptables -S") {
      told.step("iptables -I INPUT -i {0} -j ACCEPT", "iptables -D INPUT -i {0} -j ACCEPT", port.name);
    } else if (rules.chain.find_first_of("'\"$`;|&<>") == std::string::npos) {
      told.step("nft insert rule {0} iifname {1} accept",
                "nft delete rule {0} handle $(nft -a list chain {0} | sed -n 's/.*iifname \"{1}\" accept # handle "
                "//p' | head -n 1)",
                rules.chain, port.name);
    }
    if (told) {
      return;
    }
  }
}

/// "10.78.0.0/24 via 10.77.0.2 dev en2": a way through another machine.
bool has_transit(const Facts& facts, const Host& through) {
  for (const Host& host : facts.hosts) {
    for (const std::string_view line : lines_of(host.text("ip route"))) {
      const auto ip = cluster::IpAddress::parse(word_after(line, "via"));
      const bool leads_there = ip && std::ranges::any_of(through.netdevs, [&](const Netdev& port) {
                                 return port.is_cabled && port.has_ip(*ip);
                               });
      if (leads_there && word_at(line, 0) != "default" && &host != &through) {
        return true;
      }
    }
  }
  return false;
}

void dropped_transit(Probe& at, const Host& host) {
  const Value rules = host.value("iptables -S");
  if (!rules || !has_transit(at.facts, host)) {
    return;
  }
  at.looked();
  const std::string_view policy = line_with(rules.text, "-P FORWARD DROP");
  for (const Netdev& port : host.netdevs) {
    const auto lines = lines_of(rules.text);
    const bool is_let = std::ranges::any_of(lines, [&](std::string_view line) {
      return (line.starts_with("-A FORWARD") || line.starts_with("-A DOCKER-USER")) && act_of(line) == Act::accept &&
             has_word(line, port.name);
    });
    at.judge(port.is_cabled && !policy.empty() && !is_let, port, "traffic through this machine is dropped")
        .seen(rules.source, policy)
        .step("iptables -I {0} -i {1} -j ACCEPT", "iptables -D {0} -i {1} -j ACCEPT",
              contains(rules.text, "-N DOCKER-USER") ? "DOCKER-USER" : "FORWARD", port.name);
  }
}

/// A route to the subnet of a cable that leads elsewhere: a VPN's, or a more narrow one.
void stolen_routes(Probe& at, const Netdev& port) {
  const Address* own = port.ipv4();
  const auto lines = lines_of(port.host->text("ip route"));
  if (own == nullptr || lines.empty()) {
    return;
  }
  at.looked();
  for (const std::string_view line : lines) {
    const std::string_view dev = word_after(line, "dev");
    const auto to = cluster::IpAddress::parse(word_at(line, 0));
    if (!to || dev.empty() || dev == port.name) {
      continue;
    }
    const Netdev* other = port.host->netdev(dev);
    const bool is_of_other = other != nullptr && other->ipv4() != nullptr && other->ipv4()->ip.shares_subnet(*to);
    const bool is_narrower = to->prefix_bits >= own->ip.prefix_bits && own->ip.prefix_bits != 0;
    at.judge(is_narrower && own->ip.shares_subnet(*to) && !is_of_other && to->ipv4() != own->ip.ipv4(), port,
             "what is for {} leaves by {}", word_at(line, 0), dev)
        .seen("ip route", line)
        .seen(own->value())
        .advise("take that route away, or the VPN that made it: ip route del {} dev {}", word_at(line, 0), dev);
  }
}

constexpr Check kNetworkChecks[] = {
    {"firewall-drops", kError, kLinux, "a firewall keeps out what comes in over a cable",
     "ranks can't meet, and RoCEv2 in software and soft-RoCE lose every packet", "iptables -S|nft list ruleset",
     blocked_input},
    {"forwarding-off", kError, kLinux, "machines route through one whose kernel does not forward",
     "pairs without a cable of their own can't talk", "interfaces, ip route",
     [](Probe& at, const Host& host) {
       const Value forwards = host.file("/proc/sys/net/ipv4/ip_forward");
       at.given(forwards, has_transit(at.facts, host))
           .judge(forwards.text == "0", {host, "ip_forward"},
                  "other machines route through it, and its kernel forwards nothing")
           .step("sysctl -w net.ipv4.ip_forward=1", "sysctl -w net.ipv4.ip_forward=0")
           .advise(
               "or let Ringbolt relay, which needs no forwarding: `ringbolt up --overlay`, groups, the NCCL plugin");
     }},
    {"forward-dropped", kError, kLinux, "a firewall drops what passes through a machine",
     "it looks like a dead cable between two others", "iptables -S|nft list ruleset, ip route", dropped_transit},
    {"route-stolen", kError, kLinux, "a route sends a cable's traffic elsewhere",
     "it goes over the management network or a VPN, slowly or not at all", "ip route", stolen_routes},
    {"rp-filter-strict", kWarning, kLinux, "the reverse path filter is strict",
     "where ways there and back differ, packets vanish without a count", "interfaces",
     [](Probe& at, const Netdev& port) {
       // The kernel takes the larger one of `all` and the interface's.
       const Value all = port.host->file("/proc/sys/net/ipv4/conf/all/rp_filter");
       const Value own = port.host->file(fmt::format("/proc/sys/net/ipv4/conf/{}/rp_filter", port.name));
       at.given(all && own)
           .judge(std::max(all.number(), own.number()) == 1, port,
                  "packets whose answer would leave by another interface are dropped")
           .seen(own.number() == 1 ? own : all)
           .step("sysctl -w net/ipv4/conf/{0}/rp_filter=2", "sysctl -w net/ipv4/conf/{0}/rp_filter={1}", port.name,
                 own.number());
     }},
};

}  // namespace

std::span<const Check> network_checks() { return kNetworkChecks; }

}  // namespace ringbolt::tools::doctor
