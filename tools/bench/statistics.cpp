#include "bench/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/assert.h"

namespace ringbolt::tools::bench {
namespace {

double percentile_us(const std::vector<uint64_t>& sorted_ns, double percent) {
  const double place = std::ceil(percent / 100 * static_cast<double>(sorted_ns.size()));
  const size_t index = static_cast<size_t>(std::max(place, 1.0)) - 1;
  return static_cast<double>(sorted_ns[index]) / 1000;
}

}  // namespace

Statistics statistics_of(std::vector<uint64_t> times_ns) {
  RINGBOLT_ASSERT(!times_ns.empty());
  std::sort(times_ns.begin(), times_ns.end());
  const auto n = static_cast<double>(times_ns.size());
  Statistics statistics;
  statistics.min_us = static_cast<double>(times_ns.front()) / 1000;
  statistics.max_us = static_cast<double>(times_ns.back()) / 1000;
  statistics.avg_us = static_cast<double>(std::accumulate(times_ns.begin(), times_ns.end(), uint64_t{0})) / n / 1000;
  statistics.p50_us = percentile_us(times_ns, 50);
  statistics.p95_us = percentile_us(times_ns, 95);
  statistics.p99_us = percentile_us(times_ns, 99);
  double squares = 0;
  for (const uint64_t time : times_ns) {
    const double off = static_cast<double>(time) / 1000 - statistics.avg_us;
    squares += off * off;
  }
  statistics.stdev_us = times_ns.size() < 2 ? 0 : std::sqrt(squares / (n - 1));
  statistics.cv_pct = statistics.avg_us > 0 ? 100 * statistics.stdev_us / statistics.avg_us : 0;
  return statistics;
}

std::vector<uint64_t> slowest_of(const std::vector<std::vector<uint64_t>>& times_ns) {
  std::vector<uint64_t> slowest = times_ns.at(0);
  for (const std::vector<uint64_t>& times : times_ns) {
    RINGBOLT_ASSERT(times.size() == slowest.size());
    std::transform(slowest.begin(), slowest.end(), times.begin(), slowest.begin(),
                   [](uint64_t a, uint64_t b) { return std::max(a, b); });
  }
  return slowest;
}

double skew_us(const std::vector<std::vector<uint64_t>>& times_ns) {
  std::vector<double> medians;
  for (const std::vector<uint64_t>& times : times_ns) {
    medians.push_back(statistics_of(times).p50_us);
  }
  const auto [least, most] = std::minmax_element(medians.begin(), medians.end());
  return *most - *least;
}

}  // namespace ringbolt::tools::bench
