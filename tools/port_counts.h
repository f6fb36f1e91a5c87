#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cluster/runtime_dir.h"
#include "cluster_state.h"
#include "programs.h"

namespace ringbolt::tools {

/// What one port has counted since its cluster was made, or, outside clusters, since the machine started.
struct PortCounts {
  std::string cluster;  ///< empty: none
  std::string node;     ///< its name; "local" outside clusters, "netns-4026531840" of a namespace's interfaces
  std::string device;
  std::string state;             ///< "up", "cut"; empty: not known
  uint32_t speed_gbps = 0;       ///< 0: not known
  std::vector<uint64_t> values;  ///< as cluster::all_counters() lists them
};

// Each leaves out a port whose file can't be read, and says so in `problems`, naming the file and the remedy. A port
// that nobody has used is all zeros. Not for clusters whose nodes are other machines: host_counts() in hosts.h asks
// those.

/// All ports of a cluster of this machine; on a host, those of its own node.
std::vector<PortCounts> cluster_counts(const LiveCluster& live, std::vector<std::string>& problems);
/// Ports outside clusters: the default device, and what was used of interfaces and streams.
std::vector<PortCounts> local_counts(const cluster::RuntimeDir& dir, std::vector<std::string>& problems);

/// Counts in link_downed of the cable's ports (on a host, of its own) that it was cut. What can't be written is told on
/// stderr: the cable is cut all the same.
void count_cut(const LiveCluster& live, uint32_t cable);

/// As JSON on one line, and back; nullopt: it is no such text. For another machine. Any text is safe. Thread-safe.
std::string counts_json(const std::vector<PortCounts>& ports);
std::optional<std::vector<PortCounts>> parse_counts(const std::string& text);

/// Says of each program on which node of this machine's cluster it has ports open, which, and how much it has moved
/// there, as their files of counters tell. One that has none there, or whose files can't be read, stays as it is.
void add_port_uses(const LiveCluster& live, std::vector<Program>& programs);

/// As JSON for another machine, on one line that begins with {"programs":, and back from whatever stands before it.
/// Any text is safe.
std::string programs_json(const std::vector<Program>& programs);
std::vector<Program> parse_programs(const std::string& text, const std::string& node);

}  // namespace ringbolt::tools
