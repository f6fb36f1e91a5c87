#pragma once

#include <string>

#include "cluster_state.h"

/// The part of a cluster of hosts that lies on each of them. A node's state is a runtime folder of its own,
/// <runtime folder>/nodes/<cluster>/<node>, so that the machine which commands may be a node itself.
namespace ringbolt::tools {

/// Makes the runtime folder of node `text` ("NAME/K") this process's. Throws UsageError for text that is none.
void enter_host_node(const std::string& text);

struct HostOptions {
  std::string node;    ///< as for enter_host_node(), which was called; look needs none
  std::string action;  ///< look, up, down, programs, counters, cable or faults
  uint32_t cable = 0;
  bool is_up = false;
  bool is_forced = false;
};

/// What the machine that commands asks of a host; hidden from users. Throws UsageError or base::Error.
int host(const HostOptions& options);

}  // namespace ringbolt::tools
