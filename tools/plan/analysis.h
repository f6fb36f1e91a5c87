#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collective/cost.h"
#include "fabric/bisection.h"
#include "fabric/bounds.h"
#include "fabric/damage.h"
#include "fabric/deadlock.h"
#include "fabric/graph.h"
#include "fabric/moore_bound.h"
#include "fabric/relaying.h"
#include "plan/cabling.h"
#include "plan/schedules.h"

namespace ringbolt::tools::plan {

/// Nodes that only relay, and the group of all others.
struct RelayPlan {
  /// A collective of that group, and what it takes.
  struct Call {
    const char* name;
    double bytes = 0;
    collective::Choice choice;
  };

  std::vector<uint32_t> relays;   ///< ascending
  std::vector<uint32_t> members;  ///< ascending
  uint32_t diameter = 0;          ///< hops between the two members farthest apart, relays counted
  double average_hops = 0;
  std::vector<Call> calls;
};

/// The nodes of `options.relays`, and the others. Throws UsageError: no such node, or fewer than two others.
RelayPlan relay_plan(const Cabling& cabling, const PlanOptions& options);

/// Computes all else: what is left for a group if the relays take no part but pass on what others send. `graph` is that
/// of the cabling, and connected.
void predict_group(RelayPlan& plan, const Cabling& cabling, const fabric::Graph& graph, const PlanOptions& options);

/// "n4, n5".
std::string names_text(const Cabling& cabling, const std::vector<uint32_t>& nodes);

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
