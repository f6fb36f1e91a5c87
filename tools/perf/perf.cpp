#include <algorithm>
#include <csignal>
#include <cstdio>

#include <fmt/format.h>

#include "base/say.h"
#include "commands.h"
#include "failure.h"
#include "page_file.h"
#include "pair/two_ends.h"
#include "perf/request.h"
#include "perf/result.h"
#include "perf/session.h"
#include "thresholds.h"

namespace ringbolt::tools {
namespace {

using perf::Result;

/// Of both ends on nodes, in seconds.
double most_s(const PerfOptions& options, const perf::Parameters& parameters) {
  const double figures = 2.0 * static_cast<double>(parameters.sizes.size());
  constexpr double kSecondsAnOperation = 1e-3;
  const double one = options.timeout_s * 2 + parameters.duration_s * 2 +
                     static_cast<double>(parameters.iterations) * kSecondsAnOperation;
  return std::min(figures * one, 1e8);
}

int print(const PerfOptions& options, const Result& result) {
  const bool prints_page = options.html_path == "-";
  if (options.is_json) {
    fmt::print("{}", result_json(result));
  } else if (!prints_page) {
    fmt::print("{}", result_text(result, {options.is_in_gbits, options.has_histogram}));
  }
  std::fflush(stdout);
  if (is_stopped()) {
    base::say("ringbolt perf: interrupted: this is what was measured until then\n");
  }
  const std::vector<std::string> problems = problems_of(result);
  for (const std::string& problem : problems) {
    base::say(fmt::format("ringbolt perf: {}\n", problem));
  }
  const int status = problems.empty() ? kOk : kFoundProblem;
  return options.fail_if.empty() ? status : status_within(status, "perf", result_json(result), options.fail_if);
}

}  // namespace

int perf_run(const PerfOptions& options) {
  ::signal(SIGPIPE, SIG_IGN);
  pair::TwoEnds<Result> ends{"perf", options, static_cast<uint64_t>(options.timeout_s * 1e9)};
  ends.emit = perf::emit_result;
  ends.parse = perf::parse_result;
  ends.act = [&](pair::Peer& peer, Progress& progress, bool is_client) {
    perf::Request request = perf::request_of(options);
    request.library = pair::verbs_path(options.verbs);
    return perf::run_session(request, peer, is_client, progress);
  };
  if (!options.end.empty()) {
    return ends.answer_as_end();
  }
  if (options.html_path == "-" && options.is_json) {
    throw UsageError("--json and --html - both want stdout: give --html a path");
  }
  check_thresholds(options.fail_if);
  // What is wrong with the words comes before what is wrong with the path.
  ends.most_s = most_s(options, perf::request_of(options).parameters);
  PageFile page(options.html_path);
  try {
    const Result result = ends.run();
    page.write(result_page(result));
    return answer_unless_stopped(print(options, result));
  } catch (const ProbeFailure& failure) {
    base::say(fmt::format("ringbolt perf: {}\n", failure.what()));
    return answer_unless_stopped(kFoundProblem);
  }
}

}  // namespace ringbolt::tools
