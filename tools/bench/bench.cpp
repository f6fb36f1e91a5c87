#include <cerrno>
#include <cstdio>
#include <ctime>

#include <fmt/format.h>

#include "base/say.h"
#include "bench/parameters.h"
#include "bench/result.h"
#include "collective/element.h"
#include "commands.h"
#include "failure.h"
#include "page_file.h"
#include "ranks/meeting.h"
#include "ranks/start.h"

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
bool measure_row(Group& group, ranks::Work work, const Parameters& asked, Result& result) {
  Row row;
  row.work = work;
  for (const bool is_in_place : {false, true}) {
    const bool is_there =
        is_in_place ? ranks::can_be_in_place(work.collective) : work.collective != ranks::Collective::broadcast;
    if (!is_there) {
      continue;
    }
    work.is_in_place = is_in_place;
    const auto figure = bench::measure(group, work, asked);
    if (!figure) {
      result.failure = fmt::format("rank {}: {}: {}", group.rank(), work.text(), figure.error().text);
      return false;
    }
    (is_in_place ? row.in_place : row.out_of_place) = *figure;
  }
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

int run_rank(const BenchOptions& options, const Parameters& asked) {
  Group group = [&] {
    GroupOptions group_options;
    group_options.verbs = options.verbs;
    return ranks::join(group_options, options.n_ranks);
  }();
  const bool prints = group.rank() == 0;
  const bool is_json = options.is_json || options.json_path == "-";
  PageFile file(prints && options.json_path != "-" ? options.json_path : "", "-J");
  Result result;
  result.n_ranks = group.size();
  result.asked = asked;
  result.start_time = time_text();
  result.words = options.words;
  const std::vector<ranks::Work> works = works_of(asked, group.size());
  if (asked.collective == ranks::Collective::send_recv && group.size() < 2) {
    throw UsageError("send_recv needs two ranks");
  }
  if (prints && !is_json) {
    fmt::print("{}", bench::heading_text(result));
  }
  for (uint32_t cycle = 0; cycle < asked.cycles && result.failure.empty(); ++cycle) {
    for (const ranks::Work& work : works) {
      if (!measure_row(group, work, asked, result)) {
        break;
      }
      if (prints && !is_json) {
        fmt::print("{}", bench::row_text(result.rows.back()));
        std::fflush(stdout);
      }
    }
  }
  result.end_time = time_text();
  if (prints) {
    fmt::print("{}", is_json ? bench::result_json(result) : bench::footer_text(result));
    file.write(bench::result_json(result));
  } else if (!result.failure.empty()) {
    base::say(fmt::format("{}\n", result.failure));
  }
  return bench::is_right(result) ? kOk : kFoundProblem;
}

}  // namespace

int bench_run(const BenchOptions& options) {
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
