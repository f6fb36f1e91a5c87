#include "bench/result.h"

#include <unistd.h>
#include <algorithm>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "collective/element.h"
#include "version.h"

namespace ringbolt::tools::bench {
namespace {

using Json = nlohmann::ordered_json;

std::string_view type_text(const ranks::Work& work) {
  return collective::text(static_cast<collective::Type>(work.data.type));
}
std::string_view reduction_text(const ranks::Work& work) {
  return ranks::reduces(work.collective) ? collective::text(static_cast<collective::Reduction>(work.data.reduction))
                                         : "none";
}
int64_t root_of(const ranks::Work& work) { return ranks::has_root(work.collective) ? int64_t{work.root} : -1; }

uint64_t size_of(const ranks::Work& work) {
  return counted_bytes(work.collective, work.count, ranks::bytes_of(work.data.type), work.n_ranks);
}

std::string figure_text(const std::optional<Figure>& figure) {
  if (!figure) {
    return fmt::format("  {:>8}  {:>6}  {:>6}  {:>6}", "N/A", "N/A", "N/A", "N/A");
  }
  return fmt::format("  {:>8.1f}  {:>6.2f}  {:>6.2f}  {:>6}", figure->times.avg_us, figure->alg_gbps, figure->bus_gbps,
                     figure->is_checked ? std::to_string(figure->n_wrong) : "N/A");
}

Json figure_json(const std::optional<Figure>& figure) {
  if (!figure) {
    return nullptr;
  }
  const Statistics& times = figure->times;
  Json json{{"time", times.avg_us},      {"alg_bw", figure->alg_gbps}, {"bus_bw", figure->bus_gbps},
            {"nwrong", nullptr},         {"min_us", times.min_us},     {"max_us", times.max_us},
            {"avg_us", times.avg_us},    {"p50_us", times.p50_us},     {"p95_us", times.p95_us},
            {"p99_us", times.p99_us},    {"stdev_us", times.stdev_us}, {"cv_pct", times.cv_pct},
            {"skew_us", figure->skew_us}};
  if (figure->is_checked) {
    json["nwrong"] = figure->n_wrong;
  }
  return json;
}

template <class Use>
void for_each_figure(const Result& result, const Use& use) {
  for (const Row& row : result.rows) {
    for (const std::optional<Figure>& figure : {row.out_of_place, row.in_place}) {
      if (figure) {
        use(*figure);
      }
    }
  }
}

uint64_t total_wrong(const Result& result) {
  uint64_t wrong = 0;
  for_each_figure(result, [&](const Figure& figure) { wrong += figure.n_wrong; });
  return wrong;
}

bool is_compared(const Result& result) {
  bool is_compared = false;
  for_each_figure(result, [&](const Figure& figure) { is_compared = is_compared || figure.is_checked; });
  return is_compared;
}

double average_bus(const Result& result) {
  double sum = 0;
  double n = 0;
  for_each_figure(result, [&](const Figure& figure) {
    sum += figure.bus_gbps;
    n += 1;
  });
  return n > 0 ? sum / n : 0;
}

double greatest_skew(const Result& result) {
  double skew = 0;
  for_each_figure(result, [&](const Figure& figure) { skew = std::max(skew, figure.skew_us); });
  return skew;
}

/// The variables that change what Ringbolt does; no secrets.
Json environment() {
  Json variables = Json::object();
  for (char** one = environ; one != nullptr && *one != nullptr; ++one) {
    const std::string_view text = *one;
    const size_t equals = text.find('=');
    if (text.starts_with("RINGBOLT_") && equals != std::string_view::npos && text.find("SECRET") > equals) {
      variables[std::string(text.substr(0, equals))] = text.substr(equals + 1);
    }
  }
  return variables;
}

}  // namespace

bool is_right(const Result& result) { return result.failure.empty() && total_wrong(result) == 0; }

std::string heading_text(const Result& result) {
  const Parameters& asked = result.asked;
  std::string words =
      fmt::format("# ringbolt bench {}: {} ranks, {} calls a line after {} to warm up, {}{}\n#\n",
                  ranks::text(asked.collective), result.n_ranks, asked.iterations, asked.warmups,
                  asked.is_reproducible ? "reductions in the order of ranks" : "reductions in any order",
                  asked.algorithm.empty() ? "" : ", by " + asked.algorithm);
  words += fmt::format("# {:>63}{:<34}  {}\n", "", "out-of-place", "in-place");
  words += fmt::format(
      "# {:>10}  {:>12}  {:>9}  {:>6}  {:>6}  {:>8}  {:>6}  {:>6}  {:>6}  {:>8}  {:>6}  {:>6}  {:>6}\n", "size",
      "count", "type", "redop", "root", "time", "algbw", "busbw", "#wrong", "time", "algbw", "busbw", "#wrong");
  words += fmt::format("# {:>10}  {:>12}  {:>9}  {:>6}  {:>6}  {:>8}  {:>6}  {:>6}  {:>6}  {:>8}  {:>6}  {:>6}\n",
                       "(B)", "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)", "", "(us)", "(GB/s)", "(GB/s)");
  return words;
}

std::string row_text(const Row& row) {
  return fmt::format("{:>12}  {:>12}  {:>9}  {:>6}  {:>6}{}{}\n", size_of(row.work), row.work.count,
                     type_text(row.work), reduction_text(row.work), root_of(row.work), figure_text(row.out_of_place),
                     figure_text(row.in_place));
}

std::string footer_text(const Result& result) {
  std::string words;
  if (!result.failure.empty()) {
    words += fmt::format("FAILED  {}\n", result.failure);
  }
  if (!result.asked.is_checked) {
    words += "# Out of bounds values : not measured (-c 0)\n";
  } else if (result.failure.empty() && !is_compared(result)) {
    words += "# Out of bounds values : not measured (products of complex64 in any order have no one result)\n";
  } else {
    words += fmt::format("# Out of bounds values : {} {}\n", total_wrong(result), is_right(result) ? "OK" : "FAILED");
  }
  words += fmt::format("# Avg bus bandwidth    : {:.3f} GB/s\n", average_bus(result));
  return words + fmt::format("# Greatest skew        : {:.1f} us between ranks' medians\n", greatest_skew(result));
}

std::string result_json(const Result& result) {
  const Parameters& asked = result.asked;
  Json root{
      {"version", 3},         {"start_time", result.start_time}, {"end_time", result.end_time}, {"args", result.words},
      {"env", environment()}, {"nccl_version", nullptr},         {"ringbolt_version", kVersion}};
  root["config"] = {{"collective", ranks::text(asked.collective)},
                    {"nranks", result.n_ranks},
                    {"iterations", asked.iterations},
                    {"warmup_iterations", asked.warmups},
                    {"cycles", asked.cycles},
                    {"validation", asked.is_checked},
                    {"algorithm", asked.algorithm},
                    {"in_order", asked.is_reproducible}};
  root["results"] = Json::array();
  for (const Row& row : result.rows) {
    root["results"].push_back({{"size", size_of(row.work)},
                               {"count", row.work.count},
                               {"type", type_text(row.work)},
                               {"redop", reduction_text(row.work)},
                               {"root", root_of(row.work)},
                               {"out_of_place", figure_json(row.out_of_place)},
                               {"in_place", figure_json(row.in_place)}});
  }
  root["out_of_bounds"] = {{"count", total_wrong(result)}, {"okay", is_right(result)}};
  root["average_bus_bandwidth"] = {{"bandwidth", average_bus(result)}};
  root["failure"] = result.failure;
  return root.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace ringbolt::tools::bench
