#include "pair/end_facts.h"

#include <filesystem>
#include <system_error>

#include <fmt/format.h>

namespace ringbolt::tools::pair {

nlohmann::ordered_json end_json(const EndFacts& facts) {
  return {
      {"end", facts.end}, {"device", facts.device}, {"verbs", facts.library}, {"port_rate_gbps", facts.port_rate_gbps}};
}

bool is_ringbolts(std::string_view library) {
  std::error_code error;
  const std::filesystem::path real = std::filesystem::weakly_canonical(library, error);
  constexpr std::string_view kFolder = "/lib/ringbolt/";
  return library.find(kFolder) != std::string_view::npos || real.string().find(kFolder) != std::string::npos;
}

double line_rate_gbps(double asked, const std::vector<EndFacts>& ends) {
  if (asked >= 0) {
    return asked;
  }
  double slowest = 0;
  for (const EndFacts& end : ends) {
    if (end.port_rate_gbps > 0 && !is_ringbolts(end.library) && (slowest == 0 || end.port_rate_gbps < slowest)) {
      slowest = end.port_rate_gbps;
    }
  }
  return slowest;
}

std::string line_rate_text(double line_rate_gbps, const char* otherwise) {
  return line_rate_gbps > 0 ? fmt::format(", line rate {:.4g} Gb/s", line_rate_gbps) : otherwise;
}

}  // namespace ringbolt::tools::pair
