#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "json_text.h"
#include "pair/end_facts.h"
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

  /// Both ends at once, in rounds of making and destroying: no figure of a line.
  bool has_goodput() const { return by != "both"; }
  double goodput_gbps() const { return pair::gbps_of(verified_bytes, duration_ns); }
  bool is_above(double line_rate_gbps) const {
    return has_goodput() && pair::is_above_line_rate(goodput_gbps(), line_rate_gbps);
  }
};

struct Result {
  std::string mode;  ///< "stream", "soak"
  uint64_t seed = 0;
  double line_rate_gbps = 0;  ///< 0: none, nothing is judged
  double loss_percent = 0;    ///< that UC and UD may have
  std::vector<pair::EndFacts> ends = {};
  std::vector<Row> rows = {};
  std::vector<std::string> not_checked = {};
  std::string refusal = {};       ///< nothing could be verified: why
  std::string interruption = {};  ///< it ended before its time: why; empty: it did not
  uint64_t slowest_gap_ns = 0;
  uint64_t elapsed_ns = 0;
  Tally tally = {};

  /// Adds what both ends know of a step. The first of both is the client's.
  /// Not the tally: of that each end keeps its own until the end.
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

// What the ends tell each other.
// Between ends of one version alone: docs/verify.md has the names for others.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Outcome, duration_ns, messages, bytes, lost, rounds, slowest_ns, refusal)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Row, title, by, steps, messages, verified_bytes, lost, duration_ns, rounds,
                                   slowest_round_ns)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Finding, kind, text)

inline void to_json(nlohmann::json& to, const Tally& tally) {
  to = {{"counts", tally.counts()}, {"findings", tally.findings()}};
}

/// Throws std::out_of_range for kinds that there are not.
inline void from_json(const nlohmann::json& from, Tally& tally) {
  const auto findings = from.at("findings").get<std::vector<Finding>>();
  if (std::ranges::any_of(findings, [](const Finding& one) { return one.kind >= Kind::kCount; })) {
    throw std::out_of_range("kind");
  }
  tally = Tally(from.at("counts").get<Tally::Counts>(), findings);
}

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Result, mode, seed, line_rate_gbps, loss_percent, ends, rows, not_checked, refusal,
                                   interruption, slowest_gap_ns, elapsed_ns, tally)

}  // namespace ringbolt::tools::verify
