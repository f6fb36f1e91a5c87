#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "fabric/graph.h"

namespace ringbolt::fabric {

/// What a chunk waits for at a relay: a buffer of one class behind one direction of the cables of a pair. (Rails of a
/// pair count as one: whether routes can block each other is the same with any number of them.)
struct Channel {
  uint32_t from = 0;
  uint32_t to = 0;
  uint32_t buffer_class = 0;
  friend auto operator<=>(const Channel&, const Channel&) = default;
};

/// The channels from a source to its destination, in order.
using Route = std::vector<Channel>;

/// Routes of all ordered pairs of nodes that can reach each other.
using Routes = std::vector<Route>;

// All are pure and thread-safe. Routes of n nodes are n (n - 1), of as many channels as hops: 250 nodes in a ring take
// some hundred megabytes.

/// Shortest paths; of equal ones the one whose next node has the lowest number. One class.
Routes shortest_routes(const Graph& graph);

/// Up*/down*: never up after down, where up leads to a node of lower (hops from `root`, number). Shortest such routes,
/// of equal ones the next node of lowest number. One class. Source: Schroeder et al. 1991 (Autonet).
Routes up_down_routes(const Graph& graph, uint32_t root);

/// up_down_routes() from the root that gives the least sum of hops, then the least load of a channel.
Routes best_up_down_routes(const Graph& graph);

/// The same routes with the hops travelled as class: a buffer pool in layers. Source: Merlin and Schweitzer 1980,
/// Guenther 1981.
Routes with_hop_classes(Routes routes);

/// The same routes of the ring 0 - 1 - ... - (n - 1) - 0 with another class from the cable between n - 1 and 0 on.
/// Source: Dally and Seitz 1987.
Routes with_dateline(Routes routes, uint32_t n_nodes);

/// How routes use a graph.
struct RouteUse {
  uint64_t sum = 0;  ///< of hops
  uint32_t most_hops = 0;
  uint32_t most_load = 0;  ///< routes through one direction of a pair
  uint32_t n_classes = 0;
};
RouteUse use_of(const Routes& routes);

}  // namespace ringbolt::fabric
