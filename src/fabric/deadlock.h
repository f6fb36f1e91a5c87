#pragma once

#include <cstddef>
#include <vector>

#include "fabric/routes.h"

namespace ringbolt::fabric {

/// Whether relays can wait for each other in a circle.
struct DeadlockReport {
  size_t n_arcs = 0;           ///< of the dependency graph: channels that some route uses one after the other
  std::vector<Channel> order;  ///< the proof if they can't: every route only goes forward in it. Each channel once
  std::vector<Channel> cycle;  ///< the proof if they can: each waits for the next, the last for the first

  bool is_free() const { return cycle.empty(); }
};

/// Routes are free of deadlock if and only if the graph of their channels, with an arc where a route leads from one
/// into the next, has no cycle (Dally and Seitz 1987), given that destinations always take what arrives. If next hops
/// are chosen on the way, pass every route that may come of it. Orders by removing channels that nothing waits in front
/// of (Kahn 1962). Pure. Thread-safe.
DeadlockReport check_deadlock(const Routes& routes);

/// Whether `order` proves that `routes` are free of deadlock. Pure. Thread-safe.
bool proves_freedom(const std::vector<Channel>& order, const Routes& routes);

}  // namespace ringbolt::fabric
