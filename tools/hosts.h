#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cluster_state.h"
#include "port_counts.h"
#include "ssh.h"

/// What the machine that commands does to a cluster of hosts. All of them are asked at the same time.
namespace ringbolt::tools {

/// Makes the state of every node on its host. Throws UsageError after removing what was made. Blocks for kSshPatienceS
/// at most, and as long again where something is to be removed.
void make_host_nodes(const cluster::Cluster& model);

/// Removes the state of every node from its host. Throws UsageError naming those where that failed, unless `is_forced`:
/// then it only says so on stderr.
void remove_host_nodes(const cluster::Cluster& model, bool is_forced);

/// remove_cluster(), and before that the nodes of a cluster of hosts and the streams that were made for it. Throws
/// UsageError if that fails on a host, unless `is_forced`: then it only says so on stderr.
void remove_whole_cluster(const cluster::RuntimeDir& dir, const std::string& name, bool is_forced);

/// cluster_programs(), or those on the hosts that can be asked.
std::vector<Program> whole_cluster_programs(const cluster::RuntimeDir& dir, const std::string& name);

/// The programs that run on the hosts, with their ports. Those that can't be asked in `timeout_s` are named in
/// `problems`.
std::vector<Program> host_programs(const cluster::Cluster& model, std::vector<std::string>& problems,
                                   double timeout_s = kSshPatienceS);

/// What the ports of the hosts have counted. Those that can't be asked are named in `problems`.
std::vector<PortCounts> host_counts(const cluster::Cluster& model, std::vector<std::string>& problems);

/// Cuts or heals a cable at both of its ends; returns how many programs were told. Throws UsageError.
size_t set_host_cable(const cluster::Cluster& model, uint32_t cable, bool is_up);

/// Gives all nodes these faults; returns how many programs were told. Throws UsageError.
size_t set_host_faults(const cluster::Cluster& model, const std::string& plan);

}  // namespace ringbolt::tools
