#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/parsed.h"

namespace ringbolt::cluster {

/// One port of a node and what is at the other end of its cable. GUIDs and addresses are in host order.
struct PortSpec {
  std::string device;  ///< name of the verbs device, "rdma_en2"
  uint64_t guid = 0;
  uint32_t ipv4 = 0;   ///< in 127.0.0.0/8; with a netdev: of that, 0 if it has none; with a stream: stream_ipv4()
  uint32_t cable = 0;  ///< index into the control page
  uint32_t speed_gbps = 0;
  uint32_t peer_node = 0;
  std::string peer_device;
  uint64_t peer_guid = 0;  ///< equals guid for a loopback plug
  uint32_t peer_ipv4 = 0;
  std::string netdev = {};  ///< interface that carries the port
  std::string stream = {};  ///< or streams, with + between rails; both empty: emulated on shared memory

  friend bool operator==(const PortSpec&, const PortSpec&) = default;
};

/// What a process on a node knows of its cluster: its own ports. The text form is docs/cluster.md, "node files". In
/// shape and limits what parse_node() has checked; a value, owned by whoever loaded it.
struct NodeSpec {
  std::string cluster;
  uint32_t n_cables = 0;  ///< of the whole cluster; the control page has as many
  uint32_t node = 0;
  std::string name;
  std::vector<PortSpec> ports;   ///< all with a netdev, all with a stream, or none with either
  std::string like = {};         ///< profile of its devices; empty: none
  uint32_t n_overlay_nodes = 0;  ///< that ringbolt0 leads to, this one among them; 0: there is none

  bool has_netdevs() const { return !ports.empty() && !ports.front().netdev.empty(); }
  bool has_streams() const { return !ports.empty() && !ports.front().stream.empty(); }
  /// Whether the ports are no emulated ones: then the node has slots of its own, RuntimeDir::node_slots().
  bool is_apart() const { return has_netdevs() || has_streams(); }

  friend bool operator==(const NodeSpec&, const NodeSpec&) = default;
};

/// Reads the text of a node file. Any bytes are safe to pass. Refuses what emit_node() would not write: unknown
/// words, numbers out of range, duplicate devices, GUIDs, addresses or cables. Thread-safe. Errors name the line,
/// counted from 1; 0: the text as a whole.
Parsed<NodeSpec> parse_node(std::string_view text);

/// Writes the text that parse_node() reads. Thread-safe.
std::string emit_node(const NodeSpec& spec);

/// parse_node() of the file at `path`. Throws base::Error that names the file, the line and the remedy. Thread-safe.
/// EINVAL for a text that is refused, else the errno of open or read, EFBIG beyond kMaxNodeFileBytes.
NodeSpec load_node(const std::string& path);

}  // namespace ringbolt::cluster
