#pragma once

#include <cstdint>
#include <vector>

#include "collective/problem.h"
#include "collective/topology.h"

namespace ringbolt::collective {

/// Which ways the shares of a gather or a scatter take.
struct PathTrees {
  uint32_t n_parts = 1;         ///< of each share, each with a path of its own
  std::vector<uint32_t> turns;  ///< [rank * n_parts + part]: as Topology::path() counts equal paths
  uint32_t n_levels = 0;        ///< hops of the farthest
  double busiest_us = 0;        ///< that the busiest direction of a cable sends for
};

/// Chosen by what each cable carries already, those ranks last that have a choice. Milliseconds on 64 ranks. Pure.
/// Thread-safe.
PathTrees path_trees(const Problem& problem, const Topology& topology);

}  // namespace ringbolt::collective
