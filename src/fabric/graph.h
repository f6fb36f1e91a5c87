#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "fabric/fraction.h"

namespace ringbolt::fabric {

/// A cable between two different nodes, full duplex. `capacity` is the rate of one direction, in units of the caller's
/// choice (the rate of the slowest cable, usually), and above 0.
struct Cable {
  uint32_t a = 0;  ///< the lower node
  uint32_t b = 0;  ///< the higher node
  Fraction capacity = 1;
  friend bool operator==(const Cable&, const Cable&) = default;
};

/// Nodes 0 to n_nodes - 1 and the cables between them. Cables of the same two nodes are parallel rails. Nodes of
/// cables are below n_nodes, a below b: who builds one without join() sees to that himself.
struct Graph {
  uint32_t n_nodes = 0;
  std::vector<Cable> cables = {};
  friend bool operator==(const Graph&, const Graph&) = default;
};

/// Adds a cable, its ends in either order. They must be two nodes of the graph. Thread-safe on different graphs.
void join(Graph& graph, uint32_t a, uint32_t b, const Fraction& capacity = 1);

/// Sorts cables by (lower node, higher node); rails keep their order. The order in which a plan numbers them.
/// Thread-safe on different graphs.
void sort_cables(Graph& graph);

/// The same graph with the rails of a pair as one cable of their summed capacity, sorted. Thread-safe.
Graph merge_rails(const Graph& graph);

/// The same graph without cable `index`. Thread-safe.
Graph without_cable(const Graph& graph, size_t index);

/// Whether a cable joins the two. Thread-safe.
bool is_joined(const Graph& graph, uint32_t a, uint32_t b);

/// The neighbours of every node, ascending, each once. Shape: [n_nodes][]. Thread-safe.
std::vector<std::vector<uint32_t>> neighbours(const Graph& graph);

/// How many ports every node uses. Shape: [n_nodes]. Thread-safe.
std::vector<uint32_t> port_counts(const Graph& graph);

/// The rate at which every node sends when all its cables do. Shape: [n_nodes]. Thread-safe.
std::vector<Fraction> rates_of_nodes(const Graph& graph);

inline constexpr uint32_t kUnreachable = UINT32_MAX;

/// Hops from `start` to every node; kUnreachable where no path leads. Shape: [n_nodes]. Thread-safe.
std::vector<uint32_t> hops_from(const std::vector<std::vector<uint32_t>>& neighbours, uint32_t start);

/// The nodes that a path joins with `start`, nearer ones first, beginning with it. Thread-safe.
std::vector<uint32_t> breadth_first(const std::vector<std::vector<uint32_t>>& neighbours, uint32_t start);

/// What the shortest paths of a graph are like.
struct Distances {
  bool is_connected = false;
  uint32_t diameter = 0;  ///< hops of the longest shortest path; meaningless if it is not connected
  uint32_t radius = 0;    ///< the least, over all nodes, of the hops to the node farthest from it
  uint32_t centre = 0;    ///< the first node that is so near to all
  uint64_t sum = 0;       ///< of the hops over all ordered pairs

  /// Average shortest path length.
  Fraction aspl(uint32_t n_nodes) const;
  friend bool operator==(const Distances&, const Distances&) = default;
};
/// Takes as many steps as nodes times cables. Thread-safe.
Distances distances(const Graph& graph);

}  // namespace ringbolt::fabric
