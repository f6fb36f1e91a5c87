#include "perf/result.h"

#include <algorithm>

#include <fmt/format.h>

namespace ringbolt::tools::perf {

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

double BandwidthFigures::goodput_gbps() const {
  return duration_ns == 0 ? 0 : static_cast<double>(verified_bytes) * 8.0 / static_cast<double>(duration_ns);
}

double BandwidthFigures::messages_per_s() const {
  return duration_ns == 0 ? 0 : static_cast<double>(messages) * 1e9 / static_cast<double>(duration_ns);
}

double BandwidthFigures::tx_cqe_rate_gbps() const {
  return tx_duration_ns == 0 ? 0 : static_cast<double>(tx_bytes) * 8.0 / static_cast<double>(tx_duration_ns);
}

bool is_above_line_rate(double gbps, double line_rate_gbps) { return line_rate_gbps > 0 && gbps > line_rate_gbps; }

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
  for (const EndFacts& end : result.ends) {
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

}  // namespace ringbolt::tools::perf
