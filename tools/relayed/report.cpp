#include "relayed/report.h"

#include <utility>

#include <fmt/format.h>

#include "base/text_fields.h"

namespace ringbolt::tools::relayed {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Report, from, to, through, figures)

namespace {

constexpr std::string_view kMark = "ringbolt-relayed ";

}  // namespace

std::string emit(const Report& report) { return fmt::format("{}{}\n", kMark, to_line(report)); }

std::vector<Report> parse(std::string_view text) {
  std::vector<Report> reports;
  while (!text.empty()) {
    const std::string_view line = base::take_until(text, '\n');
    if (auto report = line.starts_with(kMark) ? from_line<Report>(line.substr(kMark.size())) : std::nullopt) {
      reports.push_back(std::move(*report));
    }
  }
  return reports;
}

}  // namespace ringbolt::tools::relayed
