#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>

#include <fmt/format.h>

#include "agent/agents.h"
#include "agent/held_signals.h"
#include "base/say.h"
#include "cabling_file.h"
#include "cluster/address_plan.h"
#include "cluster/names.h"
#include "cluster/topology.h"
#include "cluster_state.h"
#include "commands.h"
#include "failure.h"
#include "host_survey.h"
#include "hosts.h"
#include "like.h"
#include "namespace_claim.h"
#include "namespaces.h"
#include "programs.h"
#include "progress_line.h"
#include "rate.h"
#include "stream_setup.h"

namespace ringbolt::tools {
namespace {

constexpr size_t kMostOverlayNodes = 64;  // agents watch each other: as many as a group watches

/// "examples/two racks.json" -> "two-racks", "ü 3.json" -> "3": a name for a file that gives none.
std::string name_of_file(const std::string& path) {
  std::string stem = path.substr(path.rfind('/') + 1);
  stem = stem.substr(0, stem.rfind('.'));
  for (char& c : stem) {
    if (!cluster::is_cluster_name(std::string("x") + c)) {
      c = '-';
    }
  }
  stem.erase(0, std::min(stem.find_first_not_of(".-"), stem.size()));
  return stem.empty() ? "cluster" : stem.substr(0, cluster::kMaxNameBytes);
}

/// Gives the model its name: the option's, else its own, else `fallback`.
void settle_name(const UpOptions& options, const std::string& fallback, cluster::Cluster& model) {
  if (!options.name.empty()) {
    model.name = options.name;
  } else if (model.name.empty()) {
    model.name = fallback;
  }
  if (!cluster::is_cluster_name(model.name)) {
    throw UsageError(
        fmt::format("\"{}\" is no name for a cluster: give --name and 1 to {} of [A-Za-z0-9_.-], not "
                    "beginning with . or -",
                    model.name, cluster::kMaxNameBytes));
  }
  if (!options.is_quiet && maker_of(model.name)) {
    throw UsageError(
        fmt::format("\"{}\" is a name of `ringbolt run --emulate`, which takes such a cluster down once no process has "
                    "that number: give another --name",
                    model.name));
  }
}

/// What the options make of it.
void settle_kind(const UpOptions& options, cluster::Cluster& model) {
  model.kind = cluster::Kind::emulated;
  if (!options.prefix.empty()) {
    throw UsageError("--prefix is for --hosts");
  }
  if (!options.is_netns) {
    if (options.mtu != 0 || !options.rate.empty() || !options.has_management) {
      throw UsageError("--mtu, --rate and --no-management are for interfaces: give --netns too, or leave them out");
    }
    return;
  }
  require_namespace_rights();
  model.mtu = options.mtu != 0 ? options.mtu : model.mtu;
  if (!options.rate.empty()) {
    const std::optional<uint32_t> rate = parse_rate_mbps(options.rate);
    if (!rate) {
      throw UsageError(fmt::format("--rate \"{}\" is no rate from 1Mbit to {}Gbit, as in 2.5Gbit or 100Mbit",
                                   options.rate, cluster::kMaxSpeedGbps));
    }
    for (cluster::Cable& cable : model.cables) {
      cable.rate_mbps = *rate;
    }
  }
  model.has_management = model.has_management && options.has_management;
  cluster::plan_namespaces(model);
  if (const std::string conflict = model.has_management ? cluster::management_conflict(model) : ""; !conflict.empty()) {
    throw UsageError(conflict + ": choose another, or give --no-management");
  }
}

cluster::Cluster wanted_cluster(const UpOptions& options) {
  cluster::Cluster model;
  if (cluster::names_topology(options.spec)) {
    cluster::Parsed<cluster::Cluster> parsed = cluster::parse_topology(options.spec);
    if (!parsed) {
      throw UsageError(fmt::format("\"{}\": {}", options.spec, parsed.error().text()));
    }
    model = std::move(*parsed);
    take_likeness(model, options.like, true);
  } else if (options.spec.find('.') != std::string::npos || options.spec.find('/') != std::string::npos) {
    model = load_cabling(options.spec);
    take_likeness(model, options.like, false);
  } else {
    throw UsageError(
        fmt::format("\"{}\" is no topology (known are {}) and no path of a cluster file (give ./{} for a "
                    "file of that name)",
                    options.spec, cluster::known_topologies(), options.spec));
  }
  settle_name(options, name_of_file(options.spec), model);
  settle_kind(options, model);
  return model;
}

void settle_overlay(const UpOptions& options, cluster::Cluster& model) {
  model.has_overlay |= options.has_overlay;
  if (model.has_overlay && model.nodes.size() > kMostOverlayNodes) {
    throw UsageError(fmt::format("--overlay is for up to {} nodes, and \"{}\" has {}", kMostOverlayNodes, options.spec,
                                 model.nodes.size()));
  }
  if (model.has_overlay && model.kind == cluster::Kind::netns && !model.has_management) {
    throw UsageError("--overlay: agents meet on the management network: leave out --no-management");
  }
}

HostSurvey wanted_hosts(const UpOptions& options) {
  if (!options.spec.empty() || options.is_netns || options.mtu != 0 || !options.rate.empty() ||
      !options.has_management) {
    throw UsageError(
        "--hosts takes the machines as they are: leave --emulate, --netns, --mtu, --rate and --no-management out");
  }
  HostSurvey survey = survey_hosts(options);
  take_likeness(survey.model, options.like, false);
  settle_name(options, name_of_file(options.hosts), survey.model);
  return survey;
}

/// The streams that were set up show with some delay: udev, and what routers tell each other.
HostSurvey look_again(const UpOptions& options) {
  constexpr int kMostLooks = 6;
  const Waiting waiting("waiting for the streams to show");
  for (int look = 1;; ++look) {
    try {
      HostSurvey survey = wanted_hosts(options);
      if (survey.setups.empty()) {
        return survey;
      }
      if (look == kMostLooks) {
        throw UsageError("the streams were made, but did not get hop ids; these commands would still be needed:\n" +
                         setup_text(survey.hosts, survey.setups));
      }
    } catch (const UsageError&) {
      if (look == kMostLooks) {
        throw;
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
  }
}

/// Makes the nodes, and before that the streams if there is something to make; what of that fails leaves nothing.
void make_hosts(const cluster::RuntimeDir& dir, const UpOptions& options, HostSurvey& survey) {
  if (survey.setups.empty()) {
    make_host_nodes(survey.model);
    return;
  }
  make_streams(dir, survey.model.name, survey.hosts, survey.setups);
  try {
    survey = look_again(options);
    make_host_nodes(survey.model);
  } catch (...) {
    for (const std::string& problem : remove_streams(dir, survey.model.name)) {
      base::say(fmt::format("ringbolt up: {}\n", problem));
    }
    throw;
  }
}

/// Makes the name free, or refuses.
void clear_stale(const cluster::RuntimeDir& dir, const std::string& name) {
  const std::vector<std::string> names = cluster_names(dir);
  if (std::find(names.begin(), names.end(), name) == names.end()) {
    return;
  }
  const Condition condition = condition_of(dir, name);
  if (condition.kind == Condition::Kind::unknown) {
    throw UsageError(condition.text(name) + "; choose another --name");
  }
  const std::string& reason = condition.reason;
  if (condition.is_whole()) {
    throw UsageError(
        fmt::format("cluster \"{}\" is up already; take it down first: ringbolt down --cluster {}, or "
                    "choose another --name",
                    name, name));
  }
  const std::vector<Program> programs = cluster_programs(dir, name);
  if (!programs.empty()) {
    throw UsageError(
        fmt::format("the state of cluster \"{}\" is stale ({}), but programs still use it: {}; end them, "
                    "or ringbolt down --force --cluster {}",
                    name, reason, list_programs(programs), name));
  }
  remove_whole_cluster(dir, name, true);
  fmt::print("removed stale state of cluster {}: {}\n", name, reason);
}

/// A cluster just made, to know it again: its folder stays open.
class Made {
 public:
  explicit Made(std::string path)
      : path_(std::move(path)), folder_(::open(path_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)) {}

  bool is_there() const {
    struct stat now {
    }, then{};
    return ::stat(path_.c_str(), &now) == 0 && ::fstat(folder_.get(), &then) == 0 && now.st_dev == then.st_dev &&
           now.st_ino == then.st_ino;
  }

 private:
  std::string path_;
  base::UniqueFd folder_;
};

/// All agents, or no cluster. Meanwhile others may change this cluster, even take it down: nobody holds a lock.
void start_overlay(const cluster::RuntimeDir& dir, const std::string& name, const Made& made,
                   const agent::HeldSignals& signals) {
  try {
    agent::start_agents(open_cluster(name), signals);
    if (signals.has_come()) {
      throw UsageError("interrupted");
    }
  } catch (...) {
    try {
      const base::UniqueFd lock = lock_clusters(dir);
      if (made.is_there()) {
        agent::stop_agents(dir, name);
        remove_whole_cluster(dir, name, true);
      }
    } catch (const std::exception& error) {  // what went wrong first says more
      base::say(fmt::format("ringbolt up: {}; remove it: ringbolt down --force --cluster {}\n", error.what(), name));
    }
    throw;
  }
}

const char* place_text(cluster::Kind kind) {
  return kind == cluster::Kind::netns ? " in network namespaces" : kind == cluster::Kind::hosts ? " on hosts" : "";
}

}  // namespace

int up(const UpOptions& options) {
  if (options.hosts.empty() && options.spec.empty()) {
    throw UsageError("--emulate or --hosts is required; for example: ringbolt up --emulate ring:4");
  }
  if (options.hosts.empty() && (options.is_applied || options.over != "auto")) {
    throw UsageError("--over and --apply are for --hosts");
  }
  HostSurvey survey;
  cluster::Cluster& model = survey.model;
  if (options.has_overlay && !options.hosts.empty()) {
    throw UsageError("--overlay is for --emulate so far: start an agent on each host with `ringbolt agent`");
  }
  if (options.hosts.empty()) {
    model = wanted_cluster(options);
    settle_overlay(options, model);
  } else {
    survey = wanted_hosts(options);
  }
  if (!survey.setups.empty() && !options.is_applied) {
    fmt::print("{}", setup_text(survey.hosts, survey.setups));
    base::say(fmt::format(
        "ringbolt up: these machines have Thunderbolt cables, but no streams over them yet: the commands above make "
        "them, and `ringbolt up --apply` runs them by ssh; nothing was changed. For network interfaces: --over "
        "network\n"));
    return kFoundProblem;
  }
  const cluster::RuntimeDir dir = cluster::RuntimeDir::from_environment();
  base::UniqueFd lock = lock_clusters(dir);
  if (const size_t count = remove_leftovers(dir); count > 0) {
    fmt::print("removed what {} interrupted command{} left in {}\n", count, count == 1 ? "" : "s", dir.clusters());
  }
  clear_stale(dir, model.name);
  std::optional<NamespaceClaim> claim;
  if (model.kind == cluster::Kind::netns) {
    claim = claim_namespaces(dir, model.name);
    if (claim->had_leftovers) {
      fmt::print("removed the network namespaces that a dead cluster {} has left\n", model.name);
    }
  }
  const agent::HeldSignals signals;
  if (model.kind == cluster::Kind::hosts) {
    make_hosts(dir, options, survey);
  }
  make_cluster(dir, model);
  if (signals.has_come()) {
    remove_whole_cluster(dir, model.name, true);
    throw UsageError("interrupted");
  }
  if (model.has_overlay) {
    const Made made(dir.cluster(model.name));
    claim.reset();
    lock.reset();  // agents may take a minute to meet
    start_overlay(dir, model.name, made, signals);
  }
  if (options.is_quiet) {
    return kOk;
  }
  fmt::print("cluster {} is up: {} node{}{}, {} cable{} (state in {})\n", model.name, model.nodes.size(),
             model.nodes.size() == 1 ? "" : "s", place_text(model.kind), model.cables.size(),
             model.cables.size() == 1 ? "" : "s", dir.cluster(model.name));
  if (model.has_overlay) {
    fmt::print("overlay: ringbolt0 on each node, relayed by {} agents\n{}", model.nodes.size(),
               agent::parts_text(open_cluster(model.name)));
  }
  return kOk;
}

}  // namespace ringbolt::tools
