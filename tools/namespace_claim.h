#pragma once

#include <string>

#include "base/unique_fd.h"
#include "cluster/runtime_dir.h"

namespace ringbolt::tools {

/// A name for network namespaces that is ours as long as the cluster stands; the lock as long as this value lives.
struct NamespaceClaim {
  base::UniqueFd lock;
  bool had_leftovers = false;  ///< namespaces of a dead cluster of that name were removed
};

// Names of network namespaces are the machine's, but clusters are told apart by runtime folder and name. So a cluster
// of namespaces claims its name for the machine: /run/ringbolt/<name> is a link to the cluster's folder. A lock there
// serialises those who make and remove them; who waits for it in vain throws UsageError.

/// Makes the name `cluster` ours and removes what a dead cluster of the name has left. Throws UsageError if a cluster
/// of another runtime folder is alive under it.
NamespaceClaim claim_namespaces(const cluster::RuntimeDir& dir, const std::string& cluster);

/// Whether the namespaces of that name are those of the cluster in `dir`.
bool owns_namespaces(const cluster::RuntimeDir& dir, const std::string& cluster);

/// Removes the namespaces of a cluster of ours, and then the claim; nothing if there is none. The caller holds the
/// claim.
void give_up_namespaces(const cluster::RuntimeDir& dir, const std::string& cluster);
/// The same for a caller that does not hold it.
void release_namespaces(const cluster::RuntimeDir& dir, const std::string& cluster);

/// Removes the namespaces of a name that no cluster owns any more. Returns whether there were some. Throws UsageError
/// if a cluster of another runtime folder owns them.
bool remove_dead_namespaces(const cluster::RuntimeDir& dir, const std::string& cluster);

/// Releases every claim of this runtime folder whose cluster is not there: an `up` or `down` was interrupted. Returns
/// how many.
size_t release_dead_claims(const cluster::RuntimeDir& dir);

}  // namespace ringbolt::tools
