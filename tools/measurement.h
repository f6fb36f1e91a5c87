#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cluster_state.h"
#include "commands.h"

namespace ringbolt::tools {

/// One direction over one cable.
struct Direction {
  enum class State { kMeasured, kCut, kFailed };

  uint32_t cable = 0;
  cluster::CableEnd from;
  cluster::CableEnd to;
  State state = State::kFailed;
  std::string problem;         ///< why it failed
  double latency_us = 0;       ///< half the median round trip of 8 bytes
  double latency_p99_us = 0;   ///< half the 99th percentile
  double latency_most_us = 0;  ///< half the worst
  uint64_t rounds = 0;         ///< round trips behind the latency
  double bandwidth_gbps = 0;   ///< of bytes that the receiver has verified
  uint64_t verified_bytes = 0;
};

/// "measured", "cut" or "failed".
const char* state_text(Direction::State state);

/// Measures both directions of cable `index`, by a process at each end in that node's environment. Takes the options'
/// time limit and little more, whatever happens. A cable that is cut is not measured. Throws only if processes can't be
/// started at all.
std::vector<Direction> measure_cable(const LiveCluster& live, uint32_t index, const MatrixOptions& options);

}  // namespace ringbolt::tools
