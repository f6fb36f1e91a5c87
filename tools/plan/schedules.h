#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collective/cost.h"
#include "fabric/graph.h"

namespace ringbolt::tools::plan {

struct Analysis;

/// A collective of one size, as a group on the cabling would do it. The root, where there is one, is node 0.
struct PlannedCall {
  collective::Operation operation = collective::Operation::all_reduce;
  bool is_in_order = false;  ///< each element is added up in the order of ranks
  double bytes = 0;          ///< of the whole vector; of all_to_all, what each node sends in all
  double bound_us = 0;       ///< no schedule is faster
  collective::Choice choice;
  std::optional<collective::Choice> next_best;

  double times_bound() const { return choice.predicted_us / bound_us; }
  /// "all_reduce in order".
  std::string name() const;
};

/// A collective of 4-byte elements, `bytes` in all for each rank: shares are rounded up to whole elements. Thread-safe.
collective::Problem problem_of(collective::Operation operation, bool is_in_order, uint32_t n_ranks, double bytes);

/// All collectives, each at all kPredictedBytes (barrier once), in the order in which they are listed. The graph must
/// be connected, `topology` be made of it, and `analysis` have its rates. Seconds on 64 nodes. Pure. Thread-safe.
std::vector<PlannedCall> planned_calls(const Analysis& analysis, const collective::Topology& topology);

/// The one of that operation (not in order) and size; there must be one.
const PlannedCall& call_of(const std::vector<PlannedCall>& calls, collective::Operation operation, double bytes);

/// Sizes that times are predicted for, in bytes.
inline constexpr double kPredictedBytes[] = {8, 65536, 1048576, 67108864, 1073741824};

}  // namespace ringbolt::tools::plan
