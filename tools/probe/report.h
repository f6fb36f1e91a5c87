#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ringbolt::tools {

/// What one end of a measurement found out about its sending. In text one line: "measured ..." or "failed ...".
struct ProbeReport {
  std::string problem;      ///< empty: the figures are good
  bool is_echo = false;     ///< the problem is only that the other end has one
  bool is_reliable = true;  ///< RC carried it, not UC
  uint64_t median_rtt_ns = 0;
  uint64_t p99_rtt_ns = 0;
  uint64_t most_rtt_ns = 0;
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

/// Thread-safe.
std::string emit_report(const ProbeReport& report);

/// Reads the last line that is a report; what else a program printed is passed over. Any bytes are safe to pass.
/// Thread-safe.
std::optional<ProbeReport> parse_report(std::string_view text);

}  // namespace ringbolt::tools
