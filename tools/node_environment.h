#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cluster/runtime_dir.h"
#include "cluster_state.h"

namespace ringbolt::tools {

/// One environment variable.
struct Variable {
  std::string name;
  std::string value;
  friend bool operator==(const Variable&, const Variable&) = default;
};

/// What a process on a node needs in its environment, over that of this process.
struct NodeEnvironment {
  std::vector<Variable> set;
  std::vector<std::string> unset;  ///< left by another node or cluster; would mislead
  std::string netns = {};          ///< file of the network namespace that they must be in; empty: any
};

/// Where this Ringbolt is installed: the folder that holds bin/ringbolt.
std::string own_prefix();

/// The folder of libibverbs.so.1 and libringbolt-paths.so, beside this executable's: ../lib/ringbolt. Throws
/// UsageError if they are not there.
std::string library_folder();

/// The environment of node `node`. Makes its synthetic /sys if it is missing. Throws UsageError if the libraries are
/// missing.
NodeEnvironment node_environment(const LiveCluster& live, uint32_t node);

/// The environment of the default device, outside any cluster. Makes its synthetic /sys if it is missing.
NodeEnvironment local_environment(const cluster::RuntimeDir& dir);

/// This process's environment with the changes made, as "NAME=value". Not while another thread changes it.
std::vector<std::string> merged_environment(const NodeEnvironment& changes);

/// `text` as one word of a POSIX shell.
std::string shell_quoted(const std::string& text);

/// The list `list` (separated by ':') with `entry` first, or last, and nowhere else.
std::string with_first(const std::string& list, const std::string& entry);
std::string with_last(const std::string& list, const std::string& entry);

/// The environment of the node `node` (number, name, or "local" for the default device) of the cluster `cluster`
/// (empty: as open_cluster() chooses). Throws UsageError or base::Error.
NodeEnvironment environment_of(const std::string& cluster, const std::string& node);

}  // namespace ringbolt::tools
