#pragma once

#include <string>
#include <vector>

#include "agent/held_signals.h"
#include "cluster/runtime_dir.h"
#include "cluster_state.h"
#include "programs.h"

namespace ringbolt::tools::agent {

/// Starts an agent on every node of a cluster with an overlay that has none, apart from this process and its terminal,
/// and returns when these have met: at most a minute. Returns how many it started. Throws UsageError with what they
/// said if they don't meet, or a signal comes meanwhile; then those that it started are ended.
size_t start_agents(const LiveCluster& live, const HeldSignals& signals);

/// How many nodes have an agent.
size_t count_agents(const LiveCluster& live);

/// Ends the agents of a cluster: politely, then with SIGKILL. Returns how many there were. `name` need not be whole.
size_t stop_agents(const cluster::RuntimeDir& dir, const std::string& name);

/// Takes the agents of a cluster out of `programs`.
std::vector<Program> without_agents(const cluster::RuntimeDir& dir, const std::string& name,
                                    std::vector<Program> programs);

}  // namespace ringbolt::tools::agent
