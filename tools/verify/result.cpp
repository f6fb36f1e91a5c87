#include "verify/result.h"

#include <algorithm>

#include <fmt/format.h>

#include "failure.h"

namespace ringbolt::tools::verify {
namespace {

/// The one of that kind, made if it is the first.
Row& row_of(std::vector<Row>& rows, const std::string& title, const char* by) {
  const auto found = std::ranges::find_if(rows, [&](const Row& row) { return row.title == title && row.by == by; });
  return found != rows.end() ? *found : rows.emplace_back(Row{title, by});
}

}  // namespace

void Result::add(const Step& step, const Outcome& client, const Outcome& server) {
  const auto add_row = [&](const char* by, const Outcome& poster, const Outcome& other, bool adds_both) {
    Row& row = row_of(rows, title_of(step), by);
    ++row.steps;
    row.messages += other.messages + (adds_both ? poster.messages : 0);
    row.verified_bytes += other.bytes + (adds_both ? poster.bytes : 0);
    row.lost += other.lost + (adds_both ? poster.lost : 0);
    row.duration_ns += adds_both ? std::max(poster.duration_ns, other.duration_ns) : poster.duration_ns;
    row.rounds += std::max(poster.rounds, other.rounds);
    row.slowest_round_ns = std::max({row.slowest_round_ns, poster.slowest_ns, other.slowest_ns});
  };
  if (step.mode == Mode::kStream && step.is_bidirectional) {
    add_row("client", client, server, false);
    add_row("server", server, client, false);
  } else {
    // What initiators of one-sided operations have verified themselves counts, too.
    add_row(step.mode == Mode::kChurn ? "both" : pair::end_name(!step.is_reversed), client, server, true);
  }
}

std::vector<std::string> invalid_figures(const Result& result) {
  std::vector<std::string> invalid;
  for (const Row& row : result.rows) {
    if (row.is_above(result.line_rate_gbps)) {
      invalid.push_back(
          fmt::format("{} by the {}: goodput of {:.4g} Gb/s is above the line rate of {:.4g} Gb/s, so the data "
                      "did not go over that line; if the line is another, give --line-rate GBPS (0: none)",
                      row.title, row.by, row.goodput_gbps(), result.line_rate_gbps));
    }
  }
  return invalid;
}

int exit_code_of(const Result& result) {
  if (!result.refusal.empty()) {
    return kWrongUsage;
  }
  return result.tally.total() == 0 && invalid_figures(result).empty() ? kOk : kFoundProblem;
}

namespace {

using Json = nlohmann::ordered_json;
constexpr int kVersion = 1;

Json json_of(const Tally& tally) {
  Json counts = Json::object();
  for (size_t i = 0; i < static_cast<size_t>(Kind::kCount); ++i) {
    if (const uint64_t count = tally.count(static_cast<Kind>(i))) {
      counts[text_of(static_cast<Kind>(i))] = count;
    }
  }
  Json texts = Json::array();
  for (const Finding& one : tally.findings()) {
    texts.push_back(Json{{"kind", text_of(one.kind)}, {"text", one.text}});
  }
  return {{"count", tally.total()}, {"kinds", std::move(counts)}, {"first", std::move(texts)}};
}

Json json_of(const Row& one, double line_rate_gbps) {
  Json json{{"what", one.title},
            {"by", one.by},
            {"steps", one.steps},
            {"messages", one.messages},
            {"verified_bytes", one.verified_bytes},
            {"lost", one.lost},
            {"duration_ns", one.duration_ns}};
  if (one.has_goodput()) {
    json["goodput_gbps"] = one.goodput_gbps();
    json["goodput_valid"] = !one.is_above(line_rate_gbps);
  } else {
    json["rounds"] = one.rounds;
    json["slowest_round_ns"] = one.slowest_round_ns;
  }
  return json;
}

}  // namespace

std::string result_json(const Result& result) {
  Json root{{"ringbolt_verify", kVersion},
            {"mode", result.mode},
            {"verified", exit_code_of(result) == 0},
            {"seed", result.seed},
            {"line_rate_gbps", result.line_rate_gbps},
            {"allowed_loss_percent", result.loss_percent},
            {"ends", Json::array()},
            {"results", Json::array()},
            {"findings", json_of(result.tally)},
            {"invalid_figures", invalid_figures(result)},
            {"not_checked", result.not_checked},
            {"refusal", result.refusal},
            {"interruption", result.interruption},
            {"slowest_gap_ns", result.slowest_gap_ns},
            {"elapsed_ns", result.elapsed_ns}};
  for (const pair::EndFacts& one : result.ends) {
    root["ends"].push_back(pair::end_json(one));
  }
  for (const Row& one : result.rows) {
    root["results"].push_back(json_of(one, result.line_rate_gbps));
  }
  return root.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace ringbolt::tools::verify
