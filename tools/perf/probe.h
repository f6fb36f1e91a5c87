#pragma once

#include <cstdint>
#include <string>

#include "json_text.h"

namespace ringbolt::tools {

/// What one end of a measurement of `matrix` found out about its sending.
/// Goes as a line of JSON between processes of one version.
struct ProbeReport {
  std::string problem = {};  ///< empty: the figures are good
  bool is_echo = false;      ///< the problem is only that the other end has one
  bool is_reliable = true;   ///< RC carried it, not UC
  double latency_us = 0;     ///< half the median round trip
  double latency_p99_us = 0;
  double latency_most_us = 0;
  uint64_t rounds = 0;
  uint64_t verified_bytes = 0;  ///< of the other end
  uint64_t duration_ns = 0;     ///< first post to last verified byte
  /// So many millionths of the time a thread here waited for a processor.
  struct Starved {
    uint64_t asking = 0;  ///< round trips
    uint64_t sending = 0;
    uint64_t answering = 0;  ///< round trips of the other end
    uint64_t receiving = 0;
    friend bool operator==(const Starved&, const Starved&) = default;
  } starved_ppm = {};
  friend bool operator==(const ProbeReport&, const ProbeReport&) = default;
};

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ProbeReport::Starved, asking, sending, answering, receiving)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ProbeReport, problem, is_echo, is_reliable, latency_us, latency_p99_us,
                                   latency_most_us, rounds, verified_bytes, duration_ns, starved_ppm)

}  // namespace ringbolt::tools
