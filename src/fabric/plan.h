#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "fabric/graph.h"

namespace ringbolt::fabric {

/// A plug in a port of a node; ports count from 0.
struct PlannedEnd {
  uint32_t node = 0;
  uint32_t port = 0;
  friend bool operator==(const PlannedEnd&, const PlannedEnd&) = default;
};

/// One row of the cable list.
struct PlannedCable {
  uint32_t id = 0;  ///< for ever: neither adding nor removing another cable changes it
  PlannedEnd a;     ///< of the lower node
  PlannedEnd b;
  uint32_t rail = 0;  ///< among the cables of the same two nodes
  Fraction capacity = 1;
  friend bool operator==(const PlannedCable&, const PlannedCable&) = default;
};

/// Which cable goes where.
struct Plan {
  uint32_t n_nodes = 0;
  uint32_t n_ports = 0;              ///< of every node
  std::vector<PlannedCable> cables;  ///< ascending by id
  uint32_t next_id = 0;              ///< of a new cable; that of one removed is not given again
  friend bool operator==(const Plan&, const Plan&) = default;
};

/// The plan of a graph whose nodes need no more than `n_ports` ports. Ids follow (lower node, higher node, rail). In a
/// circulant, port 2j of each node leads to the j-th offset ahead and port 2j + 1 as far back (half way round is last,
/// one port); otherwise ports follow the neighbours' numbers. Pure. Thread-safe.
Plan make_plan(const Graph& graph, uint32_t n_ports);

/// Plugs all cables anew, so that each leads from a port of odd number to one of even number, as a ring does whose
/// nodes send by port 1 and receive by port 0. Where `n_ports` is odd, the last port of a node counts as odd if the
/// answer says so of it: half of the ends must be. Pure. Thread-safe.
std::vector<bool> cross_ports(Plan& plan);

/// Adds a cable between the first free ports of two different nodes; its id, or nothing if a node has no free port.
std::optional<uint32_t> add_cable(Plan& plan, uint32_t a, uint32_t b, const Fraction& capacity = 1);

/// Removes a cable; false if there is none of that id.
bool remove_cable(Plan& plan, uint32_t id);

/// The cables of the plan, in its order.
Graph graph_of(const Plan& plan);

}  // namespace ringbolt::fabric
