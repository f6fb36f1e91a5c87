#pragma once

#include <string>

namespace ringbolt::tools {

struct AgentOptions {
  std::string cluster;  ///< empty: $RINGBOLT_CLUSTER, or the only one
  std::string node;     ///< number or name; empty: $RINGBOLT_NODE
  int ready_fd = -1;    ///< gets a line when all agents have met; -1: nobody waits for that
};

/// `ringbolt agent`: serves ringbolt0 of one node until SIGTERM or SIGINT. Returns the exit code. Throws UsageError and
/// base::Error.
int agent_run(const AgentOptions& options);

}  // namespace ringbolt::tools
