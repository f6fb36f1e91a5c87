#pragma once

#include <string>
#include <vector>

#include "cluster/runtime_dir.h"
#include "cluster/thunderbolt.h"

/// Makes the Thunderbolt streams of a cluster of hosts, and takes them away again. What a cluster has made lies in
/// <runtime folder>/streams/<cluster>.json from before it is made until it is gone, so that no end of a command loses
/// it.
namespace ringbolt::tools {

/// What to type, as root, on which machine and in which order. Thread-safe.
std::string setup_text(const std::vector<std::string>& hosts, const std::vector<cluster::StreamSetup>& setups);

/// Makes the streams on all hosts; those that come first, then the others. Blocks for a minute and a half at most.
/// Throws UsageError that names every host where that failed, and takes back what it made, which may take 45 s more.
/// The caller holds lock_clusters(). Throws base::Error for a damaged record.
void make_streams(const cluster::RuntimeDir& dir, const std::string& cluster, const std::vector<std::string>& hosts,
                  const std::vector<cluster::StreamSetup>& setups);

/// Takes away what was made for this cluster, if there is something. Returns the problems; what could not be taken away
/// is remembered further. The caller holds lock_clusters().
std::vector<std::string> remove_streams(const cluster::RuntimeDir& dir, const std::string& cluster);

/// Clusters, whole or gone, that have made streams.
std::vector<std::string> clusters_with_streams(const cluster::RuntimeDir& dir);

}  // namespace ringbolt::tools
