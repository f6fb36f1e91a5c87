#include "sanitizer/suppressions.h"

#include <fnmatch.h>

#include <algorithm>

#include <fmt/format.h>

#include "sanitizer/wish.h"

namespace ringbolt::sanitizer {
namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r";
  text.remove_prefix(std::min(text.find_first_not_of(kBlank), text.size()));
  return text.substr(0, text.find_last_not_of(kBlank) + 1);
}

bool fits(const std::string& glob, std::string_view text) {
  // Without FNM_PATHNAME: "*" goes across slashes (fnmatch(3)).
  return !text.empty() && ::fnmatch(glob.c_str(), std::string(text).c_str(), 0) == 0;
}

}  // namespace

Suppressions::Suppressions(std::string_view text, std::vector<std::string>& objections) {
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trimmed(text.substr(0, std::min(text.find('#'), end)));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty()) {
      continue;
    }
    const size_t colon = std::min(line.find(':'), line.size());
    const std::string_view kind = trimmed(line.substr(0, colon));
    const std::string_view glob = trimmed(line.substr(std::min(colon + 1, line.size())));
    if (glob.empty() || (kind != "*" && std::ranges::find(kKindNames, kind) == kKindNames.end())) {
      objections.push_back(fmt::format("line {}: \"{}\" is not KIND:GLOB, as in buffers:client.c", number, line));
    } else {
      lines_.push_back({std::string(kind), std::string(glob)});
    }
  }
}

bool Suppressions::match(std::string_view kind, std::string_view rule, std::string_view place) const {
  const std::string_view file = place.substr(0, place.find_first_of(":+"));
  const size_t in = place.find(" in ");
  std::string_view function = in == std::string_view::npos ? "" : place.substr(in + 4);
  function = function.substr(0, function.find('('));
  return std::ranges::any_of(lines_, [&](const Line& line) {
    return (line.kind == "*" || line.kind == kind) &&
           (fits(line.glob, file) || fits(line.glob, function) || fits(line.glob, rule));
  });
}

}  // namespace ringbolt::sanitizer
