#pragma once

#include <string>

namespace ringbolt::tools {

struct AgentOptions {
  std::string cluster;          ///< empty: $RINGBOLT_CLUSTER, or the only one
  std::string node;             ///< number or name; empty: $RINGBOLT_NODE
  bool starts_missing = false;  ///< instead: starts those of the cluster's agents that are missing, and returns
  int ready_fd = -1;            ///< gets a line when it has entered the roster, and one when it serves; -1: none
};

/// `ringbolt agent`: serves ringbolt0 of one node until SIGTERM or SIGINT, and meets the others anew when nodes that
/// have gone can be reached again. Returns the exit code. Throws UsageError and base::Error.
int agent_run(const AgentOptions& options);

}  // namespace ringbolt::tools
