#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <memory>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/say.h"
#include "commands.h"
#include "failure.h"
#include "page_file.h"
#include "pair/meeting.h"
#include "pair/peer.h"
#include "perf/pair_run.h"
#include "perf/request.h"
#include "perf/result.h"
#include "perf/session.h"
#include "probe/probe_failure.h"
#include "probe/verbs_library.h"
#include "progress_line.h"
#include "stop.h"
#include "thresholds.h"

namespace ringbolt::tools {
namespace {

using pair::Peer;
using perf::Request;
using perf::Result;

uint64_t timeout_ns(const PerfOptions& options) { return static_cast<uint64_t>(options.timeout_s * 1e9); }

Result run_end(const Request& request, Peer& peer, bool is_client, Progress& progress) {
  try {
    return run_session(request, peer, is_client, progress);
  } catch (const UsageError&) {
    throw;  // the peer finds out by itself
  } catch (const std::exception& error) {
    peer.tell_failure(error.what());
    throw;
  }
}

/// A process of --nodes: the other end is at the channel, and who started us reads our outcome.
int run_as_end(const PerfOptions& options) {
  std::FILE* const out = pair::output_of_end(options);
  try {
    Request request = perf::request_of(options);
    request.library = verbs_path(options.verbs);
    Peer peer = pair::peer_of_end(options, timeout_ns(options));
    Progress progress(Progress::of_child(options.tells_progress));
    const Result result = run_end(request, peer, options.end == "client", progress);
    fmt::print(out, "{}", perf::emit_outcome(result));
    return kOk;
  } catch (const ProbeFailure& failure) {
    fmt::print(out, "{}", perf::emit_failure(failure.what(), failure.is_echo()));
  } catch (const std::exception& error) {
    fmt::print(out, "{}", perf::emit_failure(error.what(), false));
  }
  return kFoundProblem;
}

Result run_over_tcp(const PerfOptions& options) {
  Request request = perf::request_of(options);
  request.library = verbs_path(options.verbs);
  const bool is_client = !options.host.empty();
  const pair::Meeting meeting = pair::meet("perf", options);
  Peer peer = pair::peer_at(meeting, timeout_ns(options));
  Progress progress;
  catch_stop();
  return run_end(request, peer, is_client, progress);
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
  if (!options.end.empty()) {
    catch_stop();
    return run_as_end(options);
  }
  if (options.html_path == "-" && options.is_json) {
    throw UsageError("--json and --html - both want stdout: give --html a path");
  }
  check_thresholds(options.fail_if);
  (void)perf::request_of(options);  // what is wrong with the words comes before what is wrong with the path
  PageFile page(options.html_path);
  try {
    const Result result = options.nodes.empty() ? run_over_tcp(options) : perf::run_on_nodes(options);
    page.write(result_page(result));
    return answer_unless_stopped(print(options, result));
  } catch (const ProbeFailure& failure) {
    base::say(fmt::format("ringbolt perf: {}\n", failure.what()));
    return answer_unless_stopped(kFoundProblem);
  }
}

}  // namespace ringbolt::tools
