#include "bench/measure.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/assert.h"
#include "base/clock.h"
#include "collective/element.h"
#include "ranks/work.h"
#include "version.h"

namespace ringbolt::tools::bench {
namespace {

/// One rank's memory for a call.
class Buffers {
 public:
  Buffers(const ranks::Work& work, uint32_t rank)
      : work_(work),
        rank_(rank),
        places_(ranks::places_of(work, rank)),
        input_(places_.is_shared ? 0 : places_.input_bytes),
        memory_(places_.memory_bytes()) {}

  const ranks::Work& work() const { return work_; }
  void prepare() {
    memory_.fill_with_canary();
    ranks::write_input(work_, rank_, input());
  }
  Status call(Group& group, const CallOptions& options) {
    return ranks::call(group, work_, input().data(), memory_.bytes().data() + places_.output_at, options);
  }
  /// Elements that are not what they must be; one more if bytes beside them were written.
  uint64_t count_wrong() const {
    std::vector<std::byte> expected(places_.output_bytes);
    ranks::write_expected(work_, rank_, expected);
    const std::span<const std::byte> got = memory_.bytes().subspan(places_.output_at, places_.output_bytes);
    const size_t element = ranks::bytes_of(work_.data.type);
    uint64_t wrong = memory_.is_guard_intact() && input_.is_guard_intact() ? 0 : 1;
    for (size_t at = 0; at < expected.size(); at += element) {
      wrong += std::memcmp(got.data() + at, expected.data() + at, element) != 0 ? 1U : 0U;
    }
    return wrong;
  }

 private:
  std::span<std::byte> input() {
    return places_.is_shared ? memory_.bytes().subspan(places_.input_at, places_.input_bytes) : input_.bytes();
  }

