#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "json_text.h"
#include "pair/end_facts.h"
#include "perf/histogram.h"
#include "perf/parameters.h"

namespace ringbolt::tools::perf {

/// Of one size. Times in microseconds: half a round trip of send and write, a whole one of read and atomic.
struct LatencyFigures {
  uint64_t rounds = 0;
  uint64_t lost = 0;  ///< of UC and UD: rounds without an answer, not in the times
  double least_us = 0;
  double p50_us = 0;
  double p99_us = 0;
  double p999_us = 0;
  double most_us = 0;
  double mean_us = 0;
  std::vector<Histogram::Bar> bars = {};
  friend bool operator==(const LatencyFigures&, const LatencyFigures&) = default;
};

/// `is_half`: the histogram holds whole round trips, and halves are wanted. Thread-safe.
LatencyFigures latency_figures(const Histogram& histogram, uint64_t lost, bool is_half);

/// Of one size and direction.
struct BandwidthFigures {
  std::string by;           ///< which end posted: "client", "server"
  bool is_verified = true;  ///< false with --check none
  uint64_t messages = 0;    ///< that the receiver has and has checked
  uint64_t lost = 0;        ///< of UC and UD
  uint64_t verified_bytes = 0;
  uint64_t duration_ns = 0;     ///< first post to acknowledgement of the last checked byte, on the sender's clock
  uint64_t tx_duration_ns = 0;  ///< first post to the last completion; 0: not apart from the other
  uint64_t tx_bytes = 0;        ///< completed at the sender
  friend bool operator==(const BandwidthFigures&, const BandwidthFigures&) = default;

  double goodput_gbps() const { return pair::gbps_of(verified_bytes, duration_ns); }
  double messages_per_s() const;
  /// How fast the sender's completions came; 0 where there is no such figure.
  double tx_cqe_rate_gbps() const { return pair::gbps_of(tx_bytes, tx_duration_ns); }
};

/// All of one size.
struct Row {
  uint64_t size_bytes = 0;
  std::optional<LatencyFigures> latency;
  std::vector<BandwidthFigures> bandwidth = {};
  friend bool operator==(const Row&, const Row&) = default;
};

/// What a run has found out, at both ends the same.
struct Result {
  Parameters parameters;
  uint32_t mtu_bytes = 0;
  double line_rate_gbps = 0;  ///< 0: none
  bool needs_counters = false;
  std::vector<pair::EndFacts> ends = {};
  std::vector<Row> rows = {};
  friend bool operator==(const Result&, const Result&) = default;

  bool makes_sense() const {
    return parameters.operation <= Operation::kAtomic && parameters.transport <= Transport::kUd &&
           parameters.atomic_kind <= AtomicKind::kCompareSwap && parameters.latency_check <= Check::kNone &&
           parameters.bandwidth_check <= Check::kNone;
  }
};

// For another process of ours.
// `most_s` and `may_lose` are of `matrix`, which shares no Result: they don't travel. pair::value_in() asks
// makes_sense() before any of these is used as an index.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Parameters, operation, transport, atomic_kind, has_latency, has_bandwidth,
                                   is_bidirectional, latency_check, bandwidth_check, sizes, queue_pairs, iterations,
                                   duration_s)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Histogram::Bar, from_ns, to_ns, count)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(LatencyFigures, rounds, lost, least_us, p50_us, p99_us, p999_us, most_us, mean_us,
                                   bars)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(BandwidthFigures, by, is_verified, messages, lost, verified_bytes, duration_ns,
                                   tx_duration_ns, tx_bytes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Row, size_bytes, latency, bandwidth)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Result, parameters, mtu_bytes, line_rate_gbps, needs_counters, ends, rows)

/// Everything about it that is no good, in words; empty: exit code 0. Thread-safe.
/// Names in it are the other end's word, in result_text() too: base::printable() before a terminal.
std::vector<std::string> problems_of(const Result& result);

/// How it is printed.
struct Style {
  bool is_in_gbits = false;  ///< Gb/s, else MiB/s
  bool has_histogram = false;
};

/// Tables for people. Thread-safe.
std::string result_text(const Result& result, const Style& style);
/// docs/perf.md has the names. Thread-safe.
std::string result_json(const Result& result);
/// A page with plots as inline SVG; needs no other file. Thread-safe.
std::string result_page(const Result& result);

}  // namespace ringbolt::tools::perf
