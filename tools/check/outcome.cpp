#include "check/outcome.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/crc.h"

namespace ringbolt::tools::check {
namespace {

using Json = nlohmann::ordered_json;

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

constexpr int kVersion = 1;

/// Checksums that one repetition has.
size_t checksums_each(const Outcome& outcome) { return outcome.is_matrix ? 1 : outcome.n_cases; }

/// Of all ranks' outputs in repetition `repeat`.
uint32_t checksum_of(const Outcome& outcome, uint32_t repeat) {
  uint32_t checksum = 0;
  const size_t each = checksums_each(outcome);
  for (size_t i = 0; i < each; ++i) {
    checksum = checksum * 31 + combined_checksum(outcome.reports, repeat * each + i);
  }
  return checksum;
}

/// Repetitions that gave other bits than the first.
uint32_t differing_repeats(const Outcome& outcome) {
  uint32_t differing = 0;
  for (uint32_t repeat = 1; repeat < outcome.repeats; ++repeat) {
    differing += checksum_of(outcome, repeat) != checksum_of(outcome, 0) ? 1U : 0U;
  }
  return differing;
}

/// What ranks disagree on; empty: nothing. Of the matrix they have different outputs.
std::string disagreement_text(const Outcome& outcome) {
  if (outcome.is_matrix) {
    return {};
  }
  const auto found = find_disagreement(outcome.reports);
  if (!found) {
    return {};
  }
  if (found->index >= outcome.steps.size()) {  // both may be peers' reports, of any length
    return fmt::format("rank {} and rank 0 tell of more than the {} collectives, with different bits", found->rank,
                       outcome.steps.size());
  }
  const Step& step = outcome.steps[found->index];
  return fmt::format("{} of {}, {}, round {}: rank {} has CRC-32C {:08x}, rank 0 {:08x}", operation_of(step),
                     step.count, text(step.pattern), step.round, found->rank, found->checksum, found->other);
}

uint64_t total(const Outcome& outcome, uint64_t Report::*member) {
  return std::accumulate(outcome.reports.begin(), outcome.reports.end(), uint64_t{0},
                         [member](uint64_t sum, const Report& one) { return sum + one.*member; });
}

/// Why it is not right, a line each.
std::vector<std::string> problems_of(const Outcome& outcome) {
  std::vector<std::string> problems;
  if (const uint64_t bad = total(outcome, &Report::bad); bad > 0) {
    problems.push_back(fmt::format("{} calls went wrong, counted on each rank", bad));
  }
  if (outcome.is_interrupted) {
    return problems;  // what follows needs all repetitions and ranks
  }
  if (const uint32_t differing = differing_repeats(outcome); differing > 0) {
    problems.push_back(fmt::format("{} of {} repetitions gave other bits than the first", differing, outcome.repeats));
  }
  if (std::string words = disagreement_text(outcome); !words.empty()) {
    problems.push_back(std::move(words));
  }
  if (!outcome.silence.empty()) {
    problems.push_back("the other ranks could not be heard: " + outcome.silence);
  }
  if (!outcome.reports.empty() && outcome.reports[0].done == 0 && problems.empty()) {
    problems.emplace_back("no call was made: that algorithm does none of them here");
  }
  return problems;
}

std::string heading_of(const Outcome& outcome) {
  const std::string how = outcome.algorithm.empty() ? "" : ", by " + outcome.algorithm;
  const std::string often = outcome.repeats == 1 ? "" : fmt::format(", {} times", outcome.repeats);
  if (outcome.is_matrix) {
    return fmt::format("{} ranks: {} cases, each by {}{}", outcome.n_ranks, outcome.n_cases,
                       outcome.algorithm.empty() ? "every algorithm that does it" : outcome.algorithm, often);
  }
  return fmt::format("{} ranks: {} collectives of float32, sizes \"{}\"{}{}", outcome.n_ranks, outcome.n_cases,
                     outcome.scale, how, often);
}

}  // namespace

bool is_right(const Outcome& outcome) { return problems_of(outcome).empty(); }

uint32_t checksum_of(const Outcome& outcome) { return checksum_of(outcome, 0); }

std::string outcome_text(const Outcome& outcome) {
  std::string words = heading_of(outcome) + "\n\n";
  words += fmt::format("{:>4} {:>9} {:>6}  {}\n", "RANK", "DONE", "BAD", "FIRST BAD");
  for (const Report& one : outcome.reports) {
    words += fmt::format("{:>4} {:>9} {:>6}  {}{}\n", one.rank, one.done, one.bad,
                         one.first_bad ? one.first_bad->text() : "-", one.is_stopped ? " (stopped there)" : "");
  }
  words += "\n";
  const std::vector<std::string> problems = problems_of(outcome);
  for (const std::string& one : problems) {
    words += "FAILED  " + one + "\n";
  }
  if (outcome.is_interrupted) {
    words +=
        fmt::format("ended early: it was interrupted; {} calls were made until then, {} of them wrong on this rank\n",
                    outcome.reports.front().done, outcome.reports.front().bad);
  } else if (problems.empty()) {
    words +=
        fmt::format("all right on all ranks: {} calls in {:.1f} s, CRC-32C of all outputs {:08x}{}\n",
                    outcome.reports.front().done, static_cast<double>(outcome.elapsed_ns) / 1e9, checksum_of(outcome),
                    outcome.repeats == 1 ? "" : fmt::format(", the same {} times", outcome.repeats));
  }
  return words;
}

std::string outcome_json(const Outcome& outcome) {
  const std::vector<std::string> problems = problems_of(outcome);
  Json root{{"ringbolt_check", kVersion},
            {"mode", outcome.is_matrix ? "matrix" : "integrity"},
            {"verified", problems.empty() && !outcome.is_interrupted},
            {"interrupted", outcome.is_interrupted},
            {"n_ranks", outcome.n_ranks},
            {"cases", outcome.n_cases},
            {"repeats", outcome.repeats},
            {"crc32c", fmt::format("{:08x}", checksum_of(outcome))},
            {"elapsed_ns", outcome.elapsed_ns},
            {"problems", problems},
            {"ranks", Json::array()}};
  if (!outcome.algorithm.empty()) {
    root["algorithm"] = outcome.algorithm;
  }
  for (const Report& one : outcome.reports) {
    root["ranks"].push_back(json_of(one));
  }
  if (!outcome.is_matrix) {
    root["scale"] = outcome.scale;
    root["collectives"] = Json::array();
    for (size_t i = 0; i < outcome.n_cases && i < outcome.reports.front().checksums.size(); ++i) {
      const Step& step = outcome.steps[i];
      root["collectives"].push_back({{"op", operation_of(step)},
                                     {"size", step.count},
                                     {"pattern", text(step.pattern)},
                                     {"round", step.round},
                                     {"crc32c", fmt::format("{:08x}", outcome.reports.front().checksums[i])}});
    }
  }
  return root.dump(2, ' ', false, Json::error_handler_t::replace);
}

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
