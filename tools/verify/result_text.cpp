#include <array>
#include <string>

#include <fmt/format.h>

#include "verify/result.h"

namespace ringbolt::tools::verify {
namespace {

/// What a kind of finding most likely means; empty: it speaks for itself.
const char* hint_of(Kind kind) {
  switch (kind) {
    case Kind::kLost:
      return "UC and UD may lose messages: --allow-loss PERCENT, if that is what you expect";
    case Kind::kDoubled:
      return "the same message was delivered twice, or its buffer holds an earlier one";
    case Kind::kDamaged:
      return "data was altered on its way, or a buffer was read after its completion had given it back";
    case Kind::kLate:
    case Kind::kNoData:
      return "a completion came before its data: never trust the one without looking at the other here";
    case Kind::kStatus:
      return "docs/errors.md has the meaning of each status";
    case Kind::kNowhere:
      return "look at the target's memory, never at the completion";
    case Kind::kLeak:
      return "who ends a program gives its objects back; trying again does not help";
    case Kind::kStall:
    case Kind::kPeer:
      return "what was verified before is in the table";
    default:
      return "";
  }
}

struct Claim {
  const char* mode;
  const char* text;
};
constexpr std::array kClaims{
    Claim{"stream",
          "stream: each message came once, in order (UD: in any order), whole, when its receive completed; every byte "
          "of it and of the buffer around it"},
    Claim{"write",
          "write: the target's whole memory after each round, and over RC by READ too; immediates, their order"},
    Claim{"read", "read: what READs brought, byte by byte; never older than what was seen or told before"},
    Claim{"atomic", "atomic: the result of every fetch-and-add and compare-and-swap, and the target's cells"},
    Claim{
        "churn",
        "churn: queue pairs made, used and destroyed, also with sends under way; nothing of older ones in newer ones"}};

std::string table_of(const Result& result) {
  std::string text = fmt::format("{:<12} {:<7} {:>6} {:>12} {:>14} {:>8} {:>14}\n", "WHAT", "BY", "STEPS", "MESSAGES",
                                 "VERIFIED_BYTES", "LOST", "GOODPUT_Gb/s");
  for (const Row& row : result.rows) {
    const bool is_invalid = result.line_rate_gbps > 0 && row.by != "both" && row.goodput_gbps() > result.line_rate_gbps;
    text +=
        fmt::format("{:<12} {:<7} {:>6} {:>12} {:>14} {:>8} {:>14}{}\n", row.title, row.by, row.steps, row.messages,
                    row.verified_bytes, row.lost, row.by == "both" ? "-" : fmt::format("{:.3f}", row.goodput_gbps()),
                    is_invalid ? " INVALID(above line rate)" : "");
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
  for (const Claim& claim : kClaims) {
    for (const Row& row : result.rows) {
      if (row.title.ends_with(claim.mode)) {
        text += fmt::format("checked      {}\n", claim.text);
        break;
      }
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
  text += result.line_rate_gbps > 0 ? fmt::format(", line rate {:.4g} Gb/s\n", result.line_rate_gbps) : "\n";
  for (const EndFacts& one : result.ends) {
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
