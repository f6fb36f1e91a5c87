#include <nlohmann/json.hpp>

#include "verify/result.h"

namespace ringbolt::tools::verify {
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

Kind kind_of(const std::string& text) {
  for (size_t i = 0; i < static_cast<size_t>(Kind::kCount); ++i) {
    if (text == text_of(static_cast<Kind>(i))) {
      return static_cast<Kind>(i);
    }
  }
  throw std::invalid_argument(text);
}

Tally tally_of(const Json& json) {
  Tally tally;
  for (const auto& [kind, count] : json.at("kinds").items()) {
    tally.set_count(kind_of(kind), count.get<uint64_t>());
  }
  for (const Json& one : json.at("first")) {
    tally.keep({kind_of(one.at("kind")), one.at("text")});
  }
  return tally;
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

Row row_of(const Json& json) {
  Row one;
  one.title = json.at("what");
  one.by = json.at("by");
  one.steps = json.at("steps");
  one.messages = json.at("messages");
  one.verified_bytes = json.at("verified_bytes");
  one.lost = json.at("lost");
  one.duration_ns = json.at("duration_ns");
  one.rounds = json.value("rounds", uint64_t{0});
  one.slowest_round_ns = json.value("slowest_round_ns", uint64_t{0});
  return one;
}

}  // namespace

std::string emit_tally(const Tally& tally) {
  return json_of(tally).dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::optional<Tally> parse_tally(std::string_view text) {
  try {
    return tally_of(Json::parse(text));
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

std::string result_json(const Result& result, bool is_compact) {
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
  return root.dump(is_compact ? -1 : 2, ' ', false, Json::error_handler_t::replace);
}

std::optional<Result> parse_result(std::string_view text) {
  try {
    const Json root = Json::parse(text);
    if (root.at("ringbolt_verify") != kVersion) {
      return std::nullopt;
    }
    Result result;
    result.mode = root.at("mode");
    result.seed = root.at("seed");
    result.line_rate_gbps = root.at("line_rate_gbps");
    result.loss_percent = root.at("allowed_loss_percent");
    for (const Json& one : root.at("ends")) {
      result.ends.push_back({one.at("end"), one.at("device"), one.at("verbs"), one.at("port_rate_gbps")});
    }
    for (const Json& one : root.at("results")) {
      result.rows.push_back(row_of(one));
    }
    result.tally = tally_of(root.at("findings"));
    result.not_checked = root.at("not_checked").get<std::vector<std::string>>();
    result.refusal = root.at("refusal");
    result.interruption = root.at("interruption");
    result.slowest_gap_ns = root.at("slowest_gap_ns");
    result.elapsed_ns = root.at("elapsed_ns");
    return result;
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

}  // namespace ringbolt::tools::verify
