#include "probe/report.h"

#include <array>
#include <charconv>

#include <fmt/format.h>

namespace ringbolt::tools {
namespace {

constexpr std::string_view kMeasured = "ringbolt-probe measured";
constexpr std::string_view kFailed = "ringbolt-probe failed: ";
constexpr std::string_view kEcho = "ringbolt-probe echo: ";

std::optional<ProbeReport> parse_figures(std::string_view text) {
  std::array<uint64_t, 11> figures{};
  for (uint64_t& figure : figures) {
    if (text.empty() || text.front() != ' ') {
      return std::nullopt;
    }
    const auto [end, error] = std::from_chars(text.data() + 1, text.data() + text.size(), figure);
    if (error != std::errc{}) {
      return std::nullopt;
    }
    text.remove_prefix(static_cast<size_t>(end - text.data()));
  }
  if (!text.empty()) {
    return std::nullopt;
  }
  return ProbeReport{
      "",         false,      figures[10] != 0, figures[0], figures[1],
      figures[2], figures[3], figures[4],       figures[5], {figures[6], figures[7], figures[8], figures[9]}};
}

std::optional<ProbeReport> parse_line(std::string_view line) {
  if (line.substr(0, kMeasured.size()) == kMeasured) {
    return parse_figures(line.substr(kMeasured.size()));
  }
  for (const std::string_view prefix : {kFailed, kEcho}) {
    if (line.substr(0, prefix.size()) == prefix && line.size() > prefix.size()) {
      ProbeReport report;
      report.problem = line.substr(prefix.size());
      report.is_echo = prefix == kEcho;
      return report;
    }
  }
  return std::nullopt;
}

}  // namespace

std::string emit_report(const ProbeReport& report) {
  if (!report.problem.empty()) {
    return fmt::format("{}{}\n", report.is_echo ? kEcho : kFailed, report.problem);
  }
  return fmt::format("{} {} {} {} {} {} {} {} {} {} {} {}\n", kMeasured, report.median_rtt_ns, report.p99_rtt_ns,
                     report.most_rtt_ns, report.rounds, report.verified_bytes, report.duration_ns,
                     report.starved_ppm.asking, report.starved_ppm.sending, report.starved_ppm.answering,
                     report.starved_ppm.receiving, report.is_reliable ? 1 : 0);
}

std::optional<ProbeReport> parse_report(std::string_view text) {
  std::optional<ProbeReport> last;
  while (!text.empty()) {
    const size_t newline = text.find('\n');
    if (std::optional<ProbeReport> report = parse_line(text.substr(0, newline))) {
      last = std::move(report);
    }
    text = newline == std::string_view::npos ? std::string_view{} : text.substr(newline + 1);
  }
  return last;
}

}  // namespace ringbolt::tools
