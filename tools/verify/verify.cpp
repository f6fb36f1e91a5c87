#include <algorithm>
#include <csignal>
#include <cstdio>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/say.h"
#include "commands.h"
#include "failure.h"
#include "node_environment.h"
#include "pair/meeting.h"
#include "pair/node_pair.h"
#include "pair/peer.h"
#include "probe/probe_failure.h"
#include "probe/verbs_library.h"
#include "progress_line.h"
#include "stop.h"
#include "verify/request.h"
#include "verify/result.h"
#include "verify/session.h"

namespace ringbolt::tools {
namespace {

using verify::Request;
using verify::Result;

uint64_t peer_timeout_ns(const VerifyOptions& options) {
  // Where the other end is at work that can't be seen from here it says nothing; connecting takes its time too.
  return static_cast<uint64_t>(std::max(options.stall_s, 5.0) * 2e9);
}

/// On a terminal as usual; else lines, of a soak unless they are unwanted, of other modes if they are wanted.
struct Display {
  Progress::Style style = Progress::Style::kNone;
  double period_s = 0.2;
};

Display display_of(const VerifyOptions& options) {
  if (options.progress_s.value_or(1) > 0 && Progress::usual() == Progress::Style::kTerminal) {
    return {Progress::Style::kTerminal};
  }
  const double period_s = options.progress_s.value_or(options.mode == "soak" ? 10 : 0);
  return period_s > 0 ? Display{Progress::Style::kLines, period_s} : Display{};
}

/// A process of --nodes: the other end is at the channel, and who started us reads our outcome.
int run_as_end(const VerifyOptions& options) {
  std::FILE* const out = pair::output_of_end(options);
  const bool is_client = options.end == "client";
  try {
    Request request = verify::request_of(options);
    request.library = verbs_path(options.verbs);
    Progress shown(Progress::of_child(options.tells_progress));
    verify::Progress progress(shown);
    pair::Peer peer = pair::peer_of_end(options, peer_timeout_ns(options));
    const Result result = verify::run_session(request, peer, is_client, progress);
    fmt::print(out, "{}", pair::emit_result_line("verify", verify::emit_result(result)));
    return verify::exit_code_of(result);
  } catch (const std::exception& error) {
    fmt::print(out, "{}", pair::emit_failure_line("verify", error.what(), false));
  }
  return kFoundProblem;
}

Result run_over_tcp(const VerifyOptions& options) {
  Request request = verify::request_of(options);
  request.library = verbs_path(options.verbs);
  const bool is_client = !options.host.empty();
  const pair::Meeting meeting = pair::meet("verify", options);
  pair::Peer peer = pair::peer_at(meeting, peer_timeout_ns(options));
  const Display display = display_of(options);
  Progress shown(display.style, "ringbolt verify", display.period_s);
  verify::Progress progress(shown);
  catch_stop();
  return verify::run_session(request, peer, is_client, progress);
}

/// Each end bounds its own waits; this is for when both stand still.
uint64_t deadline_of(const VerifyOptions& options) {
  const double usual_s = options.mode == "soak" ? 60 : 2;
  const double counted_s = static_cast<double>(options.iterations.value_or(0)) * 0.1;
  const double length_s = options.hours ? *options.hours * 3600 : options.duration_s.value_or(usual_s) + counted_s;
  return base::now_ns() + static_cast<uint64_t>(std::min(length_s * 1.5 + 60 + 4 * options.stall_s, 1e9) * 1e9);
}

Result run_on_nodes(const VerifyOptions& options) {
  (void)verify::request_of(options);
  const LiveCluster live = open_cluster(options.cluster);
  if (!live.is_remote()) {
    (void)verbs_path(options.verbs);  // refuses before anything is started
  }
  const Display display = display_of(options);
  Progress shown(display.style, "ringbolt verify", display.period_s);
  catch_stop();
  const PairWatch watch = watch_of(shown);
  VerifyOptions told = options;
  told.tells_progress = shown.is_shown();
  const pair::NodeRun run = pair::run_on_nodes(
      "verify", live, options.nodes, [&](const pair::EndWords& end) { return verify::words_of(told, end); },
      deadline_of(options), watch);
  std::optional<Result> result = run.result ? verify::parse_result(*run.result) : std::nullopt;
  if (!result) {
    throw ProbeFailure(run.problem);
  }
  return std::move(*result);
}

}  // namespace

int verify_run(const VerifyOptions& given) {
  ::signal(SIGPIPE, SIG_IGN);
  const VerifyOptions options = verify::with_host(given);
  if (!options.end.empty()) {
    catch_stop();
    return run_as_end(options);
  }
  try {
    const Result result = options.nodes.empty() ? run_over_tcp(options) : run_on_nodes(options);
    const bool is_refused = !result.refusal.empty();
    if (options.is_json || !is_refused) {
      fmt::print("{}", options.is_json ? verify::result_json(result) + "\n" : verify::result_text(result));
      std::fflush(stdout);
    }
    if (is_refused) {
      base::say(fmt::format("ringbolt verify: refused: {}\n", result.refusal));
    }
    return answer_unless_stopped(verify::exit_code_of(result));
  } catch (const ProbeFailure& failure) {
    base::say(fmt::format("ringbolt verify: {}\n", failure.what()));
    return answer_unless_stopped(kFoundProblem);
  }
}

}  // namespace ringbolt::tools
