#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cluster/model.h"
#include "programs.h"

namespace ringbolt::tools {

/// Throws UsageError with the remedy unless this process may make network namespaces.
void require_namespace_rights();

/// The file of a node's namespace: "/run/netns/rb-ring4-0".
std::string namespace_path(const std::string& cluster, uint32_t node);

/// The names of the namespaces of cluster `cluster` that are there, whole or not, of whichever `up` made them.
std::vector<std::string> namespaces_of(const std::string& cluster);

/// Why the namespaces of a cluster are not all there, or "". Throws base::Error where nobody can tell.
std::string missing_namespace(const cluster::Cluster& model);

/// Makes a namespace for each node, a pair of interfaces for each cable, with addresses, MTU and rate, and the
/// management network if it has one, all up. The model must have been through cluster::plan_namespaces(). Throws
/// UsageError, then some of it may be there.
void make_namespaces(const cluster::Cluster& model);

/// Removes the namespaces of that cluster by their names, also when only some are there. What runs in one goes on
/// without interfaces. Throws UsageError if some are still there afterwards.
void remove_namespaces(const std::string& cluster);

/// The processes in the namespaces of a cluster, by pid; also those that entered one by setns(2), as `ringbolt exec`
/// does. Throws base::Error where /proc does not tell.
std::vector<Program> namespace_programs(const std::string& cluster);

/// Pulls a cable (both interfaces go down) or plugs it in (they come up and get their addresses again). Throws
/// UsageError.
void set_cable_link(const cluster::Cluster& model, uint32_t cable, bool is_up);

/// The batch for `ip` that brings a port's interface up and gives it the addresses that it should have. Thread-safe.
std::string link_up_script(const cluster::Port& port);

/// The batch for `tc` that holds what `netdev` sends to a rate. Thread-safe.
std::string rate_script(const std::string& netdev, uint32_t rate_mbps, uint32_t mtu);

/// Moves the calling process, which must have one thread only, into the network namespace whose file is `path`, and
/// gives it a /sys that shows the interfaces there. Only async-signal-safe calls. Returns nullptr, or the call that
/// failed; then errno says why, and the process is fit only to report it.
const char* enter_namespace(const char* path);

}  // namespace ringbolt::tools
