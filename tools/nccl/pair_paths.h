#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cluster/model.h"

namespace ringbolt::tools::nccl_command {

/// Which way messages between two nodes go, as the plugin chooses (circuit/paths.h).
struct PairPaths {
  uint32_t a = 0;
  uint32_t b = 0;
  uint32_t n_hops = 0;                   ///< 0: there is no way
  std::vector<std::string> ways = {};    ///< "n0:en2-n1:en3", "n1", "n1, n2": a cable, or who relays
};

/// Of all pairs a < b, over cables that are up. [cables] of `is_up`. Pure.
std::vector<PairPaths> pair_paths(const cluster::Cluster& model, const std::vector<bool>& is_up);

/// An order of nodes in which each shares a cable with the next, and the last with the first; empty: there is none.
std::vector<uint32_t> channel_order(const cluster::Cluster& model, const std::vector<bool>& is_up);

}  // namespace ringbolt::tools::nccl_command
