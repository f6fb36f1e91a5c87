#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "check/integrity.h"

namespace ringbolt::tools::check {

/// A call that went wrong on one rank.
struct Bad {
  std::string operation;  ///< "all_sum"
  uint64_t count = 0;     ///< elements, as the operation counts them
  std::string pattern;    ///< what was in them and how it was done: "random", "float32, sum, by ring"
  uint32_t round = 0;
  std::string problem;  ///< empty: a difference, which follows
  uint64_t index = 0;   ///< of the first element that differs
  std::string want;
  std::string got;

  /// "all_sum of 13107, random, round 0: element 17: want 3, got 2".
  std::string text() const;
  friend bool operator==(const Bad&, const Bad&) = default;
};

/// What one rank found.
struct Report {
  uint32_t rank = 0;
  uint64_t done = 0;
  uint64_t bad = 0;
  std::optional<Bad> first_bad = std::nullopt;
  bool is_stopped = false;               ///< a call failed, and what was to follow was not tried
  std::vector<uint32_t> checksums = {};  ///< CRC-32C: of each step's output, or of all outputs of each repetition

  void add(Bad one);
  /// "rank 2: 54 done, 1 bad; first: ...".
  std::string text() const;
  friend bool operator==(const Report&, const Report&) = default;
};

/// As one line of JSON, and back; nothing for a text that is none. What a peer says is taken as it is: who uses its
/// checksums looks how many there are.
std::string emit(const Report& report);
std::optional<Report> parse(std::string_view text);

/// A checksum of the collective's output that ranks disagree on, or a repetition that differs from the first.
struct Disagreement {
  size_t index = 0;  ///< in Report::checksums
  uint32_t rank = 0;
  uint32_t checksum = 0;
  uint32_t other = 0;  ///< of rank 0
};
/// The first: all ranks must have the same checksums.
std::optional<Disagreement> find_disagreement(const std::vector<Report>& reports);

/// One checksum of all ranks' checksums of repetition `index`, in the order of ranks.
uint32_t combined_checksum(const std::vector<Report>& reports, size_t index);

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

/// False also of a run that made no call.
bool is_right(const Outcome& outcome);

/// The checksum of everything that came out, in one number; all repetitions must have it.
uint32_t checksum_of(const Outcome& outcome);

/// Of one report at least: a table for people, with a line for each problem; the same as JSON, with rank 0's checksums.
std::string outcome_text(const Outcome& outcome);
std::string outcome_json(const Outcome& outcome);

}  // namespace ringbolt::tools::check
