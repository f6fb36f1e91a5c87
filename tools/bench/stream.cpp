#include "bench/stream_blocks.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bench/parameters.h"
#include "failure.h"
#include "page_file.h"
#include "progress_line.h"
#include "thresholds.h"
#include "version.h"

namespace ringbolt::tools::bench {
namespace {

using StreamJson = nlohmann::ordered_json;

constexpr uint64_t kMostMessageBytes = 16U << 20U;
constexpr uint32_t kUsualRounds = 7;

/// One line: a way, and what its blocks have found.
struct StreamSeries {
  Way way;
  std::vector<BlockFigures> blocks;

  double median(double BlockFigures::*figure) const {
    std::vector<double> found;
    for (const BlockFigures& block : blocks) {
      found.push_back(block.*figure);
    }
    std::sort(found.begin(), found.end());
    const size_t middle = found.size() / 2;
    return found.size() % 2 == 1 ? found[middle] : (found[middle - 1] + found[middle]) / 2;
  }
};
using Many = std::vector<StreamSeries>;

/// The series of the same way of waiting over `carrier`, which others are compared with.
const StreamSeries& beside(const Many& all, const Way& way, Carrier carrier) {
  return *std::find_if(all.begin(), all.end(), [&](const StreamSeries& one) {
    return one.way.carrier == carrier && one.way.spins == way.spins;
  });
}

double load_average() {
  double load = 0;
  return ::getloadavg(&load, 1) == 1 ? load : 0;
}

struct StreamResult {
  size_t bytes = 0;  ///< of a message to and fro
  uint32_t rounds = 0;
  uint32_t block_ms = 0;
  std::array<double, 2> load{};  ///< before and after
  Many ping_pong;
  Many bandwidth;
};

void measure_rounds(const BenchOptions& options, StreamResult& result) {
  Progress progress;
  const uint64_t block_ns = uint64_t{result.block_ms} * 1'000'000;
  for (uint32_t round = 0; round < result.rounds; ++round) {
    progress.show(fmt::format("round {} of {}", round + 1, result.rounds));
    for (StreamSeries& one : result.ping_pong) {
      one.blocks.push_back(ping_pong_block(one.way, result.bytes, block_ns, options.verbs));
    }
    for (StreamSeries& one : result.bandwidth) {
      one.blocks.push_back(bandwidth_block(one.way, block_ns, options.verbs));
    }
  }
}

/// How many times faster it is than that.
double ratio(const StreamSeries& one, const StreamSeries& other, double BlockFigures::*figure) {
  const double mine = one.median(figure);
  const double theirs = other.median(figure);
  return figure == &BlockFigures::gbytes_per_s ? mine / theirs : theirs / mine;
}

std::string streams_text(const StreamResult& result) {
  std::string text = fmt::format(
      "# ringbolt bench stream: medians over {} rounds of blocks of {} ms; load average {:.1f} before, {:.1f} after\n\n"
      "{:34} {:>9} {:>9} {:>8} {:>8}\n",
      result.rounds, result.block_ms, result.load[0], result.load[1], fmt::format("{} bytes to and fro", result.bytes),
      "p50 us", "p99 us", "x UNIX", "x TCP");
  for (const StreamSeries& one : result.ping_pong) {
    text += fmt::format("  {:32} {:9.2f} {:9.2f} {:8.2f} {:8.2f}\n", bench::text(one.way),
                        one.median(&BlockFigures::p50_us), one.median(&BlockFigures::p99_us),
                        ratio(one, beside(result.ping_pong, one.way, Carrier::unix_socket), &BlockFigures::p50_us),
                        ratio(one, beside(result.ping_pong, one.way, Carrier::tcp), &BlockFigures::p50_us));
  }
  text += fmt::format("\n{:34} {:>9} {:>18} {:>8}\n", "256 KiB at a time", "GB/s", "x UNIX", "x TCP");
  for (const StreamSeries& one : result.bandwidth) {
    text +=
        fmt::format("  {:32} {:9.2f} {:18.2f} {:8.2f}\n", bench::text(one.way), one.median(&BlockFigures::gbytes_per_s),
                    ratio(one, beside(result.bandwidth, one.way, Carrier::unix_socket), &BlockFigures::gbytes_per_s),
                    ratio(one, beside(result.bandwidth, one.way, Carrier::tcp), &BlockFigures::gbytes_per_s));
  }
  return text;
}

StreamJson series_json(const Many& all, const std::map<std::string, double BlockFigures::*>& figures) {
  StreamJson list = StreamJson::array();
  for (const StreamSeries& one : all) {
    StreamJson line{{"way", bench::text(one.way)}};
    for (const auto& [name, figure] : figures) {
      line[name] = one.median(figure);
    }
    const auto compared = figures.begin()->second;
    line["times_unix"] = ratio(one, beside(all, one.way, Carrier::unix_socket), compared);
    line["times_tcp"] = ratio(one, beside(all, one.way, Carrier::tcp), compared);
    list.push_back(line);
  }
  return list;
}

std::string streams_json(const StreamResult& result) {
  const StreamJson root{{"ringbolt_version", kVersion},
                        {"bytes", result.bytes},
                        {"rounds", result.rounds},
                        {"block_ms", result.block_ms},
                        {"load_average", result.load},
                        {"ping_pong", series_json(result.ping_pong, {{"p50_us", &BlockFigures::p50_us},
                                                                     {"p99_us", &BlockFigures::p99_us}})},
                        {"bandwidth", series_json(result.bandwidth, {{"gbytes_per_s", &BlockFigures::gbytes_per_s}})}};
  return root.dump(2) + "\n";
}

/// Options that it has a use for; -r and its like would be passed over in silence.
constexpr std::string_view kTakenByStream[] = {"--minbytes",    "--run_cycles", "--block-ms", "--verbs",
                                               "--output_file", "--json",       "--fail-if"};

}  // namespace

int bench_streams(const BenchOptions& options) {
  for (const std::string& one : options.given) {
    if (std::ranges::find(kTakenByStream, one) == std::end(kTakenByStream)) {
      throw UsageError(
          fmt::format("{}: bench stream runs between two processes of this machine: it takes -b, -N, --block-ms, -J, "
                      "--json, --verbs, --fail-if",
                      one));
    }
  }
  const uint64_t bytes = options.has_least ? bytes_of("-b", options.least) : 64;
  if (bytes == 0 || bytes > kMostMessageBytes) {
    throw UsageError(fmt::format("-b {}: of a message of bench stream, from 1 to 16M", options.least));
  }
  StreamResult result;
  result.bytes = bytes;
  result.rounds = options.has_cycles ? options.cycles : kUsualRounds;
  result.block_ms = options.block_ms;
  for (const bool spins : {true, false}) {
    for (const Carrier carrier : {Carrier::stream, Carrier::unix_socket, Carrier::tcp}) {
      result.ping_pong.push_back({{carrier, spins}, {}});
      result.bandwidth.push_back({{carrier, spins}, {}});
    }
  }
  result.ping_pong.push_back({{Carrier::eventfd, false}, {}});
  result.bandwidth.push_back({{Carrier::stream_zero_copy, false}, {}});
  PageFile file(options.json_path != "-" ? options.json_path : "", "-J");
  result.load[0] = load_average();
  measure_rounds(options, result);
  result.load[1] = load_average();
  const bool is_json = options.is_json || options.json_path == "-";
  fmt::print("{}", is_json ? streams_json(result) : streams_text(result));
  file.write(streams_json(result));
  std::fflush(stdout);
  return options.fail_if.empty() ? kOk : status_within(kOk, "bench", streams_json(result), options.fail_if);
}

}  // namespace ringbolt::tools::bench
