#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "collective/problem.h"
#include "collective/schedule.h"
#include "fabric/graph.h"

namespace ringbolt::collective {

/// The part of check() that looks at steps and lanes without running them.

struct LaneKey {
  uint32_t from = 0;
  uint32_t to = 0;
  uint32_t number = 0;
  friend auto operator<=>(const LaneKey&, const LaneKey&) = default;
};

/// "lane 0 from rank 1 to rank 2".
std::string lane_text(const LaneKey& lane);
/// "rank 1, step 2".
std::string step_text(uint32_t rank, uint32_t step);
/// "input", ...
const char* buffer_text(Buffer buffer);
uint64_t buffer_bytes(const Schedule& schedule, const Problem& problem, uint32_t rank, Buffer buffer);

struct Lane {
  LaneKey key;
  uint32_t sender = kNoStep;    ///< the step at `from`
  uint32_t receiver = kNoStep;  ///< the step at `to`
};

struct Lanes {
  std::vector<Lane> lanes;  ///< ascending
  /// Which of them, for every end of a lane of every step of every rank: first those of a step's sources, then of its
  /// targets.
  std::vector<uint32_t> of_ends;
};

/// The lanes, or what is wrong with a step or a lane. Pure. Thread-safe.
tl::expected<Lanes, std::string> check_structure(const Schedule& schedule, const Problem& problem,
                                                 const fabric::Graph& graph, const Limits& limits);

}  // namespace ringbolt::collective
