#include "perf/result.h"

#include <string>

#include <fmt/format.h>

namespace ringbolt::tools::perf {

using pair::is_above_line_rate;

LatencyFigures latency_figures(const Histogram& histogram, uint64_t lost, bool is_half) {
  const double scale = is_half ? 2000.0 : 1000.0;
  LatencyFigures figures;
  figures.rounds = histogram.count();
  figures.lost = lost;
  figures.least_us = static_cast<double>(histogram.least_ns()) / scale;
  figures.p50_us = histogram.percentile_ns(0.5) / scale;
  figures.p99_us = histogram.percentile_ns(0.99) / scale;
  figures.p999_us = histogram.percentile_ns(0.999) / scale;
  figures.most_us = static_cast<double>(histogram.most_ns()) / scale;
  figures.mean_us = histogram.mean_ns() / scale;
  figures.bars = histogram.bars();
  for (Histogram::Bar& bar : figures.bars) {
    bar.from_ns /= is_half ? 2 : 1;
    bar.to_ns /= is_half ? 2 : 1;
  }
  return figures;
}

double BandwidthFigures::messages_per_s() const {
  return duration_ns == 0 ? 0 : static_cast<double>(messages) * 1e9 / static_cast<double>(duration_ns);
}

namespace {

void judge_rates(const Result& result, std::vector<std::string>& problems) {
  const double line = result.line_rate_gbps;
  for (const Row& row : result.rows) {
    for (const BandwidthFigures& one : row.bandwidth) {
      const struct {
        const char* name;
        double gbps;
      } figures[] = {{"goodput", one.goodput_gbps()}, {"tx_cqe_rate", one.tx_cqe_rate_gbps()}};
      for (const auto& figure : figures) {
        if (is_above_line_rate(figure.gbps, line)) {
          problems.push_back(fmt::format(
              "{} bytes, by the {}: {} of {:.4g} Gb/s is above the line rate of {:.4g} Gb/s, so it is not a figure of "
              "that line; if the line is another, give --line-rate GBPS (0: none)",
              row.size_bytes, one.by, figure.name, figure.gbps, line));
        }
      }
      if (one.messages == 0) {
        problems.push_back(
            fmt::format("{} bytes, by the {}: nothing arrived of {} messages", row.size_bytes, one.by, one.lost));
      }
    }
  }
}

void judge_counters(const Result& result, std::vector<std::string>& problems) {
  uint64_t verified = 0;  // in both directions, and each end's port carries both
  for (const Row& row : result.rows) {
    for (const BandwidthFigures& one : row.bandwidth) {
      verified += one.verified_bytes;
    }
  }
  for (const pair::EndFacts& end : result.ends) {
    const uint64_t moved = end.transmitted_bytes + end.received_bytes;
    if (end.has_counters && moved == 0) {
      problems.push_back(
          fmt::format("the port counters of {} at the {} did not move: what was measured did not go through this port",
                      end.device, end.end));
    } else if (end.has_counters && moved < verified / 2) {
      problems.push_back(fmt::format(
          "the port counters of {} at the {} moved by {} bytes while {} bytes were verified: most of what was measured "
          "did not go through this port",
          end.device, end.end, moved, verified));
    }
    if (!end.has_counters && result.needs_counters) {
      problems.push_back(
          fmt::format("{} at the {} has no port counters, which --require-counters asks for", end.device, end.end));
    }
  }
}

}  // namespace

std::vector<std::string> problems_of(const Result& result) {
  std::vector<std::string> problems;
  judge_rates(result, problems);
  judge_counters(result, problems);
  return problems;
}

namespace {

using Json = nlohmann::ordered_json;
constexpr int kVersion = 1;

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

Json json_of(const LatencyFigures& one) {
  Json bars = Json::array();
  for (const Histogram::Bar& bar : one.bars) {
    bars.push_back(Json{{"from_ns", bar.from_ns}, {"to_ns", bar.to_ns}, {"count", bar.count}});
  }
  return {{"rounds", one.rounds},  {"lost", one.lost},       {"min_us", one.least_us},
          {"p50_us", one.p50_us},  {"p99_us", one.p99_us},   {"p99_9_us", one.p999_us},
          {"max_us", one.most_us}, {"mean_us", one.mean_us}, {"histogram", std::move(bars)}};
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

Json json_of(const pair::EndFacts& one) {
  Json json = pair::end_json(one);
  json["port_counters"] = "not measured";
  if (one.has_counters) {
    json["port_counters"] = {{"transmitted_bytes", one.transmitted_bytes}, {"received_bytes", one.received_bytes}};
  }
  return json;
}

}  // namespace

std::string result_json(const Result& result) {
  Json root{{"ringbolt_perf", kVersion},
            {"title", title_of(result.parameters)},
            {"parameters", json_of(result.parameters)},
            {"mtu_bytes", result.mtu_bytes},
            {"line_rate_gbps", result.line_rate_gbps},
            {"requires_counters", result.needs_counters},
            {"ends", Json::array()},
            {"results", Json::array()},
            {"problems", problems_of(result)}};
  for (const pair::EndFacts& end : result.ends) {
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
  return root.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace ringbolt::tools::perf
