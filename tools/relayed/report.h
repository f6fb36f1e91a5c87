#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "perf/probe.h"

namespace ringbolt::tools::relayed {

/// What a rank found out about its sending to another one, by numbers of nodes. In text one line.
struct Report {
  uint32_t from = 0;
  uint32_t to = 0;
  std::vector<uint32_t> through = {};  ///< nodes that relay, in order
  ProbeReport figures;

  friend bool operator==(const Report&, const Report&) = default;
};

/// Thread-safe.
std::string emit(const Report& report);

/// All lines that are reports; what else is there is passed over. Any bytes are safe to pass. Thread-safe.
std::vector<Report> parse(std::string_view text);

}  // namespace ringbolt::tools::relayed
