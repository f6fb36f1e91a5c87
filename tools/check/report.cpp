#include "check/report.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/crc.h"
#include "check/report_json.h"

namespace ringbolt::tools::check {

std::string Bad::text() const {
  std::string words = fmt::format("{} of {}, {}, round {}: ", operation, count, pattern, round);
  return words + (problem.empty() ? fmt::format("element {}: want {}, got {}", index, want, got) : problem);
}

void Report::add(Bad one) {
  ++bad;
  if (!first_bad) {
    first_bad = std::move(one);
  }
}

std::string Report::text() const {
  return fmt::format("rank {}: {} done, {} bad{}{}", rank, done, bad, first_bad ? "; first: " + first_bad->text() : "",
                     is_stopped ? "; stopped there" : "");
}

Json json_of(const Report& report) {
  Json json{{"rank", report.rank}, {"done", report.done}, {"bad", report.bad}, {"is_stopped", report.is_stopped}};
  json["first_bad"] = nullptr;
  if (report.first_bad) {
    const Bad& one = *report.first_bad;
    json["first_bad"] = {{"op", one.operation},    {"size", one.count},  {"pattern", one.pattern}, {"round", one.round},
                         {"problem", one.problem}, {"index", one.index}, {"want", one.want},       {"got", one.got}};
  }
  return json;
}

std::string emit(const Report& report) {
  Json json = json_of(report);
  json["checksums"] = report.checksums;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::optional<Report> parse(std::string_view text) {
  try {
    const Json json = Json::parse(text);
    Report report;
    report.rank = json.at("rank");
    report.done = json.at("done");
    report.bad = json.at("bad");
    report.is_stopped = json.at("is_stopped");
    report.checksums = json.at("checksums").get<std::vector<uint32_t>>();
    if (const Json& one = json.at("first_bad"); !one.is_null()) {
      report.first_bad = Bad{one.at("op"),      one.at("size"),  one.at("pattern"), one.at("round"),
                             one.at("problem"), one.at("index"), one.at("want"),    one.at("got")};
    }
    return report;
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

std::optional<Disagreement> find_disagreement(const std::vector<Report>& reports) {
  for (const Report& report : reports) {
    const std::vector<uint32_t>& first = reports.front().checksums;
    const size_t n = std::min(first.size(), report.checksums.size());
    for (size_t i = 0; i < n; ++i) {
      if (report.checksums[i] != first[i]) {
        return Disagreement{i, report.rank, report.checksums[i], first[i]};
      }
    }
  }
  return std::nullopt;
}

uint32_t combined_checksum(const std::vector<Report>& reports, size_t index) {
  uint32_t checksum = 0;
  for (const Report& report : reports) {
    const uint32_t one = index < report.checksums.size() ? report.checksums[index] : 0;
    const std::array<std::byte, 4> bytes{std::byte(one), std::byte(one >> 8U), std::byte(one >> 16U),
                                         std::byte(one >> 24U)};
    checksum = base::crc32c(checksum, bytes);
  }
  return checksum;
}

}  // namespace ringbolt::tools::check
