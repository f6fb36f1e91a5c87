#include <algorithm>

#include <fmt/format.h>

#include "bootstrap/environment.h"

namespace ringbolt::bootstrap {
namespace {

bool is_letter(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' || c == '-' || c == '_';
}

/// The first number of what stands between brackets: "08" of "08-11,14".
std::string_view first_number(std::string_view ranges) { return ranges.substr(0, ranges.find_first_of(",-")); }

}  // namespace

base::Parsed<std::string> first_host_of(std::string_view nodelist) {
  constexpr size_t kMostBytes = 255;
  std::string host;
  // Of each bracket the first number, with its leading zeros: hosts are named with them.
  for (size_t at = 0; at < nodelist.size() && nodelist[at] != ','; ++at) {
    if (nodelist[at] != '[') {
      host += nodelist[at];
      continue;
    }
    const size_t close = nodelist.find(']', at);
    if (close == std::string_view::npos) {
      return base::refuse(0, "has a bracket that nothing closes");
    }
    const std::string_view number = first_number(nodelist.substr(at + 1, close - at - 1));
    if (number.empty() || !std::all_of(number.begin(), number.end(), [](char c) { return c >= '0' && c <= '9'; })) {
      return base::refuse(0, "has brackets without a number");
    }
    host += number;
    at = close;
  }
  if (host.empty() || host.size() > kMostBytes || !std::all_of(host.begin(), host.end(), is_letter)) {
    return base::refuse(0, "names no host");
  }
  return host;
}

}  // namespace ringbolt::bootstrap
