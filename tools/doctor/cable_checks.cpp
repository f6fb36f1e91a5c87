// Cables and what goes over them.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "doctor/check.h"
#include "node_environment.h"

namespace ringbolt::tools::doctor {
namespace {

const Link* link_at(const Facts& facts, const End& end) {
  const auto found = std::ranges::find_if(facts.links, [&](const Link& one) { return one.a == end || one.b == end; });
  return found == facts.links.end() ? nullptr : &*found;
}

End other_end(const Link& link, const End& end) { return link.a == end ? link.b : link.a; }

/// Who answers on an interface is not who should: another port of the machine that the plan or the subnet says, or of
/// another one. Told once for each cable.
void crossed_cables(Probe& probe) {
  const Facts& facts = probe.facts;
  std::vector<const Link*> told;
  for (const Sighting& one : facts.sightings) {
    const Link* link = one.who ? link_at(facts, one.at) : nullptr;
    if (link == nullptr || link->origin == Link::Origin::seen) {
      continue;
    }
    probe.looked();
    const End wanted = other_end(*link, one.at);
    const bool also_right = std::ranges::any_of(
        facts.sightings, [&](const Sighting& other) { return other.at == one.at && other.who == wanted; });
    if (*one.who == wanted || also_right || std::ranges::find(told, link) != told.end()) {
      continue;
    }
    told.push_back(link);
    const Host& host = facts.host(one.at);
    probe
        .found(host, facts.netdev(one.at).name,
               fmt::format("its cable leads to {}, and should lead to {}", end_text(facts, *one.who),
                           end_text(facts, wanted)))
        .seen(host, "ping ff02::1", one.line)
        .seen(facts.host(*one.who), "ip -o address", fmt::format("{} has {}", facts.netdev(*one.who).name, one.address))
        .advise(fmt::format("move the plug from {} to {}", end_text(facts, *one.who), end_text(facts, wanted)));
  }
}

void strangers(Probe& probe) {
  const Facts& facts = probe.facts;
  for (const Sighting& one : facts.sightings) {
    const Link* link = link_at(facts, one.at);
    if (link == nullptr || facts.hosts.size() < 2) {
      continue;
    }
    probe.looked();
    const bool has_known = std::ranges::any_of(
        facts.sightings, [&](const Sighting& other) { return other.at == one.at && other.who.has_value(); });
    if (!one.who && !has_known) {
      probe.found(facts.host(one.at), facts.netdev(one.at).name, "a machine that is not among these answers on it")
          .seen(facts.host(one.at), "ping ff02::1", one.line)
          .advise("follow the cable, or add that machine to the hosts");
    }
  }
}

/// Somebody wants something to go over it: it is in the plan, or it has an address.
bool is_wanted(const Facts& facts, const Host& host, const Netdev& netdev) {
  const End end{static_cast<size_t>(&host - facts.hosts.data()), static_cast<size_t>(&netdev - host.netdevs.data())};
  const Link* link = link_at(facts, end);
  return netdev.ipv4() != nullptr || (link != nullptr && link->origin == Link::Origin::planned);
}

const Netdev* other_netdev(const Facts& facts, const Host& host, const Netdev& netdev) {
  const End end{static_cast<size_t>(&host - facts.hosts.data()), static_cast<size_t>(&netdev - host.netdevs.data())};
  const Link* link = link_at(facts, end);
  return link == nullptr ? nullptr : &facts.netdev(other_end(*link, end));
}

void ports_off(Probe& probe) {
  probe.each_cabled([&](const Host& host, const Netdev& netdev) {
    if (!netdev.is_up || !is_wanted(probe.facts, host, netdev)) {
      return;
    }
    probe.looked();
    if (!*netdev.is_up) {
      Finding& found = probe.found(host, netdev.name, "the interface is switched off");
      if (host.is_mac) {
        found.seen(host, "ifconfig -a", line_with(host.text("ifconfig -a"), netdev.name + ": flags"))
            .step(host, fmt::format("ifconfig {} up", netdev.name), fmt::format("ifconfig {} down", netdev.name));
      } else {
        found.file(host, fmt::format("/sys/class/net/{}/flags", netdev.name))
            .step(host, fmt::format("ip link set {} up", netdev.name), fmt::format("ip link set {} down", netdev.name));
      }
    }
  });
}

void unplugged_cables(Probe& probe) {
  probe.each_cabled([&](const Host& host, const Netdev& netdev) {
    const Netdev* other = other_netdev(probe.facts, host, netdev);
    if (!netdev.has_carrier || !netdev.is_up.value_or(false) || !is_wanted(probe.facts, host, netdev) ||
        (other != nullptr && !other->is_up.value_or(true))) {
      return;  // a port that is off at the other end is told there
    }
    probe.looked();
    if (!*netdev.has_carrier) {
      Finding& found = probe.found(host, netdev.name, "nothing is at the other end of the cable, or no cable is in it");
      host.is_mac ? found.seen(host, "ifconfig -a", fmt::format("{}: status: inactive", netdev.name))
                  : found.file(host, fmt::format("/sys/class/net/{}/carrier", netdev.name));
      found.advise("push both plugs in, and look whether the machine at the other end is on");
    }
  });
}

/// Among ports of one driver; a virtual interface has no speed of its own.
void slow_cables(Probe& probe) {
  std::map<std::string, uint64_t> best;
  const auto counts = [](const Netdev& one) {
    return one.speed_mbps != 0 && !one.pci.empty() && one.has_carrier.value_or(false);
  };
  probe.each_cabled([&](const Host&, const Netdev& one) {
    if (counts(one)) {
      best[one.driver] = std::max(best[one.driver], one.speed_mbps);
    }
  });
  probe.each_cabled([&](const Host& host, const Netdev& one) {
    if (!counts(one)) {
      return;
    }
    probe.looked();
    if (one.speed_mbps < best[one.driver]) {
      probe
          .found(host, one.name,
                 fmt::format("it runs at {} Gb/s, another port of its kind at {}",
                             static_cast<double>(one.speed_mbps) / 1000, static_cast<double>(best[one.driver]) / 1000))
          .file(host, fmt::format("/sys/class/net/{}/speed", one.name))
          .advise("take a cable that is made for that speed (and short), the same at both ends");
    }
  });
}

/// The words of `tc qdisc show` behind "refcnt N" are those that tc takes.
std::string shaper_again(const Netdev& netdev) {
  const auto words = words_of(netdev.shaped_line);
  std::string command = "tc qdisc add dev " + netdev.name + " root";
  for (size_t i = 1; i < words.size(); ++i) {
    const bool is_place = i >= 2 && i <= 5;  // HANDLE dev NAME root
    const bool is_count = words[i] == "refcnt" || words[i - 1] == "refcnt";
    if (!is_place && !is_count) {
      command += " " + shell_quoted(std::string(words[i]));
    }
  }
  return command;
}

void shaped_cables(Probe& probe) {
  probe.each_cabled([&](const Host& host, const Netdev& netdev) {
    if (host.recording->find(host.name, "tc qdisc show") == nullptr) {
      return;
    }
    probe.looked();
    const End end{static_cast<size_t>(&host - probe.facts.hosts.data()),
                  static_cast<size_t>(&netdev - host.netdevs.data())};
    const Link* link = link_at(probe.facts, end);
    if (netdev.shaped_mbps != 0 && (link == nullptr || !link->is_shaped)) {
      probe.found(host, netdev.name, fmt::format("a queueing discipline holds it to {} Mb/s", netdev.shaped_mbps))
          .seen(host, "tc qdisc show", netdev.shaped_line)
          .step(host, fmt::format("tc qdisc del dev {} root", netdev.name), shaper_again(netdev));
    }
  });
}

/// Counts of what went wrong on an interface that carried something.
void count(Probe& probe, const Host& host, const Netdev& netdev, std::initializer_list<const char*> files,
           uint64_t packets_for_one, const char* message, const char* advice) {
  const std::string folder = fmt::format("/sys/class/net/{}/statistics/", netdev.name);
  const uint64_t packets = host.number(folder + "rx_packets");
  if (host.file(folder + "rx_packets").empty()) {
    return;
  }
  probe.looked();
  for (const char* file : files) {
    const uint64_t bad = host.number(folder + file);
    constexpr uint64_t kFew = 10;  // a plug that is pushed in makes some
    if (bad >= kFew && bad > packets / packets_for_one) {
      probe.found(host, netdev.name, fmt::format("{}: {} of {} packets", message, bad, packets))
          .file(host, folder + file)
          .advise(advice);
      return;
    }
  }
}

void link_errors(Probe& probe) {
  probe.each_cabled([&](const Host& host, const Netdev& netdev) {
    count(probe, host, netdev, {"rx_crc_errors", "rx_errors"}, 1'000'000, "packets arrive damaged",
          "clean or change the cable; look whether the other end sees the same");
    if (const Device* device = host.device_on(netdev.name)) {
      const std::string path = device->folder + "/counters/symbol_error";
      if (host.number(path) > 100) {
        probe.found(host, device->name, fmt::format("{} symbols arrived damaged", host.number(path)))
            .file(host, path)
            .advise("clean or change the cable");
      }
    }
  });
}

void link_flaps(Probe& probe) {
  constexpr uint64_t kMany = 30;
  probe.each_cabled([&](const Host& host, const Netdev& netdev) {
    const std::string path = fmt::format("/sys/class/net/{}/carrier_changes", netdev.name);
    if (host.file(path).empty()) {
      return;
    }
    probe.looked();
    if (host.number(path) > kMany) {
      probe
          .found(host, netdev.name,
                 fmt::format("the cable came and went {} times since the boot", host.number(path) / 2))
          .file(host, path)
          .advise("push both plugs in; a cable that hangs from its plug does this");
    }
  });
}

void dropped_packets(Probe& probe) {
  probe.each_cabled([&](const Host& host, const Netdev& netdev) {
    count(probe, host, netdev, {"rx_missed_errors", "rx_dropped"}, 10'000, "the machine drops what arrives",
          "let the ends slow each other down: ethtool -A IF rx on tx on, at both ends");
  });
}

void lost_packets(Probe& probe) {
  constexpr uint64_t kMany = 1000;
  probe.each_device([&](const Host& host, const Device& device) {
    for (const char* file : {"packet_seq_err", "local_ack_timeout_err", "out_of_buffer"}) {
      const std::string path = fmt::format("{}/hw_counters/{}", device.folder, file);
      if (device.pci.empty() || host.file(path).empty()) {
        continue;
      }
      probe.looked();
      if (host.number(path) > kMany) {
        probe
            .found(host, device.name,
                   fmt::format("the device had to send again or give up: {} {}", file, host.number(path)))
            .file(host, path)
            .advise("look for a bad cable, and for pause frames that are off (pause-off)");
        return;
      }
    }
  });
}

constexpr Check kCableChecks[] = {
    {"port-off", Severity::error, Platform::all, "an interface that should carry a cable is switched off",
     "the port at the other end sees no cable either", "interfaces|ifconfig -a", ports_off},
    {"cable-unplugged", Severity::error, Platform::all, "a port with an address, or of the plan, has no carrier",
     "what is addressed to it waits until it times out, or goes another way", "interfaces|ifconfig -a",
     unplugged_cables},
    {"cable-crossed", Severity::error, Platform::all, "a cable leads to another port than the plan or its subnet says",
     "connecting fails with ETIMEDOUT, or traffic leaves by the wrong cable", "ping ff02::1", crossed_cables},
    {"cable-to-stranger", Severity::warning, Platform::all, "a machine that is not among these is at the other end",
     "the cable does not join what it should", "ping ff02::1", strangers},
    {"cable-slow", Severity::warning, Platform::linux, "a port runs slower than others of its kind",
     "a collective is as fast as its slowest cable", "interfaces", slow_cables},
    {"cable-shaped", Severity::warning, Platform::linux, "a queueing discipline holds a port to a rate",
     "whatever goes through the kernel is as slow as that", "tc qdisc show", shaped_cables},
    {"link-errors", Severity::warning, Platform::linux, "packets arrive damaged",
     "each damaged packet costs a retransmission, and RoCE sends much again", "interfaces", link_errors},
    {"link-flaps", Severity::warning, Platform::linux, "a cable comes and goes",
     "every time queue pairs fail, and addresses and GIDs may come back at other indices", "interfaces", link_flaps},
    {"packets-dropped", Severity::warning, Platform::linux, "a machine drops packets that have arrived",
     "RoCE takes a lost packet for a reason to send many again", "interfaces", dropped_packets},
    {"packets-sent-again", Severity::warning, Platform::linux, "a card had to send much again",
     "the link says its full speed and a tenth of it arrives", "devices", lost_packets},
};

}  // namespace

std::span<const Check> cable_checks() { return kCableChecks; }

}  // namespace ringbolt::tools::doctor
