// Cables and what goes over them.
#include <algorithm>
#include <set>

#include "doctor/check.h"
#include "node_environment.h"

namespace ringbolt::tools::doctor {
namespace {

/// Who answers on an interface is not who should: another port of the machine that the plan or the subnet says, or of
/// another one. Told once for each cable.
void crossed_cables(Probe& at) {
  const auto& sightings = at.facts.sightings;
  std::set<const Link*> told;
  for (const Sighting& one : sightings) {
    const Link* link = one.who == nullptr ? nullptr : at.facts.link_at(*one.at);
    if (link == nullptr || link->origin == Link::Origin::seen) {
      continue;
    }
    const Netdev& wanted = link->other(*one.at);
    const bool is_right = std::ranges::any_of(
        sightings, [&](const Sighting& other) { return other.at == one.at && other.who == &wanted; });
    const Judgement judgement =
        at.judge(!is_right && !told.contains(link), *one.at, "its cable leads to {}, and should lead to {}",
                 end_text(*one.who), end_text(wanted))
            .seen("ping ff02::1", one.line)
            .seen(one.who->host->line_of("ip -o address", fmt::format("{} has {}", one.who->name, one.address)))
            .advise("move the plug from {} to {}", end_text(*one.who), end_text(wanted));
    if (judgement) {
      told.insert(link);
    }
  }
}

void strangers(Probe& at) {
  for (const Sighting& one : at.facts.sightings) {
    const bool has_known = std::ranges::any_of(
        at.facts.sightings, [&](const Sighting& other) { return other.at == one.at && other.who != nullptr; });
    at.given(at.facts.link_at(*one.at) != nullptr && at.facts.hosts.size() >= 2)
        .judge(!has_known, *one.at, "a machine that is not among these answers on it")
        .seen("ping ff02::1", one.line)
        .advise("follow the cable, or add that machine to the hosts");
  }
}

/// Somebody wants something to go over it: it is in the plan, or it has an address.
bool is_wanted(const Facts& facts, const Netdev& port) {
  const Link* link = facts.link_at(port);
  return port.ipv4() != nullptr || (link != nullptr && link->origin == Link::Origin::planned);
}

/// A port that is off at the other end is told there.
bool is_other_off(const Facts& facts, const Netdev& port) {
  const Link* link = facts.link_at(port);
  return link != nullptr && !link->other(port).is_up.value_or(true);
}

/// A virtual interface has no speed of its own.
bool has_speed(const Netdev& port) {
  return port.speed_mbps != 0 && !port.pci.empty() && port.has_carrier.value_or(false);
}

/// Of ports of one driver.
uint64_t best_speed_mbps(const Probe& at, std::string_view driver) {
  uint64_t best = 0;
  for (const Netdev* one : at.all<Netdev>()) {
    best = has_speed(*one) && one->driver == driver ? std::max(best, one->speed_mbps) : best;
  }
  return best;
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

/// Counts of what went wrong on an interface that carried something: the first that is more than some.
void judge_counts(Probe& at, const Netdev& port, std::initializer_list<const char*> files, uint64_t packets_for_one,
                  const char* message, const char* advice) {
  constexpr uint64_t kFew = 10;  // a plug that is pushed in makes some
  const Value packets = port.file("statistics/rx_packets");
  for (const char* file : files) {
    const Value bad = port.file(fmt::format("statistics/{}", file));
    const bool is_bad = bad.number() >= kFew && bad.number() > packets.number() / packets_for_one;
    if (at.given(!!packets)
            .judge(is_bad, port, "{}: {} of {} packets", message, bad.number(), packets.number())
            .seen(bad)
            .advise("{}", advice)) {
      return;
    }
  }
}

constexpr Check kCableChecks[] = {
    {"port-off", kError, kAll, "an interface that should carry a cable is switched off",
     "the port at the other end sees no cable either", kPortSources,
     [](Probe& at, const Netdev& port) {
       at.given(port.is_up && is_wanted(at.facts, port))
           .judge(port.is_up == false, port, "the interface is switched off")
           .seen(port.file("flags"))
           .set_port(port, "up", "down");
     }},
    {"cable-unplugged", kError, kAll, "a port with an address, or of the plan, has no carrier",
     "what is addressed to it waits until it times out, or goes another way", kPortSources,
     [](Probe& at, const Netdev& port) {
       const bool is_on = port.is_up.value_or(false) && is_wanted(at.facts, port) && !is_other_off(at.facts, port);
       const Judgement told =
           at.given(port.has_carrier && is_on)
               .judge(port.has_carrier == false, port, "nothing is at the other end of the cable, or no cable is in it")
               .advise("push both plugs in, and look whether the machine at the other end is on");
       told.seen(port.host->is_mac ? port.host->line_of("ifconfig -a", port.name + ": status: inactive")
                                   : port.file("carrier"));
     }},
    {"cable-crossed", kError, kAll, "a cable leads to another port than the plan or its subnet says",
     "connecting fails with ETIMEDOUT, or traffic leaves by the wrong cable", "ping ff02::1", crossed_cables},
    {"cable-to-stranger", kWarning, kAll, "a machine that is not among these is at the other end",
     "the cable does not join what it should", "ping ff02::1", strangers},
    {"cable-slow", kWarning, kLinux, "a port runs slower than others of its kind",
     "a collective is as fast as its slowest cable", "interfaces",
     [](Probe& at, const Netdev& port) {
       const uint64_t best = best_speed_mbps(at, port.driver);
       at.given(has_speed(port))
           .judge(port.speed_mbps < best, port, "it runs at {} Gb/s, another port of its kind at {}",
                  static_cast<double>(port.speed_mbps) / 1000, static_cast<double>(best) / 1000)
           .seen(port.file("speed"))
           .advise("take a cable that is made for that speed (and short), the same at both ends");
     }},
    {"cable-shaped", kWarning, kLinux, "a queueing discipline holds a port to a rate",
     "whatever goes through the kernel is as slow as that", "tc qdisc show",
     [](Probe& at, const Netdev& port) {
       const Link* link = at.facts.link_at(port);
       const bool is_planned = link != nullptr && link->is_shaped;
       at.given(port.host->was_asked("tc qdisc show"))
           .judge(port.shaped_mbps != 0 && !is_planned, port, "a queueing discipline holds it to {} Mb/s",
                  port.shaped_mbps)
           .seen("tc qdisc show", port.shaped_line)
           .step("tc qdisc del dev {0} root", "{1}", port.name, shaper_again(port));
     }},
    {"link-errors", kWarning, kLinux, "packets arrive damaged",
     "each damaged packet costs a retransmission, and RoCE sends much again", "interfaces",
     [](Probe& at, const Netdev& port) {
       judge_counts(at, port, {"rx_crc_errors", "rx_errors"}, 1'000'000, "packets arrive damaged",
                    "clean or change the cable; look whether the other end sees the same");
       if (const Device* device = port.host->device_on(port.name)) {
         const Value errors = device->file("counters/symbol_error");
         at.given(errors, errors.number() > 100)  // few say nothing, neither that all is well
             .judge(true, *device, "{} symbols arrived damaged", errors.number())
             .advise("clean or change the cable");
       }
     }},
    {"link-flaps", kWarning, kLinux, "a cable comes and goes",
     "every time queue pairs fail, and addresses and GIDs may come back at other indices", "interfaces",
     [](Probe& at, const Netdev& port) {
       constexpr uint64_t kMany = 30;
       const Value changes = port.file("carrier_changes");
       at.given(changes)
           .judge(changes.number() > kMany, port, "the cable came and went {} times since the boot",
                  changes.number() / 2)
           .advise("push both plugs in; a cable that hangs from its plug does this");
     }},
    {"packets-dropped", kWarning, kLinux, "a machine drops packets that have arrived",
     "RoCE takes a lost packet for a reason to send many again", "interfaces",
     [](Probe& at, const Netdev& port) {
       judge_counts(at, port, {"rx_missed_errors", "rx_dropped"}, 10'000, "the machine drops what arrives",
                    "let the ends slow each other down: ethtool -A IF rx on tx on, at both ends");
     }},
    {"packets-sent-again", kWarning, kLinux, "a card had to send much again",
     "the link says its full speed and a tenth of it arrives", "devices",
     [](Probe& at, const Device& device) {
       constexpr uint64_t kMany = 1000;
       for (const char* file : {"packet_seq_err", "local_ack_timeout_err", "out_of_buffer"}) {
         const Value count = device.file(fmt::format("hw_counters/{}", file));
         if (at.given(count, !device.pci.empty())
                 .judge(count.number() > kMany, device, "the device had to send again or give up: {} {}", file,
                        count.number())
                 .advise("look for a bad cable, and for pause frames that are off (pause-off)")) {
           return;
         }
       }
     }},
};

}  // namespace

std::span<const Check> cable_checks() { return kCableChecks; }

}  // namespace ringbolt::tools::doctor
