#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "probe/probe_failure.h"
#include "probe/report.h"

namespace ringbolt::tools {

// Round trips between two ends of a measurement. An end has send_word(uint64_t) and receive_word(), which throw
// ProbeFailure; what is waited for has their time limit.

/// An answer is not the question: a message that comes back to its sender does not pass.
inline constexpr uint64_t kAnswer = 0x5555'0000'0000'0000U;
/// In a question: the last one. The asker decides when it is enough, by count or by time.
inline constexpr uint64_t kLastRound = uint64_t{1} << 40U;

struct RoundsPlan {
  uint64_t warm_up = 0;
  uint64_t rounds = 1;
  uint64_t end_ns = 0;  ///< by base::now_ns(): no question after the first one that is later
};

inline uint64_t after_s(double seconds) { return base::now_ns() + static_cast<uint64_t>(seconds * 1e9); }

inline void expect_word(uint64_t got, uint64_t expected) {
  if (got != expected) {
    throw ProbeFailure(fmt::format("message {:#x} arrived as {:#x}", expected, got));
  }
}

template <typename End>
void ask_rounds(End& end, const RoundsPlan& plan, ProbeReport& report) {
  std::vector<uint64_t> times_ns;
  times_ns.reserve(plan.rounds);
  bool is_last = false;
  for (uint64_t round = 0; !is_last; ++round) {
    const uint64_t begin = base::now_ns();
    is_last = round + 1 == plan.warm_up + plan.rounds || begin >= plan.end_ns;
    const uint64_t word = round | (is_last ? kLastRound : 0);
    end.send_word(word);
    expect_word(end.receive_word(), word ^ kAnswer);
    // On a machine so busy that time runs out in the warm-up, the last round has to do.
    if (round >= plan.warm_up || is_last) {
      times_ns.push_back(base::now_ns() - begin);
    }
  }
  std::sort(times_ns.begin(), times_ns.end());
  report.median_rtt_ns = times_ns[times_ns.size() / 2];
  report.p99_rtt_ns = times_ns[times_ns.size() * 99 / 100];
  report.most_rtt_ns = times_ns.back();
  report.rounds = times_ns.size();
}

template <typename End>
void answer_rounds(End& end) {
  bool is_last = false;
  for (uint64_t round = 0; !is_last; ++round) {
    const uint64_t word = end.receive_word();
    is_last = (word & kLastRound) != 0;
    expect_word(word & ~kLastRound, round);
    end.send_word(word ^ kAnswer);
  }
}

}  // namespace ringbolt::tools
