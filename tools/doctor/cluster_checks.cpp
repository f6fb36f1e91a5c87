// What explains everything else: machines that don't answer, what somebody broke on purpose, and a plan that is wrong.
#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "doctor/check.h"
#include "doctor/plan.h"
#include "hostfile.h"
#include "node_environment.h"

namespace ringbolt::tools::doctor {
namespace {

/// Findings about the whole stand under this name.
Host whole() { return Host{kNoHost}; }

void unreachable_hosts(Probe& probe) {
  for (const std::string& name : probe.facts.recording.hosts()) {
    probe.looked();
    for (const char* source : {"ssh", "end"}) {
      const Reading* reading = probe.facts.recording.find(name, source);
      if (reading != nullptr && !reading->problem.empty()) {
        const Host host{name};
        probe.found(host, "machine", std::string(source) == "ssh" ? "it can't be read" : "it was read in part")
            .seen(host, source, reading->problem)
            .advise(fmt::format("make this work without a question: ssh -o BatchMode=yes {} true", name));
      }
    }
  }
}

std::string_view whole_text(const Facts& facts, std::string_view source) {
  const Reading* reading = facts.recording.find(kNoHost, source);
  return reading == nullptr ? std::string_view() : std::string_view(reading->text);
}

void injected_faults(Probe& probe) {
  if (probe.facts.recording.find(kNoHost, "cluster") != nullptr) {
    probe.looked();
  }
  const auto lines = lines_of(whole_text(probe.facts, "faults"));
  if (!lines.empty()) {
    const std::string name = probe.facts.plan ? probe.facts.plan->name : "";
    Finding& found = probe.found(whole(), "faults",
                                 fmt::format("{} fault{} of `ringbolt fault` {} in effect", lines.size(),
                                             lines.size() == 1 ? "" : "s", lines.size() == 1 ? "is" : "are"));
    const std::string cluster = name.empty() ? "" : " --cluster " + shell_quoted(name);
    found.step(whole(), "ringbolt fault clear" + cluster, "", By::user);
    for (const std::string_view line : lines) {
      found.evidence.push_back({kNoHost, "ringbolt fault list", std::string(line)});
      found.undo.push_back({found.host, fmt::format("ringbolt fault add{} {}", cluster, line), By::user});
    }
  }
  probe.each_host([&](const Host& host) {
    if (host.recording->find(host.name, "environment") != nullptr) {
      probe.looked();
    }
    if (const std::string* faults = host.variable("RINGBOLT_FAULTS")) {
      probe.found(host, "RINGBOLT_FAULTS", "programs started here suffer faults")
          .seen(host, "environment", "RINGBOLT_FAULTS=" + *faults)
          .step(host, "unset RINGBOLT_FAULTS", "export RINGBOLT_FAULTS=" + shell_quoted(*faults), By::shell);
    }
  });
}

void cut_cables(Probe& probe) {
  if (probe.facts.recording.find(kNoHost, "cables") != nullptr) {
    probe.looked();
  }
  const std::string cluster = probe.facts.plan ? " --cluster " + shell_quoted(probe.facts.plan->name) : "";
  for (const std::string_view line : lines_of(whole_text(probe.facts, "cables"))) {
    if (line.starts_with("cut ")) {
      const std::string cable(line.substr(4));
      Finding& found = probe.found(whole(), cable, "the cable was cut by `ringbolt cut`");
      found.step(whole(), fmt::format("ringbolt heal {}{}", shell_quoted(cable), cluster),
                 fmt::format("ringbolt cut {}{}", shell_quoted(cable), cluster), By::user);
      found.evidence.push_back({kNoHost, "ringbolt status", std::string(line)});
    }
  }
}

/// Which machines hang together, by union of the ends of cables.
void split_cluster(Probe& probe) {
  const Facts& facts = probe.facts;
  if (!facts.plan || facts.plan->cables.empty()) {
    return;
  }
  probe.looked();
  std::vector<size_t> group(facts.plan->nodes.size());
  std::iota(group.begin(), group.end(), size_t{0});
  for (size_t cable = 0; cable < facts.plan->cables.size(); ++cable) {
    const size_t from = group[facts.plan->cables[cable].a.node];
    const size_t to = group[facts.plan->cables[cable].b.node];
    std::ranges::replace(group, from, to);
  }
  const auto other = std::ranges::find_if(group, [&](size_t one) { return one != group.front(); });
  if (other != group.end()) {
    const cluster::Node& node = facts.plan->nodes[static_cast<size_t>(other - group.begin())];
    Finding& found =
        probe.found(whole(), node.name,
                    fmt::format("no way over cables leads from {} to {}", facts.plan->nodes[0].name, node.name));
    found.evidence.push_back({kNoHost, facts.plan_source, fmt::format("{} cables", facts.plan->cables.size())});
    found.advise("add a cable, or take the machine out of the file; `ringbolt plan FILE` draws it");
  }
}

/// Of MLX's and JACCL's files: the devices that they name, on machines that were read.
void unknown_devices(Probe& probe) {
  const Facts& facts = probe.facts;
  for (uint32_t node = 0; facts.plan && facts.plan_source != "cluster" && node < facts.plan->nodes.size(); ++node) {
    const Host* host = facts.host_of_node(node);
    if (host == nullptr || (host->is_mac && host->devices.empty()) ||
        host->recording->find(host->name, host->is_mac ? "ibv_devinfo -v" : "devices") == nullptr) {
      continue;
    }
    for (const cluster::Port& port : facts.plan->nodes[node].ports) {
      probe.looked();
      // A network interface may become a device of Ringbolt's by its name.
      const bool is_there = host->device(port.name) != nullptr ||
                            (port.name.starts_with("rdma_") && host->netdev(port.name.substr(5)) != nullptr) ||
                            (!port.netdev.empty() && host->netdev(port.netdev) != nullptr);
      if (!is_there) {
        std::string there;
        for (const Device& one : host->devices) {
          there += (there.empty() ? "" : ", ") + one.name;
        }
        Finding& found = probe.found(*host, port.name, "the file names a device that this machine does not have");
        found.evidence.push_back({kNoHost, facts.plan_source, port.name});
        found.seen(*host, "devices", there.empty() ? "no device" : there)
            .advise("names move after a reboot or another kernel: write the file anew, `ringbolt hostfile`");
      }
    }
  }
}

void unknown_addresses(Probe& probe) {
  for (const Reading& file : probe.facts.recording.readings) {
    if (file.host != kNoHost || !file.source.starts_with("hostfile")) {
      continue;
    }
    for (const bootstrap::MlxHost& one : hosts_in_hostfile(file.text)) {
      const std::string name = one.ssh.substr(one.ssh.find('@') + 1);
      const auto host = std::ranges::find(probe.facts.hosts, name, &Host::name);
      for (const std::string& text : host == probe.facts.hosts.end() ? std::vector<std::string>{} : one.ips) {
        const auto ip = cluster::IpAddress::parse(text);
        if (!ip || host->netdevs.empty()) {
          continue;  // a name, or nobody knows the addresses
        }
        probe.looked();
        const bool is_there = std::ranges::any_of(host->netdevs, [&](const Netdev& netdev) {
          return std::ranges::any_of(netdev.addresses, [&](const Address& own) { return own.ip.bytes == ip->bytes; });
        });
        if (!is_there) {
          Finding& found = probe.found(*host, text, "the file names an address that no interface here has");
          found.evidence.push_back({kNoHost, file.source, text});
          found.advise("correct the file, or give the interface that address");
        }
      }
    }
  }
}

void odd_hostfiles(Probe& probe) {
  for (const Reading& file : probe.facts.recording.readings) {
    if (file.host == kNoHost && file.source.starts_with("hostfile")) {
      probe.looked();
      for (const std::string& line : hostfile_warnings(file.text)) {
        Finding& found = probe.found(whole(), "hostfile", line);
        found.evidence.push_back({kNoHost, file.source, "as `ringbolt hostfile --check` judges it"});
        found.advise("`ringbolt hostfile --check FILE` shows what is in it");
      }
    }
  }
}

constexpr Check kClusterChecks[] = {
    {"host-unreachable", Severity::error, Platform::all, "a machine can't be read, or only in part",
     "nothing is known of it, and every cable to it is suspect", "", unreachable_hosts},
    {"faults-injected", Severity::error, Platform::all, "faults of `ringbolt fault` or RINGBOLT_FAULTS are in effect",
     "programs lose, damage or delay what they send, on purpose", "", injected_faults},
    {"cable-cut", Severity::error, Platform::all, "a cable of the cluster was cut by `ringbolt cut`",
     "nothing goes over it until `ringbolt heal`", "", cut_cables},
    {"cluster-split", Severity::error, Platform::all, "the cables of the plan leave a machine out",
     "no relay can reach it: groups can't form", "", split_cluster},
    {"hostfile-device-unknown", Severity::error, Platform::all, "the hostfile names a device that is not there",
     "JACCL takes devices by their exact names, and fails at the start", "", unknown_devices},
    {"hostfile-address-unknown", Severity::error, Platform::all, "the hostfile names an address that its host has not",
     "ranks wait for each other at an address where nobody listens", "ip -o address|ifconfig -a", unknown_addresses},
    {"hostfile-odd", Severity::warning, Platform::all, "the hostfile contradicts itself",
     "a ring in another order than its cables makes groups of one, each of which succeeds", "", odd_hostfiles},
};

}  // namespace

std::span<const Check> cluster_checks() { return kClusterChecks; }

}  // namespace ringbolt::tools::doctor
