#include "verify/result.h"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

#include "failure.h"
#include "json_text.h"

namespace ringbolt::tools::verify {
namespace {

void add_row(std::vector<Row>& rows, const Row& one) {
  auto found = std::find_if(rows.begin(), rows.end(),
                            [&](const Row& row) { return row.title == one.title && row.by == one.by; });
  if (found == rows.end()) {
    found = rows.insert(rows.end(), Row{one.title, one.by});
  }
  ++found->steps;
  found->messages += one.messages;
  found->verified_bytes += one.verified_bytes;
  found->lost += one.lost;
  found->duration_ns += one.duration_ns;
  found->rounds += one.rounds;
  found->slowest_round_ns = std::max(found->slowest_round_ns, one.slowest_round_ns);
}

}  // namespace

double Row::goodput_gbps() const {
  return duration_ns == 0 ? 0 : static_cast<double>(verified_bytes) * 8.0 / static_cast<double>(duration_ns);
}

void Result::add(const Step& step, const Outcome& client, const Outcome& server) {
  const auto row = [&](const char* by, uint64_t duration_ns) {
    Row one{title_of(step), by};
    one.duration_ns = duration_ns;
    return one;
  };
  if (step.mode == Mode::kStream && step.is_bidirectional) {
    for (const bool is_client : {true, false}) {
      const Outcome& sender = is_client ? client : server;
      const Outcome& receiver = is_client ? server : client;
      Row one = row(is_client ? "client" : "server", sender.duration_ns);
      one.messages = receiver.messages;
      one.verified_bytes = receiver.bytes;
      one.lost = receiver.lost;
      add_row(rows, one);
    }
    return;
  }
  const bool is_both = step.mode == Mode::kChurn;
  Row one = row(is_both            ? "both"
                : step.is_reversed ? "server"
                                   : "client",
                std::max(client.duration_ns, server.duration_ns));
  one.messages = client.messages + server.messages;
  one.verified_bytes = client.bytes + server.bytes;
  one.lost = client.lost + server.lost;
  one.rounds = std::max(client.rounds, server.rounds);
  one.slowest_round_ns = std::max(client.slowest_ns, server.slowest_ns);
  add_row(rows, one);
}

std::vector<std::string> invalid_figures(const Result& result) {
  std::vector<std::string> invalid;
  for (const Row& row : result.rows) {
    if (result.line_rate_gbps > 0 && row.by != "both" && row.goodput_gbps() > result.line_rate_gbps) {
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
