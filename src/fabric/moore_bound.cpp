#include "fabric/moore_bound.h"

#include <algorithm>

#include "base/assert.h"

namespace ringbolt::fabric {
namespace {

/// The least distances from a node that uses `first_level` ports, in a graph of `n_ports`.
MooreBound from_one(uint32_t n_nodes, uint64_t first_level, uint32_t n_ports) {
  MooreBound bound;
  uint64_t left = n_nodes - 1;
  // Ends: with two ports each level has two nodes, and with more they grow. 64 bits hold them, since left bounds the
  // number of levels.
  for (uint64_t level = first_level; left > 0; level *= n_ports - 1) {
    const uint64_t placed = std::min(left, level);
    ++bound.diameter;
    bound.sum += placed * bound.diameter;
    left -= placed;
  }
  return bound;
}

}  // namespace

MooreBound moore_bound(uint32_t n_nodes, uint32_t n_ports) {
  RINGBOLT_ASSERT(n_nodes >= 1 && (n_ports >= 2 || (n_ports == 1 && n_nodes <= 2)));
  const uint32_t used = std::min(n_ports, std::max(n_nodes, 2U) - 1);  // more are rails, which shorten nothing
  MooreBound bound = from_one(n_nodes, used, used);
  const uint64_t of_one = bound.sum;
  bound.sum *= n_nodes;
  if (used % 2 == 1 && n_nodes % 2 == 1) {
    const MooreBound weak = from_one(n_nodes, used - 1, used);
    bound.diameter = std::max(bound.diameter, weak.diameter);
    // The difference may wrap around, and so does the sum, back.
    bound.sum += weak.sum - of_one;
  }
  return bound;
}

}  // namespace ringbolt::fabric
