#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "check/integrity.h"
#include "check/report.h"

namespace ringbolt::tools::check {

/// What came of a run, as one rank knows it.
struct Outcome {
  uint32_t n_ranks = 0;
  bool is_matrix = false;
  std::string scale;
  std::string algorithm;
  std::vector<Step> steps = {};  ///< of the 54: what each checksum is of
  uint64_t n_cases = 0;          ///< in one repetition
  uint32_t repeats = 1;
  std::vector<Report> reports = {};  ///< of all ranks, in order; or of this one, if the others could not be heard
  std::string silence = {};          ///< why not; empty: all were heard
  bool is_interrupted = false;       ///< by the user: then the report is this rank's alone
  uint64_t elapsed_ns = 0;
};

bool is_right(const Outcome& outcome);

/// The checksum of everything that came out, in one number; all repetitions must have it.
uint32_t checksum_of(const Outcome& outcome);

std::string outcome_text(const Outcome& outcome);
std::string outcome_json(const Outcome& outcome);

}  // namespace ringbolt::tools::check
