#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/measure.h"

namespace ringbolt::tools::bench {

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

bool is_right(const Result& result);

// For people, in the columns of nccl-tests.
std::string heading_text(const Result& result);
std::string row_text(const Row& row);
std::string footer_text(const Result& result);

/// The form that nccl-tests writes, version 3, with statistics.
std::string result_json(const Result& result);

}  // namespace ringbolt::tools::bench
