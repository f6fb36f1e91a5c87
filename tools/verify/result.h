#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "verify/context.h"
#include "verify/finding.h"
#include "verify/step.h"

namespace ringbolt::tools::verify {

/// All steps of one mode over one transport in one direction.
struct Row {
  std::string title;  ///< "RC stream"
  std::string by;     ///< who posted: "client", "server", "both"
  uint64_t steps = 0;
  uint64_t messages = 0;
  uint64_t verified_bytes = 0;
  uint64_t lost = 0;
  uint64_t duration_ns = 0;
  uint64_t rounds = 0;
  uint64_t slowest_round_ns = 0;
  friend bool operator==(const Row&, const Row&) = default;

  double goodput_gbps() const;
};

struct EndFacts {
  std::string end;  ///< "client", "server"
  std::string device;
  std::string library;
  double port_rate_gbps = 0;
  friend bool operator==(const EndFacts&, const EndFacts&) = default;
};

struct Result {
  std::string mode;  ///< "stream", "soak"
  uint64_t seed = 0;
  double line_rate_gbps = 0;  ///< 0: none, nothing is judged
  double loss_percent = 0;    ///< that UC and UD may have
  std::vector<EndFacts> ends = {};
  std::vector<Row> rows = {};
  std::vector<std::string> not_checked = {};
  std::string refusal = {};       ///< nothing could be verified: why
  std::string interruption = {};  ///< it ended before its time: why; empty: it did not
  uint64_t slowest_gap_ns = 0;
  uint64_t elapsed_ns = 0;
  Tally tally = {};

  /// Adds what both ends know of a step. The first of both is the client's.
  void add(const Step& step, const Outcome& client, const Outcome& server);
};

/// Figures that no such line can carry, in words. Thread-safe.
std::vector<std::string> invalid_figures(const Result& result);
/// kOk, kFoundProblem or kWrongUsage. Thread-safe.
int exit_code_of(const Result& result);

/// A table and what was checked, what not, and what was found. Thread-safe.
std::string result_text(const Result& result);
/// docs/verify.md has the names. Thread-safe.
std::string result_json(const Result& result);

// What the ends tell each other, and back; any bytes are safe to pass. Thread-safe.
std::string emit_outcome(const Outcome& outcome);
std::optional<Outcome> parse_outcome(std::string_view text);
std::string emit_facts(const EndFacts& facts);
std::optional<EndFacts> parse_facts(std::string_view text);
std::string emit_tally(const Tally& tally);
std::optional<Tally> parse_tally(std::string_view text);
std::string emit_result(const Result& result);
std::optional<Result> parse_result(std::string_view text);

}  // namespace ringbolt::tools::verify
