#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "collective/problem.h"
#include "collective/schedule.h"
#include "collective/topology.h"

namespace ringbolt::collective {

/// How a schedule went.
struct Simulated {
  double time_us = 0;
  uint64_t n_messages = 0;  ///< chunks times hops
  uint64_t most_bytes = 0;  ///< over a direction of the cables of two neighbours
  double busiest_us = 0;    ///< that the busiest direction has sent for
  friend bool operator==(const Simulated&, const Simulated&) = default;
};

/// Chunks that a transfer may have on the way or waiting.
inline constexpr uint32_t kChunksPerTransfer = 8;

/// Runs a schedule on the cables of `topology`, by the clock of its cost model. A direction of the cables of two
/// neighbours sends a chunk at a time at their rate, those of several transfers in turn; a chunk goes on from a relay
/// when all of it has come, `latency_us` after it was sent; a rank works on a chunk for `chunk_us`, one after the
/// other, and copies and adds in no time. Nothing is random: the same call gives the same result.
///
/// Also counts contributions: a sum never has one rank twice, and the bytes of every output come from each rank that
/// they should. (Not from which offset: that is check().) Says what is wrong, or that it never ends.
///
/// Takes less than a microsecond for a message. Pure. Thread-safe.
/// The schedule must be one that check_structure() passes: transfers are matched and cables are there.
tl::expected<Simulated, std::string> simulate(const Schedule& schedule, const Problem& problem,
                                              const Topology& topology);

}  // namespace ringbolt::collective
