#include "doctor/gather.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "cable_choice.h"
#include "cabling_file.h"
#include "cluster/cluster_file.h"
#include "cluster/read_file.h"
#include "cluster_state.h"
#include "doctor/look_script.h"
#include "doctor/plan.h"
#include "failure.h"
#include "fault/plan_text.h"
#include "fault_file.h"
#include "host_survey.h"
#include "node_environment.h"
#include "ssh.h"

namespace ringbolt::tools::doctor {
namespace {

constexpr double kMendPatienceS = 60;

/// A machine, and how a shell there is had.
struct Target {
  std::string host;
  Launch shell;       ///< carries out its input
  Launch root_shell;  ///< the same as root; asks no questions
  bool is_remote = false;
};

/// What there is to look at, and what is known without looking.
struct Targets {
  std::vector<Target> targets;
  Recording known;
};

/// A shell of this machine, which reads these parts of look.sh (none: all).
Target local(const std::string& name, const std::vector<std::string>& parts, const NodeEnvironment& changes) {
  Launch shell;
  shell.command = {"/bin/sh", "-s", "--"};
  shell.command.insert(shell.command.end(), parts.begin(), parts.end());
  shell.environment = merged_environment(changes);
  shell.netns = changes.netns;
  Launch root_shell = shell;
  root_shell.command = {"/bin/sh", "-e"};
  if (::geteuid() != 0) {
    root_shell.command.insert(root_shell.command.begin(), {"sudo", "-n"});
  }
  return {name, std::move(shell), std::move(root_shell)};
}

/// Where commands find the Ringbolt that runs.
Target this_machine() {
  const char* path = std::getenv("PATH");
  NodeEnvironment changes;
  changes.set.push_back({"PATH", fmt::format("{}/bin:{}", own_prefix(), path == nullptr ? "/usr/bin:/bin" : path)});
  return local(kThisMachine, {}, changes);
}

Target remote(const std::string& name, const std::string& host) {
  return {name, shell_launch(host), root_shell_launch(host), true};
}

/// Hosts of a list, or of a file with their plan.
Targets hosts_in(const std::string& hosts) {
  Targets found;
  if (!names_a_file(hosts)) {
    for (const std::string& host : split_hosts(hosts)) {
      found.targets.push_back(remote(host, host));
    }
    return found;
  }
  std::string text = cluster::read_file(hosts, cluster::kMaxClusterFileBytes);
  const auto planned = planned_cluster(text);
  const cluster::Cluster plan = planned ? *planned : parse_cabling(hosts, text);  // which says why it is none
  for (const cluster::Node& node : plan.nodes) {
    found.targets.push_back(remote(node.name, host_of(node)));
  }
  text += text.ends_with('\n') ? "" : "\n";
  found.known.put({kNoHost, is_mlx_file(text) ? "hostfile " + hosts : "cluster file " + hosts, std::move(text)});
  return found;
}

/// The nodes of a cluster that is up. Emulated ones share a machine, of which they see their devices alone.
std::vector<Target> nodes_of(const LiveCluster& live) {
  const bool is_netns = live.model.kind == cluster::Kind::netns;
  const std::vector<std::string> parts =
      is_netns ? std::vector<std::string>{"interfaces", "firewall", "environment", "neighbours"}
               : std::vector<std::string>{"devices", "environment"};
  std::vector<Target> found;
  for (uint32_t node = 0; node < live.model.nodes.size(); ++node) {
    const cluster::Node& one = live.model.nodes[node];
    found.push_back(live.is_remote() ? remote(one.name, host_of(one))
                                     : local(one.name, parts, node_environment(live, node)));
  }
  return found;
}

Targets cluster_targets(const std::string& name) {
  const LiveCluster live = open_cluster(name);
  Targets found{nodes_of(live), {}};
  found.known.put({kNoHost, "cluster", cluster::emit_cluster(live.model)});
  found.known.put({kNoHost, "faults", fault::emit_plan(load_faults(live.dir, live.model.name))});
  std::string cut;
  const std::vector<bool> is_up = cables_up(live);
  for (uint32_t cable = 0; cable < is_up.size(); ++cable) {
    cut += is_up[cable] ? "" : fmt::format("cut {}\n", cable_text(live, cable));
  }
  found.known.put({kNoHost, "cables", std::move(cut)});
  return found;
}

Targets targets_of(const Scope& scope) {
  if (!scope.cluster.empty()) {
    return cluster_targets(scope.cluster);
  }
  if (!scope.hosts.empty()) {
    return hosts_in(scope.hosts);
  }
  return {{this_machine()}, {}};
}

/// What a machine said, and that it did not say all.
void add_captured(Recording& recording, const Target& target, const Captured& captured, double timeout_s) {
  Recording read = parse_recording(captured.output, target.host);
  const bool is_whole = read.find(target.host, "end") != nullptr;
  for (Reading& one : read.readings) {
    if (one.source != "end") {
      recording.put(std::move(one));
    }
  }
  if (!is_whole) {
    const std::string why =
        captured.is_late ? fmt::format("no answer within {} s", timeout_s)
        : target.is_remote && captured.exit_code == kSshFailed
            ? one_line(captured.error_output)
            : fmt::format("the shell there ended early ({}): {}", captured.exit_code, one_line(captured.error_output));
    recording.put({target.host, read.readings.empty() ? "ssh" : "end", "", why.empty() ? "no answer" : why});
  }
}

}  // namespace

Recording gather(const Scope& scope) {
  Targets all = targets_of(scope);
  std::vector<Launch> launches;
  for (const Target& one : all.targets) {
    launches.push_back(one.shell);
  }
  const std::vector<std::string> inputs(launches.size(), kLookScript);
  const std::vector<Captured> said = run_all(launches, inputs, scope.timeout_s);
  Recording recording = std::move(all.known);
  for (size_t i = 0; i < said.size(); ++i) {
    add_captured(recording, all.targets[i], said[i], scope.timeout_s);
  }
  return recording;
}

void carry_out(const Scope& scope, const Step& step) {
  const Targets all = targets_of(scope);
  const auto found = std::ranges::find(all.targets, step.host, &Target::host);
  if (found == all.targets.end() && step.host != kNoHost) {
    throw UsageError(fmt::format("{} is none of the machines that were looked at", step.host));
  }
  const Target target = step.host == kNoHost ? this_machine() : *found;
  const Captured said =
      run_captured(step.by == By::root ? target.root_shell : target.shell, step.command + "\n", kMendPatienceS);
  if (said.is_late || said.exit_code != 0) {
    throw UsageError(fmt::format("{}: `{}` {}: {}", step.host, step.command,
                                 said.is_late ? "did not end in time" : fmt::format("ended with {}", said.exit_code),
                                 one_line(said.error_output.empty() ? said.output : said.error_output)));
  }
}

Recording plan_in(const Scope& scope) { return targets_of(scope).known; }

}  // namespace ringbolt::tools::doctor
