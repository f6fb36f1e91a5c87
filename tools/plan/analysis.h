#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fabric/bisection.h"
#include "fabric/bounds.h"
#include "fabric/damage.h"
#include "fabric/deadlock.h"
#include "fabric/moore_bound.h"
#include "fabric/relaying.h"
#include "plan/cabling.h"
#include "plan/relays.h"
#include "plan/schedules.h"

namespace ringbolt::tools::plan {

/// Exact bounds of a connected cabling, in units of its slowest cable.
struct Rates {
  fabric::Fraction lambda;
  fabric::Fraction shard_rate;
  fabric::Fraction tree_rate;
  fabric::PairRate pair_bound;
  fabric::SplitRate pair_split;
  fabric::Bisection bisection;
};

/// The routes under one discipline, and the proof.
struct RouteCheck {
  fabric::Relaying relaying;
  fabric::RouteUse use;
  fabric::DeadlockReport deadlock;
  bool is_proven = false;   ///< the order was gone through again
  bool routes_all = false;  ///< every ordered pair has a route
  bool are_short = false;   ///< none is longer than relaying.most_hops
  bool is_good() const { return is_proven && routes_all && are_short; }
};

/// Everything that is said of a cabling.
struct Analysis {
  fabric::Graph graph;
  fabric::Distances distances;
  uint32_t n_ports = 0;  ///< of a node, that the bound counts: all of them, or where cables are given those they use
  fabric::MooreBound moore;
  std::vector<fabric::CutCost> cuts;  ///< in the order of the plan's cables; empty if it is not connected
  fabric::CutCost worst_cut;
  bool has_cut_rates = false;
  std::optional<Rates> rates;      ///< of up to kMostAnalysedNodes nodes
  std::vector<PlannedCall> calls;  ///< if there are rates
  std::optional<RelayPlan> group;  ///< if some nodes are to relay only; of a cabling that is not connected, nodes alone
  std::optional<RouteCheck> check;
  bool can_be_group = false;               ///< of libringbolt: no two nodes are too far apart
  std::optional<bool> can_lose_any_cable;  ///< and still be that; of up to kMostAnalysedNodes nodes
  std::vector<std::string> problems;       ///< exit code 1
  std::vector<std::string> notes;
};

/// More nodes are not looked at for rates and times, and for routes only if asked to.
inline constexpr uint32_t kMostAnalysedNodes = 64;

/// Seconds for 64 nodes. Throws base::Error if speeds have no common divisor worth its name, UsageError if
/// `options.routing` or `options.relays` do not fit.
Analysis analyse(const Cabling& cabling, const PlanOptions& options);

/// "n0 -> n1 -> n2".
std::string channels_text(const Cabling& cabling, const std::vector<fabric::Channel>& channels);

}  // namespace ringbolt::tools::plan
