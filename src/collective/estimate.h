#pragma once

#include <string_view>

#include "collective/cost_model.h"
#include "collective/problem.h"
#include "collective/topology.h"

namespace ringbolt::collective {

/// What the time of a schedule is made of.
/// A value. `us`: microseconds.
struct Estimate {
  double n_levels = 0;       ///< hops, one after the other, of the first chunk
  double busiest_us = 0;     ///< that the busiest direction of a cable sends for
  double wait_us = 0;        ///< that the first chunk is on cables, beside the last hop
  double n_chunks = 0;       ///< that the busiest rank works on
  double relayed_bytes = 0;  ///< that a rank passes on for others, on average
  double added_bytes = 0;    ///< that a rank adds to what it has, on average
};

/// The estimate of one of candidates(). Pure. Thread-safe.
/// The first call on a topology of 64 ranks may take seconds.
Estimate estimate(std::string_view name, const Problem& problem, const Topology& topology, const Limits& limits);

/// The first chunk's way, and what the busiest sends meanwhile and after. Pure.
double time_us(const CostModel& model, const Estimate& estimate);

}  // namespace ringbolt::collective
