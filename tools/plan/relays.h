#pragma once

#include <string>
#include <vector>

#include "collective/cost.h"
#include "fabric/graph.h"
#include "plan/cabling.h"

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

}  // namespace ringbolt::tools::plan
