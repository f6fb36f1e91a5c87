#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

namespace ringbolt::tools::pair {

/// Whether the file is a Ringbolt's libibverbs.so.1, wherever it is installed, or a link to one.
inline bool is_ringbolts(std::string_view library) {
  std::error_code error;
  const std::filesystem::path real = std::filesystem::weakly_canonical(library, error);
  constexpr std::string_view kFolder = "/lib/ringbolt/";
  return library.find(kFolder) != std::string_view::npos || real.string().find(kFolder) != std::string::npos;
}

/// The rate by which figures between `ends` (each with `library` and `port_rate_gbps`) are judged unless the user names
/// one: that of the slowest port, in Gb/s; 0: there is none. A port of Ringbolt's is none: its cable is memory, which
/// is as fast as it is, whatever the port claims.
template <class Ends>
double line_rate_gbps(const Ends& ends) {
  double slowest = 0;
  for (const auto& end : ends) {
    if (end.port_rate_gbps > 0 && !is_ringbolts(end.library) && (slowest == 0 || end.port_rate_gbps < slowest)) {
      slowest = end.port_rate_gbps;
    }
  }
  return slowest;
}

}  // namespace ringbolt::tools::pair
