#include <algorithm>

#include <fmt/format.h>

#include "cluster/names.h"
#include "cluster_state.h"
#include "commands.h"
#include "failure.h"
#include "hosts.h"
#include "namespace_claim.h"
#include "programs.h"

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

}  // namespace

int down(const DownOptions& options) {
  const cluster::RuntimeDir dir = cluster::RuntimeDir::from_environment();
  if (remove_remains(dir, options)) {
    fmt::print("removed the network namespaces that a dead cluster {} has left\n", options.cluster);
    return kOk;
  }
  const std::string name = choose_cluster(dir, options.cluster);
  const base::UniqueFd lock = lock_clusters(dir);
  const std::vector<Program> programs = whole_cluster_programs(dir, name);
  if (!programs.empty()) {
    if (!options.is_forced) {
      throw UsageError(
          fmt::format("programs run in cluster \"{}\": {}; end them, or give --force (they then get errors "
                      "as if every cable was cut)",
                      name, list_programs(programs)));
    }
    cut_every_cable(dir, name);
  }
  remove_whole_cluster(dir, name, options.is_forced);
  remove_leftovers(dir);
  fmt::print("cluster {} is down{}\n", name,
             programs.empty() ? "" : fmt::format("; still running, without cables: {}", list_programs(programs)));
  return kOk;
}

}  // namespace ringbolt::tools
