#pragma once

#include <vector>

#include "measurement.h"

namespace ringbolt::tools::relayed {

/// Measures both directions between all nodes that no cable joins which is up, by messages of a group on all nodes, one
/// pair at a time. Pairs that no way joins are unreachable. A group that can't be made, or breaks, makes the pairs that
/// are left fail. Blocks, at most, for the options' time limit per pair and once more.
/// `watch` may stop it.
std::vector<Direction> measure_relayed(const LiveCluster& live, const MatrixOptions& options, const PairWatch& watch);

}  // namespace ringbolt::tools::relayed
