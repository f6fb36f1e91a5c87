#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "collective/topology.h"

// Of topology*.cpp alone.

namespace ringbolt::collective {

/// Above that, paths are not balanced, and loads are averages.
inline constexpr uint32_t kMostBalancedNodes = 64;

/// What is computed once, when it is asked for.
/// Each member is written under its flag alone (std::call_once), and read behind it: so no lock is needed. What
/// computes one may ask for others, but never for itself by a detour, which would hang.
struct Topology::Lazy {
  /// By destination, as hops and counts of paths are symmetric to no one.
  struct ToOne {
    std::once_flag is_known;
    std::vector<uint32_t> hops;
    std::vector<uint32_t> n_paths;
    std::once_flag are_parents_known;
    std::vector<uint32_t> parents;
  };
  explicit Lazy(uint32_t n_ranks) : to(n_ranks), from_one(n_ranks), is_from_one_known(n_ranks) {}

  std::vector<ToOne> to;
  std::once_flag are_paths_known, are_ways_known, are_distances_known, is_ring_known, is_undirected_known,
      is_from_all_known;
  std::vector<uint32_t> paths;  ///< [from * n_ranks + to]: index of path 0
  std::vector<uint32_t> ways;   ///< [(from * n_ranks + to) * kWays]: indices, ascending
  fabric::Distances distances;
  std::once_flag is_pair_load_known, is_split_load_known, is_flood_load_known, is_both_load_known;
  std::once_flag is_choice_known;
  bool has_choice = false;
  double both_load_us = 0;
  double pair_load_us = 0;
  double split_load_us = 0;
  double flood_load_us = 0;
  std::optional<std::vector<uint32_t>> ring;
  fabric::Packing undirected;
  fabric::Packing from_all;
  std::vector<fabric::Packing> from_one;
  std::vector<std::once_flag> is_from_one_known;
};

}  // namespace ringbolt::collective
