#pragma once

#include <string>

#include "node_environment.h"

namespace ringbolt::tools {

/// The environment of the node `node` (number, name, or "local" for the default device) of the cluster `cluster`
/// (empty: as open_cluster() chooses). Throws UsageError or base::Error.
NodeEnvironment environment_of(const std::string& cluster, const std::string& node);

}  // namespace ringbolt::tools
