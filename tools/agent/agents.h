#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "agent/held_signals.h"
#include "cluster/runtime_dir.h"
#include "cluster_state.h"
#include "programs.h"

namespace ringbolt::tools::agent {

/// Starts an agent on every node of a cluster with an overlay that has none, apart from this process and its terminal,
/// and returns when each of these has met those that cables join it with: at most a minute. Returns how many it
/// started. Throws UsageError with what they said if they don't meet, or a signal comes meanwhile; then those that it
/// started are ended.
/// One thread; others may do the same in other processes at the same time.
size_t start_agents(const LiveCluster& live, const HeldSignals& signals);

/// What an agent tells by --ready-fd who has started it: that it has entered the roster, and that it serves.
inline constexpr std::string_view kHere = "here\n";
inline constexpr std::string_view kReady = "ready\n";

/// One node's agent as others see it.
struct AgentSeen {
  enum class State : uint8_t { none, stopped, runs };
  State state = State::none;
  pid_t pid = 0;
  std::optional<uint32_t> meeting = {};  ///< its number; nothing while it waits for others
};
/// By node; empty for a cluster without an overlay. Reads a file of each node. Throws base::Error where nobody can
/// tell.
std::vector<AgentSeen> look_at_agents(const LiveCluster& live);

/// Lines for people: which nodes no cable that is up joins with the others. Empty: there are none.
std::string parts_text(const LiveCluster& live);

/// The file with the secret by which the cluster's agents know each other, made if it is missing. Throws base::Error,
/// and UsageError where others keep the folder of clusters locked.
std::string secret_file(const LiveCluster& live);

/// Ends the agents of a cluster: politely, then with SIGKILL. Returns how many there were. `name` need not be whole.
/// Blocks for some seconds for one that does not end politely.
size_t stop_agents(const cluster::RuntimeDir& dir, const std::string& name);

/// Takes the agents of a cluster out of `programs`. Throws base::Error where nobody can tell which run.
std::vector<Program> without_agents(const cluster::RuntimeDir& dir, const std::string& name,
                                    std::vector<Program> programs);

}  // namespace ringbolt::tools::agent
