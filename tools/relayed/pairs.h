#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "cluster/model.h"

namespace ringbolt::tools::relayed {

/// Nodes that cables which are up join, directly or through others: each such part ascending, parts by their first
/// node. Pure. Thread-safe.
std::vector<std::vector<uint32_t>> parts_of(const cluster::Cluster& model,
                                            const std::function<bool(uint32_t cable)>& is_up);

/// Pairs of different nodes, the lower first, that no cable which is up joins: within a part others relay, between two
/// nobody can. Ascending. Pure. Thread-safe.
std::vector<std::pair<uint32_t, uint32_t>> pairs_without_cable(const cluster::Cluster& model,
                                                               const std::function<bool(uint32_t cable)>& is_up);

}  // namespace ringbolt::tools::relayed
