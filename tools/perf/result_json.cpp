#include <array>
#include <string>

#include <nlohmann/json.hpp>

#include "pair/request.h"
#include "perf/result.h"

namespace ringbolt::tools::perf {
namespace {

using Json = nlohmann::ordered_json;
constexpr int kVersion = 1;

template <class Value, size_t kCount>
Value value_of(const std::string& text, const std::array<Value, kCount>& all) {
  return pair::named(text, all).value();  // throws: whoever parses is told
}

Json json_of(const Parameters& one) {
  return {{"operation", text_of(one.operation)},
          {"connection", text_of(one.transport)},
          {"atomic_type", text_of(one.atomic_kind)},
          {"latency", one.has_latency},
          {"bandwidth", one.has_bandwidth},
          {"bidirectional", one.is_bidirectional},
          {"latency_check", text_of(one.latency_check)},
          {"bandwidth_check", text_of(one.bandwidth_check)},
          {"sizes", one.sizes},
          {"queue_pairs", one.queue_pairs},
          {"iterations", one.iterations},
          {"duration_s", one.duration_s}};
}

Parameters parameters_of(const Json& json) {
  Parameters one;
  one.operation = value_of(json.at("operation"), kOperations);
  one.transport = value_of(json.at("connection"), pair::kTransports);
  one.atomic_kind = value_of(json.at("atomic_type"), kAtomicKinds);
  one.has_latency = json.at("latency");
  one.has_bandwidth = json.at("bandwidth");
  one.is_bidirectional = json.at("bidirectional");
  one.latency_check = value_of(json.at("latency_check"), kChecks);
  one.bandwidth_check = value_of(json.at("bandwidth_check"), kChecks);
  one.sizes = json.at("sizes").get<std::vector<uint64_t>>();
  one.queue_pairs = json.at("queue_pairs");
  one.iterations = json.at("iterations");
  one.duration_s = json.at("duration_s");
  return one;
}

Json json_of(const LatencyFigures& one) {
  Json bars = Json::array();
  for (const Histogram::Bar& bar : one.bars) {
    bars.push_back(Json{{"from_ns", bar.from_ns}, {"to_ns", bar.to_ns}, {"count", bar.count}});
  }
  return {{"rounds", one.rounds},  {"lost", one.lost},       {"min_us", one.least_us},
          {"p50_us", one.p50_us},  {"p99_us", one.p99_us},   {"p99_9_us", one.p999_us},
          {"max_us", one.most_us}, {"mean_us", one.mean_us}, {"histogram", std::move(bars)}};
}

LatencyFigures latency_of(const Json& json) {
  LatencyFigures one;
  one.rounds = json.at("rounds");
  one.lost = json.at("lost");
  one.least_us = json.at("min_us");
  one.p50_us = json.at("p50_us");
  one.p99_us = json.at("p99_us");
  one.p999_us = json.at("p99_9_us");
  one.most_us = json.at("max_us");
  one.mean_us = json.at("mean_us");
  for (const Json& bar : json.at("histogram")) {
    one.bars.push_back({bar.at("from_ns"), bar.at("to_ns"), bar.at("count")});
  }
  return one;
}

Json json_of(const BandwidthFigures& one, double line_rate_gbps) {
  Json json{{"by", one.by},
            {"verified", one.is_verified},
            {"messages", one.messages},
            {"lost", one.lost},
            {"verified_bytes", one.verified_bytes},
            {"duration_ns", one.duration_ns},
            {"goodput_gbps", one.goodput_gbps()},
            {"goodput_valid", !is_above_line_rate(one.goodput_gbps(), line_rate_gbps)},
            {"messages_per_s", one.messages_per_s()},
            {"tx_bytes", one.tx_bytes},
            {"tx_duration_ns", one.tx_duration_ns}};
  if (one.tx_duration_ns != 0) {
    json["tx_cqe_rate_gbps"] = one.tx_cqe_rate_gbps();
    json["tx_cqe_rate_valid"] = !is_above_line_rate(one.tx_cqe_rate_gbps(), line_rate_gbps);
  }
  return json;
}

BandwidthFigures bandwidth_of(const Json& json) {
  BandwidthFigures one;
  one.by = json.at("by");
  one.is_verified = json.at("verified");
  one.messages = json.at("messages");
  one.lost = json.at("lost");
  one.verified_bytes = json.at("verified_bytes");
  one.duration_ns = json.at("duration_ns");
  one.tx_bytes = json.at("tx_bytes");
  one.tx_duration_ns = json.at("tx_duration_ns");
  return one;
}

Json json_of(const EndFacts& one) {
  Json json{{"end", one.end}, {"device", one.device}, {"verbs", one.library}, {"port_rate_gbps", one.port_rate_gbps}};
  if (one.has_counters) {
    json["port_counters"] = {{"transmitted_bytes", one.transmitted_bytes}, {"received_bytes", one.received_bytes}};
  } else {
    json["port_counters"] = "not measured";
  }
  return json;
}

EndFacts end_of(const Json& json) {
  EndFacts one;
  one.end = json.at("end");
  one.device = json.at("device");
  one.library = json.at("verbs");
  one.port_rate_gbps = json.at("port_rate_gbps");
  const Json& counters = json.at("port_counters");
  one.has_counters = counters.is_object();
  if (one.has_counters) {
    one.transmitted_bytes = counters.at("transmitted_bytes");
    one.received_bytes = counters.at("received_bytes");
  }
  return one;
}

}  // namespace

std::string result_json(const Result& result, bool is_compact) {
  Json root{{"ringbolt_perf", kVersion},
            {"title", title_of(result.parameters)},
            {"parameters", json_of(result.parameters)},
            {"mtu_bytes", result.mtu_bytes},
            {"line_rate_gbps", result.line_rate_gbps},
            {"requires_counters", result.needs_counters},
            {"ends", Json::array()},
            {"results", Json::array()},
            {"problems", problems_of(result)}};
  for (const EndFacts& end : result.ends) {
    root["ends"].push_back(json_of(end));
  }
  for (const Row& row : result.rows) {
    Json json{{"size_bytes", row.size_bytes}};
    if (row.latency) {
      json["latency"] = json_of(*row.latency);
    }
    for (const BandwidthFigures& one : row.bandwidth) {
      json["bandwidth"].push_back(json_of(one, result.line_rate_gbps));
    }
    root["results"].push_back(std::move(json));
  }
  return root.dump(is_compact ? -1 : 2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::optional<Result> parse_result(std::string_view text) {
  try {
    const Json root = Json::parse(text);
    if (root.at("ringbolt_perf") != kVersion) {
      return std::nullopt;
    }
    Result result;
    result.parameters = parameters_of(root.at("parameters"));
    result.mtu_bytes = root.at("mtu_bytes");
    result.line_rate_gbps = root.at("line_rate_gbps");
    result.needs_counters = root.at("requires_counters");
    for (const Json& end : root.at("ends")) {
      result.ends.push_back(end_of(end));
    }
    for (const Json& json : root.at("results")) {
      Row row{json.at("size_bytes"), std::nullopt, {}};
      if (json.contains("latency")) {
        row.latency = latency_of(json.at("latency"));
      }
      if (json.contains("bandwidth")) {
        for (const Json& one : json.at("bandwidth")) {
          row.bandwidth.push_back(bandwidth_of(one));
        }
      }
      result.rows.push_back(std::move(row));
    }
    return result;
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

}  // namespace ringbolt::tools::perf
