#include <cerrno>
#include <cstdio>
#include <ctime>
#include <optional>

#include <fmt/format.h>

#include "base/say.h"
#include "bench/measure.h"
#include "bench/parameters.h"
#include "bench/stream_blocks.h"
#include "collective/element.h"
#include "commands.h"
#include "failure.h"
#include "page_file.h"
#include "progress_line.h"
#include "ranks/start.h"
#include "stop.h"
#include "thresholds.h"

namespace ringbolt::tools {
namespace {

using bench::Parameters;
using bench::Result;
using bench::Row;

std::string time_text() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

/// The calls of one line of the table; false: one failed.
bool measure_row(Group& group, ranks::Work work, const Parameters& asked, LastWords& last_words, Progress& progress,
                 Result& result) {
  Row row;
  row.work = work;
  for (const bool is_in_place : {false, true}) {
    const bool is_there =
        is_in_place ? ranks::can_be_in_place(work.collective) : work.collective != ranks::Collective::broadcast;
    if (!is_there) {
      continue;
    }
    work.is_in_place = is_in_place;
    const auto figure = bench::measure(group, work, asked, progress);
    if (!figure) {
      const base::LockGuard held(last_words.mutex());
      result.failure = fmt::format("rank {}: {}: {}", group.rank(), work.text(), figure.error().text);
      return false;
    }
    (is_in_place ? row.in_place : row.out_of_place) = *figure;
  }
  const base::LockGuard held(last_words.mutex());
  result.rows.push_back(row);
  return true;
}

/// All lines of the table, in order.
std::vector<ranks::Work> works_of(const Parameters& asked, uint32_t n_ranks) {
  std::vector<ranks::Work> works;
  std::vector<uint32_t> roots;
  for (uint32_t rank = 0; rank < n_ranks; ++rank) {
    if (asked.roots[0] == bench::kAllRoots || asked.roots[0] == int64_t{rank}) {
      roots.push_back(rank);
    }
  }
  if (roots.empty()) {
    throw UsageError(fmt::format("-r {}: there are ranks 0 to {}", asked.roots[0], n_ranks - 1));
  }
  const bool reduces = ranks::reduces(asked.collective);
  for (const uint64_t size : asked.sizes) {
    for (const Type type : asked.types) {
      for (const Reduction reduction : asked.reductions) {
        for (const uint32_t root : roots) {
          if (reduces && !collective::can_reduce(static_cast<collective::Type>(type),
                                                 static_cast<collective::Reduction>(reduction))) {
            continue;
          }
          const size_t count = bench::count_of(asked.collective, size, ranks::bytes_of(type), n_ranks);
          const bool is_exact = !asked.is_reproducible && ranks::has_exact_data(type, reduction);
          works.push_back(
              {asked.collective, {type, reduction, is_exact, 1 + works.size()}, count, root, n_ranks, false});
        }
      }
    }
  }
  if (works.empty()) {
    throw UsageError("-o and -d: there is no such reduction of such a type");
  }
  return works;
}

/// The end of the output: all of it as JSON, or what stands below the table.
void print_end(Result& result, bool is_json, PageFile& file) {
  result.end_time = time_text();
  fmt::print("{}", is_json ? bench::result_json(result) : bench::footer_text(result));
  std::fflush(stdout);
  file.write(bench::result_json(result));
}

int run_rank(const BenchOptions& options, const Parameters& asked) {
  const bool is_json = options.is_json || options.json_path == "-";
  Result result;
  result.asked = asked;
  result.start_time = time_text();
  result.words = options.words;
  std::optional<PageFile> file;  // of rank 0, once that is known
  LastWords last_words([&] {
    if (file) {
      result.failure = "interrupted: this is what was measured until then";
      print_end(result, is_json, *file);
    }
  });
  Group group = [&] {
    GroupOptions group_options;
    group_options.verbs = options.verbs;
    return ranks::join(group_options, options.n_ranks);
  }();
  const bool prints = group.rank() == 0;
  const std::vector<ranks::Work> works = works_of(asked, group.size());
  if (asked.collective == ranks::Collective::send_recv && group.size() < 2) {
    throw UsageError("send_recv needs two ranks");
  }
  {
    const base::LockGuard held(last_words.mutex());
    result.n_ranks = group.size();
    if (prints) {
      file.emplace(options.json_path != "-" ? options.json_path : "", "-J");
      fmt::print("{}", is_json ? "" : bench::heading_text(result));
    }
  }
  Progress progress(Progress::of_child(options.tells_progress && prints));
  for (uint32_t cycle = 0; cycle < asked.cycles && result.failure.empty(); ++cycle) {
    for (const ranks::Work& work : works) {
      if (!measure_row(group, work, asked, last_words, progress, result)) {
        break;
      }
      if (prints && !is_json) {
        const base::LockGuard held(last_words.mutex());
        fmt::print("{}", bench::row_text(result.rows.back()));
        std::fflush(stdout);
      }
    }
  }
  const base::LockGuard held(last_words.mutex());
  if (file) {
    print_end(result, is_json, *file);
  } else if (!result.failure.empty()) {
    base::say(fmt::format("{}\n", result.failure));
  }
  last_words.retire();
  const int status = bench::is_right(result) ? kOk : kFoundProblem;
  return options.fail_if.empty() || !file ? status
                                          : status_within(status, "bench", bench::result_json(result), options.fail_if);
}

}  // namespace

int bench_run(const BenchOptions& options) {
  check_thresholds(options.fail_if);
  if (options.collective == "stream") {
    return bench::bench_streams(options);
  }
  const Parameters asked = bench::parameters_of(options);
  const bool is_rank = options.is_rank || (options.cluster.empty() && ranks::is_rank());
  if (is_rank) {
    return run_rank(options, asked);
  }
  if (options.threads != 1 || options.gpus != 1 || options.aggregated != 1 || options.init_ids != "0") {
    base::say("ringbolt bench: -t, -g, -m and -I are ignored: a rank is a process with one buffer\n");
  }
  return ranks::run_on_all_nodes(options.cluster, options.words, std::nullopt);
}

}  // namespace ringbolt::tools
