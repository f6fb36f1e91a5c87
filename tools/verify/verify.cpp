#include <algorithm>
#include <csignal>
#include <cstdio>

#include <fmt/format.h>

#include "base/say.h"
#include "commands.h"
#include "failure.h"
#include "pair/two_ends.h"
#include "verify/request.h"
#include "verify/result.h"
#include "verify/session.h"

namespace ringbolt::tools {
namespace {

using verify::Result;

/// On a terminal progress as usual; else lines, of a soak unless they are unwanted, of other modes if they are wanted.
void choose_progress(const VerifyOptions& options, pair::TwoEnds<Result>& ends) {
  if (options.progress_s.value_or(1) > 0 && ends.style == Progress::Style::kTerminal) {
    return;
  }
  ends.period_s = options.progress_s.value_or(options.mode == "soak" ? 10 : 0);
  ends.style = ends.period_s > 0 ? Progress::Style::kLines : Progress::Style::kNone;
}

/// Of both ends on nodes, in seconds.
double most_s(const VerifyOptions& options) {
  const double usual_s = options.mode == "soak" ? 60 : 2;
  const double counted_s = static_cast<double>(options.iterations.value_or(0)) * 0.1;
  const double length_s = options.hours ? *options.hours * 3600 : options.duration_s.value_or(usual_s) + counted_s;
  return length_s * 1.5 + 60 + 4 * options.stall_s;
}

}  // namespace

int verify_run(const VerifyOptions& given) {
  ::signal(SIGPIPE, SIG_IGN);
  const VerifyOptions options = verify::with_host(given);
  pair::TwoEnds<Result> ends{"verify", options};
  // Where the other end is at work that can't be seen from here it says nothing; connecting takes its time too.
  ends.wait_ns = static_cast<uint64_t>(std::max(options.stall_s, 5.0) * 2e9);
  ends.most_s = most_s(options);
  ends.emit = verify::emit_result;
  ends.parse = verify::parse_result;
  ends.act = [&](pair::Peer& peer, Progress& shown, bool is_client) {
    verify::Request request = verify::request_of(options);
    request.library = pair::verbs_path(options.verbs);
    verify::Progress progress(shown);
    return verify::run_session(request, peer, is_client, progress);
  };
  if (!options.end.empty()) {
    return ends.answer_as_end();
  }
  (void)verify::request_of(options);
  choose_progress(options, ends);
  try {
    const Result result = ends.run();
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
