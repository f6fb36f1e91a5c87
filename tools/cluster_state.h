#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "cluster/control_page.h"
#include "cluster/model.h"
#include "cluster/runtime_dir.h"
#include "programs.h"

namespace ringbolt::tools {

/// A cluster that is up, as its files tell. Not thread-safe.
struct LiveCluster {
  cluster::RuntimeDir dir;
  cluster::Cluster model;
  cluster::ControlPage control;
  std::optional<uint32_t> here = std::nullopt;  ///< of a cluster of hosts, on one of them: the node that it is

  /// Whether its nodes are other machines, which this one commands.
  bool is_remote() const { return model.kind == cluster::Kind::hosts && !here; }
};

/// Names of the clusters that have state, in order, whole or not. Throws base::Error if nobody can tell.
std::vector<std::string> cluster_names(const cluster::RuntimeDir& dir);

/// Opens the cluster `wanted`; if that is empty $RINGBOLT_CLUSTER, else the only one. Throws UsageError naming the
/// choice and the remedy, also for state that a crash or a reboot has left unusable.
LiveCluster open_cluster(const std::string& wanted);

/// The same choice, by name alone: also for state that can't be opened.
std::string choose_cluster(const cluster::RuntimeDir& dir, const std::string& wanted);

/// Whether a refused look says that something is not there or not what it should be. Other errors say only that we may
/// not or can't look, and prove nothing.
bool is_evidence(int error);

/// What could be found out about the state of a cluster. Only what was read is evidence: state that can't be looked at,
/// for want of rights, descriptors or memory, is neither whole nor stale, and nobody removes it but `down`.
struct Condition {
  enum class Kind { whole, stale, unknown };
  Kind kind = Kind::whole;
  std::string reason = {};  ///< empty if it is whole

  bool is_whole() const { return kind == Kind::whole; }
  /// "the state of cluster "x" is stale: ...; remove it: ...", or that it can't be looked at.
  std::string text(const std::string& name) const;
};

/// Throws nothing but for want of memory: what can't be looked at is its answer.
Condition condition_of(const cluster::RuntimeDir& dir, const std::string& name);

/// Serialises `up` and `down` of one user. Waits a bounded time for the other; then throws UsageError.
base::UniqueFd lock_clusters(const cluster::RuntimeDir& dir);

/// Writes all files of a cluster under a hidden name, makes its network namespaces if it has some, then renames:
/// nothing half-made is ever seen. The caller holds lock_clusters(), has checked that the name is free, and has claimed
/// it if there are namespaces. Throws after removing what it made. `here`: on a host, the node that it is.
void make_cluster(const cluster::RuntimeDir& dir, const cluster::Cluster& model,
                  std::optional<uint32_t> here = std::nullopt);

/// Sets every cable of a cluster to cut, if its state is whole, and tells its programs.
void cut_every_cable(const cluster::RuntimeDir& dir, const std::string& name);

/// Renames the state away, then removes it, and the network namespaces if there are some. The caller holds
/// lock_clusters(). Throws base::Error.
void remove_cluster(const cluster::RuntimeDir& dir, const std::string& name);

/// Removes what interrupted make_cluster() and remove_cluster() left; returns how many. The caller holds the lock.
size_t remove_leftovers(const cluster::RuntimeDir& dir);

/// The processes that have devices of the cluster open or are in its network namespaces, by pid. Throws base::Error if
/// nobody can tell.
std::vector<Program> cluster_programs(const cluster::RuntimeDir& dir, const std::string& name);

/// Tells all programs of the cluster that its control page has changed; returns how many were told.
size_t poke_cluster(const cluster::RuntimeDir& dir, const std::string& name);

/// Which cables are up just now, as `ringbolt cut` has left them; faults don't count. Shape: [cables].
std::vector<bool> cables_up(const LiveCluster& live);

/// Where the synthetic /sys and /dev of a node's programs are, once one was started.
std::string sysroot_of(const LiveCluster& live, uint32_t node);

/// The node of that number or name. Throws UsageError that says which there are.
uint32_t find_node(const cluster::Cluster& model, const std::string& node);

/// Takes the lock of file `path`, which is made if it is missing, until the descriptor is closed. Waits 10 s at most
/// for another `up` or `down` that holds it; then throws UsageError. Throws base::Error if there can be no such file.
base::UniqueFd lock_file(const std::string& path);

}  // namespace ringbolt::tools
