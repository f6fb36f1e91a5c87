#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cluster/ip_address.h"
#include "cluster/limits.h"
#include "cluster/node_file.h"

namespace ringbolt::cluster {

/// One end of a cable: a port, by index, of a node, by index.
struct CableEnd {
  uint32_t node = 0;
  uint32_t port = 0;
  friend bool operator==(const CableEnd&, const CableEnd&) = default;
};

/// A cable between two ports. With a == b it is a loopback plug: the port reaches itself. Speeds in Gbit/s and
/// Mbit/s, for each direction.
struct Cable {
  CableEnd a;
  CableEnd b;
  uint32_t speed_gbps = kDefaultSpeedGbps;  ///< as declared; nothing enforces it
  uint32_t rate_mbps = 0;                   ///< enforced between network namespaces; 0: as fast as it goes
  std::optional<uint32_t> id = {};  ///< in the plan that it is of (docs/plan.md); here it is its index that counts
  friend bool operator==(const Cable&, const Cable&) = default;
};

/// A port: its device's name, and what carries it where that is no shared memory.
struct Port {
  std::string name;
  std::string netdev = {};                ///< interface; empty: none, or not known yet
  std::vector<IpAddress> addresses = {};  ///< of the interface; empty: none, or not known yet
  std::string stream = {};                ///< streams between hosts instead (docs/streams.md); empty: none
  friend bool operator==(const Port&, const Port&) = default;
};

/// A machine: its name and its ports, in order.
struct Node {
  std::string name;
  std::vector<Port> ports;
  std::string host = {};  ///< how ssh reaches it; empty: by its name
  std::string like = {};  ///< profile of its devices (docs/profiles.md); empty: none
  friend bool operator==(const Node&, const Node&) = default;
};

/// What the nodes of a cluster are.
enum class Kind : uint8_t {
  emulated,  ///< names only: one machine, shared memory
  netns,     ///< network namespaces of one machine, a pair of interfaces for each cable
  hosts,     ///< machines reached by ssh
};

/// "emulated", "netns" or "hosts". Thread-safe.
const char* kind_text(Kind kind);

/// A whole cluster as a value. Node, port and cable numbers are indices into these vectors. Functions that take one
/// assume what parse_cluster() checks: every end exists, no port has two cables, names are unique and pass names.h.
/// Whoever builds one otherwise keeps to that.
struct Cluster {
  std::string name;
  std::vector<Node> nodes;
  std::vector<Cable> cables;
  Kind kind = Kind::emulated;
  uint32_t mtu = 0;            ///< of the interfaces between network namespaces; 0: kDefaultMtu
  std::string prefix = {};     ///< where Ringbolt is installed on hosts; empty: not known
  bool has_overlay = false;    ///< an agent per node makes ringbolt0, on which every node reaches every other
  bool has_management = true;  ///< of network namespaces: they share a network beside the cables (address_plan.h)
  friend bool operator==(const Cluster&, const Cluster&) = default;
};

/// "rdma_en2" for port 0, and so on. Thread-safe.
std::string port_device(uint32_t port_index);

/// What a process on `node` may know: its cabled ports in order, with the addresses of address.h, or those of the
/// interface that carries the port. Ports without a cable are left out: they could reach nothing. `node` must exist,
/// and if the kind is not `emulated`, its cabled ports have netdevs or streams. Thread-safe.
NodeSpec node_spec(const Cluster& cluster, uint32_t node);

/// "n0:rdma_en2". The end must exist. Thread-safe.
std::string end_text(const Cluster& cluster, const CableEnd& end);

/// The first IPv4 address of a port's interface in host order; 0 if it has none. Thread-safe.
uint32_t first_ipv4(const Port& port);

/// All cables between two nodes (in either direction), as indices in ascending order. Thread-safe.
std::vector<uint32_t> cables_between(const Cluster& cluster, uint32_t a, uint32_t b);

}  // namespace ringbolt::cluster
