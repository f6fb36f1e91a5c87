#include "relayed/report.h"

#include <nlohmann/json.hpp>

namespace ringbolt::tools::relayed {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kMark = "ringbolt-relayed ";

std::optional<Report> parse_line(std::string_view line) {
  if (line.substr(0, kMark.size()) != kMark) {
    return std::nullopt;
  }
  try {
    const Json json = Json::parse(line.substr(kMark.size()));
    Report report{json.at("from").get<uint32_t>(),
                  json.at("to").get<uint32_t>(),
                  json.at("through").get<std::vector<uint32_t>>(),
                  {}};
    const auto figures = parse_report(json.at("figures").get<std::string>());
    if (!figures) {
      return std::nullopt;
    }
    report.figures = *figures;
    return report;
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

}  // namespace

std::string emit(const Report& report) {
  const Json json{
      {"from", report.from}, {"to", report.to}, {"through", report.through}, {"figures", emit_report(report.figures)}};
  return std::string(kMark) + json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::vector<Report> parse(std::string_view text) {
  std::vector<Report> reports;
  while (!text.empty()) {
    const size_t newline = text.find('\n');
    if (auto report = parse_line(text.substr(0, newline))) {
      reports.push_back(std::move(*report));
    }
    text = newline == std::string_view::npos ? std::string_view{} : text.substr(newline + 1);
  }
  return reports;
}

}  // namespace ringbolt::tools::relayed
