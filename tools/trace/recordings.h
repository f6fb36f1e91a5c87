#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cluster_state.h"

namespace ringbolt::tools::trace_command {

/// The recorders' files in a folder, in order; none if it is not there. Throws base::Error.
std::vector<std::string> files_in(const std::string& folder);
/// Where programs on a cluster of this machine record themselves, and those outside clusters.
std::string folder_of(const cluster::RuntimeDir& dir, const std::string& cluster);
std::string folder_outside(const cluster::RuntimeDir& dir);

/// Writes the page of what programs of the cluster have recorded that began at `since_ns` (CLOCK_MONOTONIC) or later.
/// A file that is no timeline is passed over. Throws base::Error where the folder can't be listed.
std::string run_page(const LiveCluster& live, uint64_t since_ns);

}  // namespace ringbolt::tools::trace_command
