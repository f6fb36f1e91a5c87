#include <algorithm>
#include <stdexcept>

#include "json_text.h"
#include "verify/result.h"

namespace ringbolt::tools::verify {

// What the ends tell each other.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Outcome, duration_ns, messages, bytes, lost, rounds, slowest_ns, refusal)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(EndFacts, end, device, library, port_rate_gbps)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Row, title, by, steps, messages, verified_bytes, lost, duration_ns, rounds,
                                   slowest_round_ns)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Finding, kind, text)

static void to_json(nlohmann::json& to, const Tally& tally) {
  to = {{"counts", tally.counts()}, {"findings", tally.findings()}};
}

static void from_json(const nlohmann::json& from, Tally& tally) {
  const auto findings = from.at("findings").get<std::vector<Finding>>();
  if (std::ranges::any_of(findings, [](const Finding& one) { return one.kind >= Kind::kCount; })) {
    throw std::out_of_range("kind");
  }
  tally = Tally(from.at("counts").get<Tally::Counts>(), findings);
}

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Result, mode, seed, line_rate_gbps, loss_percent, ends, rows, not_checked, refusal,
                                   interruption, slowest_gap_ns, elapsed_ns, tally)

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
  if (one.by != "both") {
    json["goodput_gbps"] = one.goodput_gbps();
    json["goodput_valid"] = line_rate_gbps <= 0 || one.goodput_gbps() <= line_rate_gbps;
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
  for (const EndFacts& one : result.ends) {
    root["ends"].push_back(
        {{"end", one.end}, {"device", one.device}, {"verbs", one.library}, {"port_rate_gbps", one.port_rate_gbps}});
  }
  for (const Row& one : result.rows) {
    root["results"].push_back(json_of(one, result.line_rate_gbps));
  }
  return root.dump(2, ' ', false, Json::error_handler_t::replace);
}

std::string emit_outcome(const Outcome& outcome) { return to_line(outcome); }
std::optional<Outcome> parse_outcome(std::string_view text) { return from_line<Outcome>(text); }
std::string emit_facts(const EndFacts& facts) { return to_line(facts); }
std::optional<EndFacts> parse_facts(std::string_view text) { return from_line<EndFacts>(text); }
std::string emit_tally(const Tally& tally) { return to_line(tally); }
std::optional<Tally> parse_tally(std::string_view text) { return from_line<Tally>(text); }
std::string emit_result(const Result& result) { return to_line(result); }
std::optional<Result> parse_result(std::string_view text) { return from_line<Result>(text); }

}  // namespace ringbolt::tools::verify
