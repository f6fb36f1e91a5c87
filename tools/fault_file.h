#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cluster_state.h"
#include "fault/rule.h"

namespace ringbolt::tools {

/// The faults of a cluster, as its file has them; none without a file. Throws UsageError for a damaged one.
fault::Plan load_faults(const cluster::RuntimeDir& dir, const std::string& name);

/// For each cable of the cluster, whether faults keep everything from it until they are cleared: it is pulled, or one
/// of its machines is frozen, from the beginning and for good.
std::vector<bool> dead_cables(const LiveCluster& live);

/// Puts `plan` in the place of the cluster's faults, in one step, and tells the programs here. Returns how many were
/// told. The caller holds lock_clusters(). Throws base::Error.
size_t store_faults(LiveCluster& live, const fault::Plan& plan);

/// Faults as users write them: nodes by number or name, cables as A-B. Throws UsageError naming the line, also for
/// faults that fit no port of the cluster.
fault::Plan read_faults(const LiveCluster& live, const std::string& text);

}  // namespace ringbolt::tools
