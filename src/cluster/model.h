#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cluster/limits.h"
#include "cluster/node_file.h"

namespace ringbolt::cluster {

/// One end of a cable: a port, by index, of a node, by index.
struct CableEnd {
  uint32_t node = 0;
  uint32_t port = 0;
  friend bool operator==(const CableEnd&, const CableEnd&) = default;
};

/// A cable between two ports. With a == b it is a loopback plug: the port reaches itself.
struct Cable {
  CableEnd a;
  CableEnd b;
  uint32_t speed_gbps = kDefaultSpeedGbps;  ///< as declared; nothing enforces it
  friend bool operator==(const Cable&, const Cable&) = default;
};

/// A machine: its name and the device names of its ports, in order.
struct Node {
  std::string name;
  std::vector<std::string> ports;
  friend bool operator==(const Node&, const Node&) = default;
};

/// A whole cluster as a value. Node, port and cable numbers are indices into these vectors.
struct Cluster {
  std::string name;
  std::vector<Node> nodes;
  std::vector<Cable> cables;
  friend bool operator==(const Cluster&, const Cluster&) = default;
};

/// "rdma_en2" for port 0, and so on. Thread-safe.
std::string port_device(uint32_t port_index);

/// What a process on `node` may know: its cabled ports in order, with the addresses of address.h. Ports without a
/// cable are left out: they could reach nothing. `node` must exist. Thread-safe.
NodeSpec node_spec(const Cluster& cluster, uint32_t node);

/// "n0:rdma_en2". The end must exist. Thread-safe.
std::string end_text(const Cluster& cluster, const CableEnd& end);

/// All cables between two nodes (in either direction), as indices in ascending order. Thread-safe.
std::vector<uint32_t> cables_between(const Cluster& cluster, uint32_t a, uint32_t b);

}  // namespace ringbolt::cluster
