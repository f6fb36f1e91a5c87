#include "perf/pair_run.h"

#include <algorithm>
#include <optional>

#include "base/clock.h"
#include "cluster_state.h"
#include "node_environment.h"
#include "pair/node_pair.h"
#include "perf/request.h"
#include "probe/probe_failure.h"
#include "progress_line.h"
#include "stop.h"

namespace ringbolt::tools::perf {
namespace {

/// Each end bounds its own waits; this is for when both stand still.
uint64_t deadline_of(const PerfOptions& options, const Parameters& parameters) {
  const double figures = 2.0 * static_cast<double>(parameters.sizes.size());
  constexpr double kSecondsAnOperation = 1e-3;
  const double one = options.timeout_s * 2 + parameters.duration_s * 2 +
                     static_cast<double>(parameters.iterations) * kSecondsAnOperation;
  return base::now_ns() + static_cast<uint64_t>(std::min(figures * one, 1e8) * 1e9);
}

}  // namespace

std::string emit_outcome(const Result& result) {
  return pair::emit_result_line("perf", emit_result(result));
}

std::string emit_failure(const std::string& problem, bool is_echo) {
  return pair::emit_failure_line("perf", problem, is_echo);
}

Result run_on_nodes(const PerfOptions& options) {
  const Request request = request_of(options);
  const LiveCluster live = open_cluster(options.cluster);
  if (!live.is_remote()) {
    library_folder();  // refuses before anything is started
  }
  Progress progress;
  catch_stop();
  PerfOptions told = options;
  told.tells_progress = progress.is_shown();
  const pair::NodeRun run = pair::run_on_nodes(
      "perf", live, options.nodes, [&](const pair::EndWords& end) { return words_of(told, end); },
      deadline_of(options, request.parameters), watch_of(progress));
  std::optional<Result> result = run.result ? parse_result(*run.result) : std::nullopt;
  if (!result) {
    throw ProbeFailure(run.problem);
  }
  return std::move(*result);
}

}  // namespace ringbolt::tools::perf
