#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "perf/result.h"

namespace ringbolt::tools::perf {
namespace {

constexpr double kGbpsPerMibps = 8.0 * 1048576.0 / 1e9;

std::string rate_text(double gbps, const Style& style) {
  return fmt::format("{:.3f}", style.is_in_gbits ? gbps : gbps / kGbpsPerMibps);
}

std::string head_text(const Result& result) {
  const Parameters& parameters = result.parameters;
  std::string text = fmt::format("{}, {} queue pair{}, MTU {} bytes", title_of(parameters), parameters.queue_pairs,
                                 parameters.queue_pairs == 1 ? "" : "s", result.mtu_bytes);
  text += pair::line_rate_text(result.line_rate_gbps, ", no line rate to judge by") + "\n";
  for (const pair::EndFacts& end : result.ends) {
    text += fmt::format("{}: {} of {}; port counters: ", end.end, end.device, end.library);
    text += end.has_counters ? fmt::format("{} bytes out, {} bytes in\n", end.transmitted_bytes, end.received_bytes)
                             : std::string("not measured\n");
  }
  return text;
}

std::string latency_table(const Result& result) {
  const Operation operation = result.parameters.operation;
  const bool is_half = operation == Operation::kSend || operation == Operation::kWrite;
  std::string text = fmt::format("\nLatency: {} round trip, in microseconds; checked: {}\n",
                                 is_half ? "half of each" : "a whole", text_of(result.parameters.latency_check));
  text += fmt::format("{:>10} {:>10} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>6}\n", "BYTES", "ROUNDS", "MIN_US",
                      "P50_US", "P99_US", "P99.9_US", "MAX_US", "MEAN_US", "LOST");
  for (const Row& row : result.rows) {
    if (row.latency) {
      const LatencyFigures& one = *row.latency;
      text += fmt::format("{:>10} {:>10} {:>9.3f} {:>9.3f} {:>9.3f} {:>9.3f} {:>9.3f} {:>9.3f} {:>6}\n", row.size_bytes,
                          one.rounds, one.least_us, one.p50_us, one.p99_us, one.p999_us, one.most_us, one.mean_us,
                          one.lost);
    }
  }
  return text;
}

std::string histogram_text(const Row& row) {
  constexpr double kStarsWide = 50;
  std::string text = fmt::format("\nHistogram of {} bytes\n", row.size_bytes);
  uint64_t most = 1;
  for (const Histogram::Bar& bar : row.latency->bars) {
    most = std::max(most, bar.count);
  }
  for (const Histogram::Bar& bar : row.latency->bars) {
    if (bar.count != 0) {
      const auto stars = static_cast<size_t>(kStarsWide * static_cast<double>(bar.count) / static_cast<double>(most));
      text +=
          fmt::format("{:>10.3f} to {:>10.3f} us {:>10} {}\n", static_cast<double>(bar.from_ns) / 1000,
                      static_cast<double>(bar.to_ns) / 1000, bar.count, std::string(std::max<size_t>(stars, 1), '*'));
    }
  }
  return text;
}

std::string bandwidth_row(const Row& row, const BandwidthFigures& one, double line_rate_gbps, const Style& style) {
  const double goodput = one.goodput_gbps();
  const double cqe_rate = one.tx_cqe_rate_gbps();
  std::string text = fmt::format("{:>10} {:>7} {:>10} {:>6} {:>14} {:>10.4f} {:>14}", row.size_bytes, one.by,
                                 one.messages, one.lost, rate_text(goodput, style), one.messages_per_s() / 1e6,
                                 cqe_rate > 0 ? rate_text(cqe_rate, style) : "-");
  if (!one.is_verified) {
    text += "  not verified";
  }
  for (const auto& [name, gbps] : {std::pair("goodput", goodput), std::pair("tx_cqe_rate", cqe_rate)}) {
    if (pair::is_above_line_rate(gbps, line_rate_gbps)) {
      text += fmt::format("  {} INVALID(above line rate)", name);
    }
  }
  return text + "\n";
}

std::string bandwidth_table(const Result& result, const Style& style) {
  const char* unit = style.is_in_gbits ? "Gb/s" : "MiB/s";
  std::string text = fmt::format("\nBandwidth: goodput of bytes at the receiver, in {}; checked: {}\n", unit,
                                 text_of(result.parameters.bandwidth_check));
  text += fmt::format("{:>10} {:>7} {:>10} {:>6} {:>14} {:>10} {:>14}\n", "BYTES", "BY", "MESSAGES", "LOST",
                      fmt::format("GOODPUT_{}", unit), "MMSG/S", "TX_CQE_RATE");
  for (const Row& row : result.rows) {
    double sum = 0;
    for (const BandwidthFigures& one : row.bandwidth) {
      text += bandwidth_row(row, one, result.line_rate_gbps, style);
      sum += one.goodput_gbps();
    }
    if (row.bandwidth.size() > 1) {
      text += fmt::format("{:>10} {:>7} {:>10} {:>6} {:>14}  (sum of both directions)\n", row.size_bytes, "both", "",
                          "", rate_text(sum, style));
    }
  }
  return text;
}

}  // namespace

std::string result_text(const Result& result, const Style& style) {
  std::string text = head_text(result);
  if (result.parameters.has_latency) {
    text += latency_table(result);
    for (const Row& row : result.rows) {
      if (style.has_histogram && row.latency) {
        text += histogram_text(row);
      }
    }
  }
  if (result.parameters.has_bandwidth) {
    text += bandwidth_table(result, style);
  }
  return text;
}

}  // namespace ringbolt::tools::perf
