#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "json_text.h"

namespace ringbolt::tools::pair {

/// One end of a run.
struct EndFacts {
  std::string end;  ///< "client", "server"
  std::string device;
  std::string library;  ///< path of the verbs library
  double port_rate_gbps = 0;
  bool has_counters = false;       ///< `perf` has asked the port for them, and it has them
  uint64_t transmitted_bytes = 0;  ///< by the port's counters, over the whole run
  uint64_t received_bytes = 0;
  friend bool operator==(const EndFacts&, const EndFacts&) = default;
};
// Between ends of one version alone (peer.cpp, kVersion); a text that lacks a member throws.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(EndFacts, end, device, library, port_rate_gbps, has_counters, transmitted_bytes,
                                   received_bytes)

/// "client", "server".
inline const char* end_name(bool is_client) { return is_client ? "client" : "server"; }

/// For --json, without the counters. Thread-safe.
nlohmann::ordered_json end_json(const EndFacts& facts);

/// Whether the file is a Ringbolt's libibverbs.so.1, wherever it is installed, or a link to one.
bool is_ringbolts(std::string_view library);

/// The rate by which figures between these ends are judged: `asked`, or, where that is negative, that of the slowest
/// port, in Gb/s; 0: there is none. A port of Ringbolt's is none: its cable is memory, which is as fast as it is,
/// whatever the port claims.
double line_rate_gbps(double asked, const std::vector<EndFacts>& ends);

/// A figure that no such line can carry. Thread-safe.
inline bool is_above_line_rate(double gbps, double line_rate_gbps) {
  return line_rate_gbps > 0 && gbps > line_rate_gbps;
}
/// ", line rate 40 Gb/s", for heads of tables; `otherwise`: where there is none.
std::string line_rate_text(double line_rate_gbps, const char* otherwise);

/// 0 where no time passed.
/// Bits per nanosecond are gigabits per second.
inline double gbps_of(uint64_t bytes, uint64_t duration_ns) {
  return duration_ns == 0 ? 0 : static_cast<double>(bytes) * 8.0 / static_cast<double>(duration_ns);
}

}  // namespace ringbolt::tools::pair
