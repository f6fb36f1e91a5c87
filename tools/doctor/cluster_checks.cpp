// What explains everything else: machines that don't answer, what somebody broke on purpose, and a plan that is wrong.
#include <algorithm>
#include <numeric>

#include "doctor/check.h"
#include "doctor/plan.h"
#include "hostfile.h"
#include "node_environment.h"

namespace ringbolt::tools::doctor {
namespace {

/// Of commands of `ringbolt` that undo what somebody broke. A shell reads them, and the names in them may be of a
/// recording of somebody else.
std::string cluster_option(const Facts& facts) {
  const std::string name = facts.plan ? facts.plan->name : "";
  return name.empty() ? "" : " --cluster " + shell_quoted(name);
}

void injected_faults(Probe& at) {
  const Host& whole = at.facts.whole;
  const std::string cluster = cluster_option(at.facts);
  const auto lines = lines_of(whole.text("faults"));
  const bool is_one = lines.size() == 1;
  const Judgement told = at.given(whole.was_asked("cluster") || !lines.empty())
                             .judge(!lines.empty(), {whole, "faults"}, "{} fault{} of `ringbolt fault` {} in effect",
                                    lines.size(), is_one ? "" : "s", is_one ? "is" : "are")
                             .step(By::user, "ringbolt fault clear{}", "", cluster);
  for (const std::string_view line : lines) {
    told.seen("ringbolt fault list", line)
        ->undo.push_back(
            {whole.name, fmt::format("ringbolt fault add{} {}", cluster, shell_quoted(std::string(line))), By::user});
  }
  for (const Host* host : at.all<Host>()) {
    at.given(host->was_asked("environment"))
        .judge(!host->variable("RINGBOLT_FAULTS").empty(), {*host, "RINGBOLT_FAULTS"},
               "programs started here suffer faults")
        .unset();
  }
}

void cut_cables(Probe& at) {
  const Host& whole = at.facts.whole;
  at.looked(whole.was_asked("cables"));
  for (const std::string_view line : lines_of(whole.text("cables"))) {
    if (line.starts_with("cut ")) {
      const std::string cable(line.substr(4));
      at.judge(true, {whole, cable}, "the cable was cut by `ringbolt cut`")
          .seen("ringbolt status", line)
          .step(By::user, "ringbolt heal {0}{1}", "ringbolt cut {0}{1}", shell_quoted(cable), cluster_option(at.facts));
    }
  }
}

/// Which machines hang together, by union of the ends of cables.
void split_cluster(Probe& at) {
  const Facts& facts = at.facts;
  if (!facts.plan || facts.plan->cables.empty()) {
    return;
  }
  std::vector<size_t> group(facts.plan->nodes.size());
  std::iota(group.begin(), group.end(), size_t{0});
  for (const cluster::Cable& cable : facts.plan->cables) {
    const size_t from = group[cable.a.node];
    const size_t to = group[cable.b.node];
    std::ranges::replace(group, from, to);
  }
  const auto other = std::ranges::find_if(group, [&](size_t one) { return one != group.front(); });
  const bool is_split = other != group.end();
  const std::string& name = facts.plan->nodes[is_split ? static_cast<size_t>(other - group.begin()) : 0].name;
  at.judge(is_split, {facts.whole, name}, "no way over cables leads from {} to {}", facts.plan->nodes[0].name, name)
      .seen(facts.plan_source, fmt::format("{} cables", facts.plan->cables.size()))
      .advise("add a cable, or take the machine out of the file; `ringbolt plan FILE` draws it");
}

/// Of MLX's and JACCL's files: the devices that they name, on machines that were read.
void unknown_devices(Probe& at) {
  const Facts& facts = at.facts;
  for (uint32_t node = 0; facts.plan && facts.plan_source != "cluster" && node < facts.plan->nodes.size(); ++node) {
    const Host* host = facts.host_of_node(node);
    if (host == nullptr || (host->is_mac && host->devices.empty()) ||
        !host->was_asked(host->is_mac ? "ibv_devinfo -v" : "devices")) {
      continue;
    }
    for (const cluster::Port& port : facts.plan->nodes[node].ports) {
      // A network interface may become a device of Ringbolt's by its name.
      const bool is_there = host->device(port.name) != nullptr ||
                            (port.name.starts_with("rdma_") && host->netdev(port.name.substr(5)) != nullptr) ||
                            (!port.netdev.empty() && host->netdev(port.netdev) != nullptr);
      at.judge(!is_there, {*host, port.name}, "the file names a device that this machine does not have")
          .seen(facts.whole.line_of(facts.plan_source, port.name))
          .seen("devices", host->devices.empty() ? "no device" : names_of(host->devices))
          .advise("names move after a reboot or another kernel: write the file anew, `ringbolt hostfile`");
    }
  }
}

std::vector<const Reading*> hostfiles(const Facts& facts) {
  std::vector<const Reading*> found;
  for (const Reading& one : facts.recording.readings) {
    if (one.host == kNoHost && one.source.starts_with("hostfile")) {
      found.push_back(&one);
    }
  }
  return found;
}

void unknown_addresses(Probe& at) {
  for (const Reading* file : hostfiles(at.facts)) {
    for (const bootstrap::MlxHost& one : hosts_in_hostfile(file->text)) {
      const std::string name = one.ssh.substr(one.ssh.find('@') + 1);
      const auto host = std::ranges::find(at.facts.hosts, name, &Host::name);
      if (host == at.facts.hosts.end() || host->netdevs.empty()) {
        continue;  // nobody knows its addresses
      }
      for (const std::string& text : one.ips) {
        const auto ip = cluster::IpAddress::parse(text);
        at.given(ip.has_value())  // or else it is a name
            .judge(ip && !host->has_ip(*ip), {*host, text}, "the file names an address that no interface here has")
            .seen(at.facts.whole.line_of(file->source, text))
            .advise("correct the file, or give the interface that address");
      }
    }
  }
}

void odd_hostfiles(Probe& at) {
  for (const Reading* file : hostfiles(at.facts)) {
    at.looked();
    for (const std::string& line : hostfile_warnings(file->text)) {
      at.judge(true, {at.facts.whole, "hostfile"}, "{}", line)
          .seen(file->source, "as `ringbolt hostfile --check` judges it")
          .advise("`ringbolt hostfile --check FILE` shows what is in it");
    }
  }
}

constexpr Check kClusterChecks[] = {
    {"host-unreachable", kError, kAll, "a machine can't be read, or only in part",
     "nothing is known of it, and every cable to it is suspect", "",
     [](Probe& at, const Host& host) {
       for (const std::string_view source : {"ssh", "end"}) {
         at.judge(!host.problem(source).empty(), {host, "machine"}, "{}",
                  source == "ssh" ? "it can't be read" : "it was read in part")
             .seen(source, host.problem(source))
             .advise("make this work without a question: ssh -o BatchMode=yes {} true", host.name);
       }
     }},
    {"faults-injected", kError, kAll, "faults of `ringbolt fault` or RINGBOLT_FAULTS are in effect",
     "programs lose, damage or delay what they send, on purpose", "", injected_faults},
    {"cable-cut", kError, kAll, "a cable of the cluster was cut by `ringbolt cut`",
     "nothing goes over it until `ringbolt heal`", "", cut_cables},
    {"cluster-split", kError, kAll, "the cables of the plan leave a machine out",
     "no relay can reach it: groups can't form", "", split_cluster},
    {"hostfile-device-unknown", kError, kAll, "the hostfile names a device that is not there",
     "JACCL takes devices by their exact names, and fails at the start", "", unknown_devices},
    {"hostfile-address-unknown", kError, kAll, "the hostfile names an address that its host has not",
     "ranks wait for each other at an address where nobody listens", kAddressSources, unknown_addresses},
    {"hostfile-odd", kWarning, kAll, "the hostfile contradicts itself",
     "a ring in another order than its cables makes groups of one, each of which succeeds", "", odd_hostfiles},
};

}  // namespace

std::span<const Check> cluster_checks() { return kClusterChecks; }

}  // namespace ringbolt::tools::doctor
