#include <algorithm>

#include <fmt/format.h>

#include "agent/agents.h"
#include "base/error.h"
#include "base/say.h"
#include "cluster/names.h"
#include "cluster_state.h"
#include "commands.h"
#include "failure.h"
#include "hosts.h"
#include "namespace_claim.h"
#include "programs.h"
#include "stream_setup.h"

namespace ringbolt::tools {
namespace {

/// What is left where there is no cluster any more: namespaces whose `up` or whose folder met its end.
bool remove_remains(const cluster::RuntimeDir& dir, const DownOptions& options) {
  const std::vector<std::string> names = cluster_names(dir);
  if (!options.is_forced || !cluster::is_cluster_name(options.cluster) ||
      std::find(names.begin(), names.end(), options.cluster) != names.end()) {
    return false;
  }
  const base::UniqueFd lock = lock_clusters(dir);
  return remove_dead_namespaces(dir, options.cluster);
}

/// Streams that a cluster has made which never came up, or which was forced down while a machine was out of reach.
bool remove_left_streams(const cluster::RuntimeDir& dir, const DownOptions& options) {
  if (!options.is_forced) {
    return false;
  }
  const std::vector<std::string> whole = cluster_names(dir);
  bool has_removed = false;
  for (const std::string& name : clusters_with_streams(dir)) {
    if (std::ranges::find(whole, name) == whole.end() && (options.cluster.empty() || options.cluster == name)) {
      const base::UniqueFd lock = lock_clusters(dir);
      if (const std::vector<std::string> problems = remove_streams(dir, name); !problems.empty()) {
        throw UsageError(fmt::format("{}", fmt::join(problems, "\n")));
      }
      fmt::print("took away the Thunderbolt streams that a dead cluster {} has left\n", name);
      has_removed = true;
    }
  }
  return has_removed && (!options.cluster.empty() || whole.empty());
}

/// Whose programs nobody can tell is taken down by force alone.
std::vector<Program> programs_of(const cluster::RuntimeDir& dir, const std::string& name, bool is_forced) {
  try {
    return agent::without_agents(dir, name, whole_cluster_programs(dir, name));
  } catch (const base::Error& error) {
    if (!is_forced) {
      throw UsageError(fmt::format(
          "which programs run in cluster \"{}\" can't be told, and nothing was removed: {}; give --force to "
          "take it down all the same (they then get errors as if every cable was cut)",
          name, error.what()));
    }
    base::say(fmt::format("ringbolt down: {}\n", error.what()));
    cut_every_cable(dir, name);
    return {};
  }
}

}  // namespace

int down(const DownOptions& options) {
  const cluster::RuntimeDir dir = cluster::RuntimeDir::from_environment();
  if (remove_remains(dir, options)) {
    fmt::print("removed the network namespaces that a dead cluster {} has left\n", options.cluster);
    return kOk;
  }
  if (remove_left_streams(dir, options)) {
    return kOk;
  }
  choose_cluster(dir, options.cluster);  // refuses before anything is made
  const base::UniqueFd lock = lock_clusters(dir);
  const std::string name = choose_cluster(dir, options.cluster);  // another `down` may have been faster
  const std::vector<Program> programs = programs_of(dir, name, options.is_forced);
  if (!programs.empty()) {
    if (!options.is_forced) {
      throw UsageError(
          fmt::format("programs run in cluster \"{}\": {}; end them, or give --force (they then get errors "
                      "as if every cable was cut)",
                      name, list_programs(programs)));
    }
    cut_every_cable(dir, name);
  }
  agent::stop_agents(dir, name);
  remove_whole_cluster(dir, name, options.is_forced);
  remove_leftovers(dir);
  if (!options.is_quiet || !programs.empty()) {
    fmt::print("cluster {} is down{}\n", name,
               programs.empty() ? "" : fmt::format("; still running, without cables: {}", list_programs(programs)));
  }
  return kOk;
}

}  // namespace ringbolt::tools
