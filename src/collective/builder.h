#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "collective/problem.h"
#include "collective/schedule.h"
#include "collective/topology.h"

namespace ringbolt::collective {

// Builders of schedules: pure functions of the problem, the cables and the limits, so all ranks build what fits
// together, each for itself. They are listed in docs/algorithms.md. The problem must have as many ranks as the
// topology, and shares as problem.h says. All are thread-safe.

/// The names of all schedules, in the order in which candidates() lists them.
std::vector<std::string> schedule_names();

/// Those that can do the problem on these cables; with needs_rank_order, only those that keep the order. At least one.
std::vector<std::string> candidates(const Problem& problem, const Topology& topology);

/// The part of one rank. `name` must be one of candidates().
/// It is asserted that the name fits: names of programs' users are looked up in candidates() first.
Program build_for(std::string_view name, const Problem& problem, const Topology& topology, const Limits& limits,
                  uint32_t rank);

/// Whether the schedule `name` of the problem is rank-ordered: so is one that adds nothing up.
bool is_rank_ordered(std::string_view name, const Problem& problem);

/// The parts of all ranks.
Schedule build(std::string_view name, const Problem& problem, const Topology& topology, const Limits& limits);

}  // namespace ringbolt::collective
