#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cluster/model.h"
#include "port_counts.h"

namespace ringbolt::tools::map {

/// What was counted at one moment.
struct Sample {
  uint64_t time_ns = 0;  ///< base::now_ns(), after the last port had answered
  std::vector<PortCounts> ports;
  std::vector<bool> is_up = {};            ///< [cable]: as the cluster says
  std::vector<std::string> problems = {};  ///< ports or hosts that can't be asked
};

/// A cable and what goes over it.
struct CableFlow {
  enum class State {
    kActive,
    kCut,   ///< by `ringbolt cut`
    kDown,  ///< an end of it can't be asked: its host does not answer, or its counters can't be read
  };

  State state = State::kActive;
  double a_to_b_bytes_per_s = 0;  ///< between the two samples
  double b_to_a_bytes_per_s = 0;
  uint64_t a_to_b_bytes = 0;  ///< since the cluster was made
  uint64_t b_to_a_bytes = 0;
  /// Counters of trouble at its ends that are not zero: names as in docs/metrics.md, and how much since the cluster was
  /// made. No counter of times that it was cut.
  std::vector<std::pair<std::string, uint64_t>> errors;
  uint64_t n_errors = 0;      ///< their sum
  uint64_t n_new_errors = 0;  ///< of those, between the two samples
  uint64_t n_cuts = 0;        ///< times that it was cut

  friend bool operator==(const CableFlow&, const CableFlow&) = default;
};

/// "active", "cut" or "down".
const char* state_text(CableFlow::State state);

/// What has happened on every cable from `before` to `now`. A port that one of them does not have counts as if nothing
/// had moved. Shape: [cables]. Pure. Thread-safe.
std::vector<CableFlow> flows_between(const cluster::Cluster& model, const Sample& before, const Sample& now);

/// What is shown of a cluster at one moment.
struct View {
  const cluster::Cluster& model;
  const std::vector<CableFlow>& flows;       ///< [cable]
  const std::vector<std::string>& problems;  ///< what can't be asked
  double interval_s = 1;                     ///< that rates are of
};

/// "0 B/s", "1.50 GB/s": powers of 1000.
std::string rate_text(double bytes_per_s);

/// A picture of nodes and cables, where it is not too much, and a line for each cable; without escapes unless coloured.
/// Pure. Thread-safe.
std::string screen_text(const View& view, bool has_colours);

/// A line for each cable, for logs: nothing but words. Pure. Thread-safe.
std::string lines_text(const View& view);

/// All of it as JSON on one line. Pure. Thread-safe.
std::string json_text(const View& view);

/// The lines of `text` that fit: the first `rows`, each cut to `columns`. Escapes take no place, and colours end with
/// their line. Pure. Thread-safe.
std::string clipped(const std::string& text, size_t columns, size_t rows);

}  // namespace ringbolt::tools::map
