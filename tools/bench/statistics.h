#pragma once

#include <cstdint>
#include <vector>

namespace ringbolt::tools::bench {

/// Times of calls, in microseconds.
struct Statistics {
  double min_us = 0;
  double max_us = 0;
  double avg_us = 0;
  double p50_us = 0;
  double p95_us = 0;
  double p99_us = 0;
  double stdev_us = 0;  ///< of a sample: divided by one less than there are
  double cv_pct = 0;    ///< stdev in percent of avg

  friend bool operator==(const Statistics&, const Statistics&) = default;
};

/// Of one time or more. A percentile is the least time that so many percent do not exceed.
Statistics statistics_of(std::vector<uint64_t> times_ns);

/// Call by call the time of the slowest rank: only then is a collective done. All ranks have equally many.
std::vector<uint64_t> slowest_of(const std::vector<std::vector<uint64_t>>& times_ns);

/// How far ranks are apart: the greatest of their medians less the least.
double skew_us(const std::vector<std::vector<uint64_t>>& times_ns);

}  // namespace ringbolt::tools::bench
