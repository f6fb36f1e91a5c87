#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "bootstrap/environment.h"

namespace ringbolt::tools::check {

/// The rank of each of so many nodes, shuffled: the same numbers on every node that has the same `seed`. Shape:
/// [nodes]. Pure. Thread-safe.
std::vector<uint32_t> rank_order(uint64_t seed, uint32_t n_nodes);

/// The environment of a node of a cluster, with the rank that `rank_order` gives it in place of the node's number, and
/// with rank 0's node as the place to meet. Nothing if it is no node's, or says itself which rank it is or where rank 0
/// is.
std::optional<bootstrap::Environment> with_rank_order(bootstrap::Environment environment, uint64_t seed);

}  // namespace ringbolt::tools::check
