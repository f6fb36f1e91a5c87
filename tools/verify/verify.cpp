#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>

#include <fmt/format.h>

#include "base/nearest.h"
#include "base/say.h"
#include "commands.h"
#include "failure.h"
#include "pair/two_ends.h"
#include "verify/result.h"
#include "verify/session.h"

namespace ringbolt::tools::verify {
namespace {

/// What the command line asks for; its library is the caller's. Throws UsageError for what makes no sense, alone or
/// together.
Request request_of(const VerifyOptions& options);

/// The options with a first word that is no mode taken for the host.
VerifyOptions with_host(VerifyOptions options);

constexpr std::array kModes{Mode::kStream, Mode::kWrite, Mode::kRead, Mode::kAtomic, Mode::kChurn};

bool is_mode(const std::string& word) { return word == "soak" || pair::named(word, kModes); }

void refuse_idle_flags(const VerifyOptions& options) {
  pair::refuse_two_meetings(options);
  if (options.size_bytes && (options.least_bytes || options.most_bytes)) {
    throw UsageError("-s is --min and --max in one: give it, or them");
  }
  if (options.duration_s && options.hours) {
    throw UsageError("-D and --hours both say how long: give one of them");
  }
  if (options.hours && options.mode != "soak") {
    throw UsageError("--hours is of soak: give -D, in seconds");
  }
}

VerifyOptions with_host(VerifyOptions options) {
  if (!is_mode(options.mode)) {
    if (!options.host.empty() || !options.nodes.empty()) {
      throw UsageError(fmt::format("\"{}\" is none of stream, write, read, atomic, churn, soak", options.mode));
    }
    const std::string objection = pair::objection_to_host(options.mode);
    if (!objection.empty()) {
      const std::array<std::string, 6> modes{"stream", "write", "read", "atomic", "churn", "soak"};
      const std::string near = base::nearest(options.mode, modes);
      throw UsageError(fmt::format("\"{}\" is neither a mode ({}) nor a host that can be found: {}{}", options.mode,
                                   fmt::join(modes, ", "), objection,
                                   near.empty() ? "" : fmt::format("; did you mean {}?", near)));
    }
    options.host = options.mode;
    options.mode = "stream";
  }
  return options;
}

Request request_of(const VerifyOptions& options) {
  refuse_idle_flags(options);
  Request request;
  Wish& wish = request.wish;
  wish.mode = pair::named(options.mode, kModes);
  if (!options.connection.empty()) {
    wish.transport = pair::chosen(options.connection, "-c", pair::kTransports);
  }
  if (!options.order.empty()) {
    wish.order = pair::chosen(options.order, "--order", std::array{Order::kStrict, Order::kAny});
  }
  wish.least_bytes = options.size_bytes ? options.size_bytes : options.least_bytes;
  wish.most_bytes = options.size_bytes ? options.size_bytes : options.most_bytes;
  wish.count = options.iterations;
  wish.duration_s = options.hours ? std::optional(*options.hours * 3600) : options.duration_s;
  wish.seed = options.seed;
  wish.queue_pairs = options.queue_pairs;
  wish.send_depth = options.tx_depth;
  wish.receive_depth = options.rx_depth;
  wish.is_bidirectional = options.is_bidirectional;
  wish.loss_percent = options.loss_percent;
  const std::string objection = objection_to(wish);
  if (!objection.empty()) {
    throw UsageError(objection);
  }
  request.choice = pair::port_choice_of(options);
  request.device = options.device;
  request.line_rate_gbps = options.line_rate_gbps.value_or(-1);
  request.stall_s = options.stall_s;
  return request;
}

}  // namespace
}  // namespace ringbolt::tools::verify

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
