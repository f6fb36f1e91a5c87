#pragma once

#include <cstdint>

#include <tl/expected.hpp>

#include "bench/parameters.h"
#include "bench/statistics.h"
#include "progress_line.h"
#include "ranks/work.h"
#include "ringbolt/group.h"

namespace ringbolt::tools::bench {

/// Figures of one kind of call.
struct Figure {
  Statistics times;     ///< of the slowest rank, call by call
  double skew_us = 0;   ///< between ranks
  double alg_gbps = 0;  ///< GB/s: bytes as algbw counts them, over the mean time
  double bus_gbps = 0;  ///< GB/s
  bool is_checked = false;
  uint64_t n_wrong = 0;  ///< elements that differ from what they must be, on all ranks
};

/// Makes the call again and again: some to warm up, some that are timed, and one more whose output is compared, unless
/// it may differ: products of complex numbers in any order. A collective call; all ranks get the same figure. A call
/// that fails ends it.
tl::expected<Figure, Status> measure(Group& group, const ranks::Work& work, const Parameters& asked,
                                     Progress& progress);

}  // namespace ringbolt::tools::bench
