#include "rate.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>

#include "cluster/limits.h"

namespace ringbolt::tools {

std::optional<uint32_t> parse_rate_mbps(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (error != std::errc{}) {
    return std::nullopt;
  }
  std::string unit(end, text.data() + text.size());
  std::ranges::transform(unit, unit.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  if (unit == "gbit" || unit == "gb/s" || unit == "gbps") {
    number *= 1000;
  } else if (unit != "mbit" && unit != "mb/s" && unit != "mbps") {
    return std::nullopt;
  }
  number = std::round(number);
  if (!(number >= 1 && number <= cluster::kMaxRateMbps)) {
    return std::nullopt;
  }
  return static_cast<uint32_t>(number);
}

}  // namespace ringbolt::tools