  const ranks::Work& work_;
  uint32_t rank_;
  ranks::Places places_;
  ranks::GuardedMemory input_;
  ranks::GuardedMemory memory_;
};

/// Whether one result is right and no other: what rounds by the order of ranks may not be added up in any order.
bool has_one_result(const ranks::Work& work, const Parameters& asked) {
  return asked.is_reproducible || !ranks::reduces(work.collective) ||
         ranks::has_exact_data(work.data.type, work.data.reduction);
}

/// What each rank has, on all of them: `mine` is equally long everywhere.
tl::expected<std::vector<std::vector<uint64_t>>, Status> share(Group& group, const std::vector<uint64_t>& mine) {
  std::vector<uint64_t> all(mine.size() * group.size());
  if (Status status = group.all_gather(mine.data(), all.data(), mine.size(), Type::uint64); !status.is_ok()) {
    return tl::unexpected<Status>(std::move(status));
  }
  std::vector<std::vector<uint64_t>> shared;
  for (auto at = all.begin(); at != all.end(); at += static_cast<ptrdiff_t>(mine.size())) {
    shared.emplace_back(at, at + static_cast<ptrdiff_t>(mine.size()));
  }
  return shared;
}

/// Repeated calls, timed where `times` is given. In place, sums grow from call to call: what they hold means nothing.
Status repeat(Group& group, Buffers& buffers, uint32_t n, const CallOptions& options, std::vector<uint64_t>* times,
              Progress& progress) {
  for (uint32_t i = 0; i < n; ++i) {
    const uint64_t begin = base::now_ns();
    if (Status status = buffers.call(group, options); !status.is_ok()) {
      return status;
    }
    if (times != nullptr) {
      times->push_back(base::now_ns() - begin);
    }
    if (progress.is_due(begin)) {
      progress.show(
          fmt::format("{}: call {} of {}{}", buffers.work().text(), i + 1, n, times == nullptr ? " to warm up" : ""));
    }
  }
  return {};
}

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

double percentile_us(const std::vector<uint64_t>& sorted_ns, double percent) {
  const double place = std::ceil(percent / 100 * static_cast<double>(sorted_ns.size()));
  const size_t index = static_cast<size_t>(std::max(place, 1.0)) - 1;
  return static_cast<double>(sorted_ns[index]) / 1000;
}

}  // namespace

tl::expected<Figure, Status> measure(Group& group, const ranks::Work& work, const Parameters& asked,
                                     Progress& progress) {
  CallOptions options;
  options.algorithm = ranks::has_algorithms(work.collective) ? asked.algorithm : "";
  options.is_reproducible = asked.is_reproducible;
  options.timeout_ms = asked.timeout_ms;
  const bool is_checked = asked.is_checked && has_one_result(work, asked);
  Buffers buffers(work, group.rank());
  buffers.prepare();
  std::vector<uint64_t> mine;
  Status status = repeat(group, buffers, asked.warmups, options, nullptr, progress);
  if (status.is_ok()) {
    status = group.barrier();
  }
  if (status.is_ok()) {
    status = repeat(group, buffers, asked.iterations, options, &mine, progress);
  }
  if (status.is_ok() && is_checked) {
    buffers.prepare();
    status = buffers.call(group, options);
  }
  if (!status.is_ok()) {
    return tl::unexpected<Status>(std::move(status));
  }
  mine.push_back(is_checked ? buffers.count_wrong() : 0);
  auto all = share(group, mine);
  if (!all) {
    return tl::unexpected<Status>(all.error());
  }
  Figure figure;
  figure.is_checked = is_checked;
  for (std::vector<uint64_t>& one : *all) {
    figure.n_wrong += one.back();
    one.pop_back();
  }
  figure.times = statistics_of(slowest_of(*all));
  figure.skew_us = skew_us(*all);
  const uint64_t bytes = counted_bytes(work.collective, work.count, ranks::bytes_of(work.data.type), work.n_ranks);
  figure.alg_gbps = figure.times.avg_us > 0 ? static_cast<double>(bytes) / figure.times.avg_us / 1000 : 0;
  figure.bus_gbps = figure.alg_gbps * bus_factor(work.collective, work.n_ranks);
  return figure;
}

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

Statistics statistics_of(std::vector<uint64_t> times_ns) {
  RINGBOLT_ASSERT(!times_ns.empty());
  std::sort(times_ns.begin(), times_ns.end());
  const auto n = static_cast<double>(times_ns.size());
  Statistics statistics;
  statistics.min_us = static_cast<double>(times_ns.front()) / 1000;
  statistics.max_us = static_cast<double>(times_ns.back()) / 1000;
  statistics.avg_us = static_cast<double>(std::accumulate(times_ns.begin(), times_ns.end(), uint64_t{0})) / n / 1000;
  statistics.p50_us = percentile_us(times_ns, 50);
  statistics.p95_us = percentile_us(times_ns, 95);
  statistics.p99_us = percentile_us(times_ns, 99);
  double squares = 0;
  for (const uint64_t time : times_ns) {
    const double off = static_cast<double>(time) / 1000 - statistics.avg_us;
    squares += off * off;
  }
  statistics.stdev_us = times_ns.size() < 2 ? 0 : std::sqrt(squares / (n - 1));
  statistics.cv_pct = statistics.avg_us > 0 ? 100 * statistics.stdev_us / statistics.avg_us : 0;
  return statistics;
}

std::vector<uint64_t> slowest_of(const std::vector<std::vector<uint64_t>>& times_ns) {
  std::vector<uint64_t> slowest = times_ns.at(0);
  for (const std::vector<uint64_t>& times : times_ns) {
    RINGBOLT_ASSERT(times.size() == slowest.size());
    std::transform(slowest.begin(), slowest.end(), times.begin(), slowest.begin(),
                   [](uint64_t a, uint64_t b) { return std::max(a, b); });
  }
  return slowest;
}

double skew_us(const std::vector<std::vector<uint64_t>>& times_ns) {
  std::vector<double> medians;
  for (const std::vector<uint64_t>& times : times_ns) {
    medians.push_back(statistics_of(times).p50_us);
  }
  const auto [least, most] = std::minmax_element(medians.begin(), medians.end());
  return *most - *least;
}

}  // namespace ringbolt::tools::bench
