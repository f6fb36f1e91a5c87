#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "collective/problem.h"
#include "collective/topology.h"

namespace ringbolt::collective {

/// What a schedule would take by the topology's cost model: a formula for each, of hops one after the other, and of the
/// bytes that the busiest direction of a cable carries. For long vectors within 5 % of simulate() on the graphs of the
/// tests; for short ones, where chunks wait for each other in ways that no formula tells, within a third. `name` must
/// be one of candidates(). What it needs of the topology is computed at the first call; later ones take microseconds up
/// to 16 ranks. Pure. Thread-safe.
double predict_us(std::string_view name, const Problem& problem, const Topology& topology, const Limits& limits);

/// A schedule that would do.
struct Choice {
  std::string name;
  double predicted_us = 0;
  std::string why;  ///< for people: what the time is made of
};

/// All candidates(), the fastest by prediction first; of equal ones, the order of candidates(). All ranks get the same
/// list if their topologies and models are the same. Pure. Thread-safe.
std::vector<Choice> choose(const Problem& problem, const Topology& topology, const Limits& limits);

}  // namespace ringbolt::collective
