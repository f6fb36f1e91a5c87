#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "verify/result.h"

namespace ringbolt::tools::verify {
namespace {

std::string table_of(const Result& result) {
  std::string text = fmt::format("{:<12} {:<7} {:>6} {:>12} {:>14} {:>8} {:>14}\n", "WHAT", "BY", "STEPS", "MESSAGES",
                                 "VERIFIED_BYTES", "LOST", "GOODPUT_Gb/s");
  for (const Row& row : result.rows) {
    text +=
        fmt::format("{:<12} {:<7} {:>6} {:>12} {:>14} {:>8} {:>14}{}\n", row.title, row.by, row.steps, row.messages,
                    row.verified_bytes, row.lost, row.has_goodput() ? fmt::format("{:.3f}", row.goodput_gbps()) : "-",
                    row.is_above(result.line_rate_gbps) ? " INVALID(above line rate)" : "");
  }
  for (const Row& row : result.rows) {
    if (row.rounds != 0) {
      text += fmt::format("{}: {} rounds, {:.1f} a second, the slowest {:.1f} ms\n", row.title, row.rounds,
                          static_cast<double>(row.rounds) * 1e9 / static_cast<double>(row.duration_ns),
                          static_cast<double>(row.slowest_round_ns) / 1e6);
    }
  }
  return text;
}

std::string checks_of(const Result& result) {
  std::string text;
  for (const Trial& trial : kTrials) {
    const char* mode = text_of(trial.mode);
    if (std::ranges::any_of(result.rows, [&](const Row& row) { return row.title.ends_with(mode); })) {
      text += fmt::format("checked      {}: {}\n", mode, trial.checks);
    }
  }
  if (result.loss_percent > 0) {
    text += fmt::format("not checked  loss over UC and UD of up to {} % (--allow-loss)\n", result.loss_percent);
  }
  for (const std::string& one : result.not_checked) {
    text += fmt::format("not checked  {}\n", one);
  }
  return text;
}

std::string findings_of(const Result& result) {
  std::string text;
  for (size_t i = 0; i < static_cast<size_t>(Kind::kCount); ++i) {
    const auto kind = static_cast<Kind>(i);
    const uint64_t count = result.tally.count(kind);
    if (count == 0) {
      continue;
    }
    text += fmt::format("FAILED  {}: {}\n", text_of(kind), count);
    for (const Finding& one : result.tally.findings()) {
      if (one.kind == kind) {
        text += fmt::format("        {}\n", one.text);
      }
    }
    if (const std::string hint = hint_of(kind); !hint.empty()) {
      text += fmt::format("        ({})\n", hint);
    }
  }
  for (const std::string& one : invalid_figures(result)) {
    text += fmt::format("INVALID {}\n", one);
  }
  return text;
}

}  // namespace

std::string result_text(const Result& result) {
  std::string text = fmt::format("{}, seed {}", result.mode, result.seed);
  text += pair::line_rate_text(result.line_rate_gbps, "") + "\n";
  for (const pair::EndFacts& one : result.ends) {
    text += fmt::format("{}: {} of {}\n", one.end, one.device, one.library);
  }
  text += "\n" + table_of(result) + "\n" + checks_of(result) + findings_of(result);
  if (!result.interruption.empty()) {
    text += fmt::format("ended early: {}\n", result.interruption);
  }
  uint64_t bytes = 0;
  uint64_t messages = 0;
  for (const Row& row : result.rows) {
    bytes += row.verified_bytes;
    messages += row.messages;
  }
  const double seconds = static_cast<double>(result.elapsed_ns) / 1e9;
  const double gap_ms = static_cast<double>(result.slowest_gap_ns) / 1e6;
  if (exit_code_of(result) != 0) {
    return text + fmt::format(
                      "{} failure{} in {:.1f} s; in what was finished {} messages and {} bytes were as they should be; "
                      "slowest gap "
                      "{:.1f} ms\n",
                      result.tally.total(), result.tally.total() == 1 ? "" : "s", seconds, messages, bytes, gap_ms);
  }
  return text + fmt::format("all verified: {} messages, {} bytes in {:.1f} s; slowest gap {:.1f} ms\n", messages, bytes,
                            seconds, gap_ms);
}

}  // namespace ringbolt::tools::verify
