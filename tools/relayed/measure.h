#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cluster/model.h"
#include "measurement.h"
#include "perf/probe.h"

namespace ringbolt::tools::relayed {

/// Measures both directions between all nodes that no cable joins which is up, by messages of a group on all nodes, one
/// pair at a time. Pairs that no way joins are unreachable. A group that can't be made, or breaks, makes the pairs that
/// are left fail. Blocks, at most, for the options' time limit per pair, and two minutes more of each part of the
/// cluster: for its ranks to start, to meet and to end.
/// `watch` may stop it. Changes this process's environment (ranks::prepare_meeting()): not thread-safe.
std::vector<Direction> measure_relayed(const LiveCluster& live, const MatrixOptions& options, const PairWatch& watch);

/// Nodes that cables which are up join, directly or through others: each such part ascending, parts by their first
/// node. Pure. Thread-safe.
std::vector<std::vector<uint32_t>> parts_of(const cluster::Cluster& model,
                                            const std::function<bool(uint32_t cable)>& is_up);

/// Pairs of different nodes, the lower first, that no cable which is up joins: within a part others relay, between two
/// nobody can. Ascending. Pure. Thread-safe.
std::vector<std::pair<uint32_t, uint32_t>> pairs_without_cable(const cluster::Cluster& model,
                                                               const std::function<bool(uint32_t cable)>& is_up);

/// What a rank found out about its sending to another one, by numbers of nodes. In text one line.
struct Report {
  uint32_t from = 0;
  uint32_t to = 0;
  std::vector<uint32_t> through = {};  ///< nodes that relay, in order
  ProbeReport figures;

  friend bool operator==(const Report&, const Report&) = default;
};

/// Thread-safe.
std::string emit(const Report& report);

/// All lines that are reports; what else is there is passed over. Any bytes are safe to pass. Thread-safe.
std::vector<Report> parse(std::string_view text);

}  // namespace ringbolt::tools::relayed
