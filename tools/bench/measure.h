#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "bench/parameters.h"
#include "progress_line.h"
#include "ranks/work.h"
#include "ringbolt/group.h"

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

/// Of one time or more. A percentile is the least time that so many percent do not exceed. Pure. Thread-safe.
Statistics statistics_of(std::vector<uint64_t> times_ns);

/// Call by call the time of the slowest rank: only then is a collective done. All ranks have equally many.
/// Shape: [ranks][calls] in, [calls] out; nanoseconds. One rank at least. Pure.
std::vector<uint64_t> slowest_of(const std::vector<std::vector<uint64_t>>& times_ns);

/// How far ranks are apart: the greatest of their medians less the least. Shape: [ranks][calls], one of each at least;
/// nanoseconds in, microseconds out. Pure.
double skew_us(const std::vector<std::vector<uint64_t>>& times_ns);

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

/// A line of the table. A figure is missing where there is no such call: a broadcast is always in place.
struct Row {
  ranks::Work work;
  std::optional<Figure> out_of_place;
  std::optional<Figure> in_place;
};

struct Result {
  uint32_t n_ranks = 0;
  Parameters asked;
  std::string start_time;  ///< ISO 8601, UTC
  std::string end_time;
  std::vector<std::string> words;  ///< of the command line
  std::vector<Row> rows;
  std::string failure;  ///< of the call that ended it; empty: none
};

/// No call has failed, and no element that was compared was wrong; also true where none was compared.
bool is_right(const Result& result);

// For people, in the columns of nccl-tests.
std::string heading_text(const Result& result);
std::string row_text(const Row& row);
std::string footer_text(const Result& result);

/// The form that nccl-tests writes, version 3, with statistics.
std::string result_json(const Result& result);

}  // namespace ringbolt::tools::bench
