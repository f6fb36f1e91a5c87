#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/nearest.h"
#include "base/printable.h"
#include "base/say.h"
#include "commands.h"
#include "failure.h"
#include "pair/device.h"
#include "pair/end_facts.h"
#include "pair/peer.h"
#include "pair/transport.h"
#include "pair/two_ends.h"
#include "pair/values.h"
#include "pattern.h"
#include "stop.h"
#include "verify/plan.h"
#include "verify/result.h"
#include "verify/watch.h"

namespace ringbolt::tools::verify {
namespace {

/// What one end was asked for.
struct Request {
  Wish wish;
  pair::PortChoice choice;
  std::string library;         ///< path of the verbs library
  std::string device;          ///< empty: the first
  double line_rate_gbps = -1;  ///< negative: as the ends' ports say; 0: none
  double stall_s = 5;
};

bool is_mode(const std::string& word) { return word == "soak" || pair::named(word, kModes); }

void refuse_idle_flags(const VerifyOptions& options) {
  pair::refuse_two_meetings(options);
  pair::refuse(pair::first_of({
      {options.size_bytes && (options.least_bytes || options.most_bytes),
       "-s is --min and --max in one: give it, or them"},
      {options.duration_s && options.hours, "-D and --hours both say how long: give one of them"},
      {options.hours && options.mode != "soak", "--hours is of soak: give -D, in seconds"},
  }));
}

/// The options with a first word that is no mode taken for the host.
VerifyOptions with_host(VerifyOptions options) {
  if (!is_mode(options.mode)) {
    const std::array<std::string, 6> modes{"stream", "write", "read", "atomic", "churn", "soak"};
    if (!options.host.empty() || !options.nodes.empty()) {
      throw UsageError(fmt::format("\"{}\" is none of {}", options.mode, fmt::join(modes, ", ")));
    }
    const std::string objection = pair::objection_to_host(options.mode);
    if (!objection.empty()) {
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

/// What the command line asks for; its library is the caller's. Throws UsageError for what makes no sense, alone or
/// together.
Request request_of(const VerifyOptions& options) {
  refuse_idle_flags(options);
  Request request;
  Wish& wish = request.wish;
  wish.mode = pair::named(options.mode, kModes);
  if (!options.connection.empty()) {
    wish.transport = pair::chosen(options.connection, "-c", pair::kTransports);
  }
  if (!options.order.empty()) {
    wish.order = pair::chosen(options.order, "--order", kOrders);
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
  pair::refuse(objection_to(wish));
  request.choice = pair::port_choice_of(options);
  request.device = options.device;
  request.line_rate_gbps = options.line_rate_gbps.value_or(-1);
  request.stall_s = options.stall_s;
  return request;
}

using pair::Peer;

constexpr double kUsualSeconds = 2;
constexpr double kUsualSoakSeconds = 60;

/// One end's whole part, in phases in the order in which they happen. The client decides what is done; both get the
/// same result, or, if it breaks off, what each knows. A refusal is in the result. run() throws UsageError if the ends
/// were asked for different things.
/// Owns device and library for the whole run; the peer and the request are the caller's. run() is called once.
class Session {
 public:
  Session(const Request& request, Peer& peer, bool is_client, Progress& progress)
      : request_(request),
        peer_(peer),
        is_client_(is_client),
        watch_(peer, progress, static_cast<uint64_t>(request.stall_s * 1e9)) {
    result_.mode = mode_text(request.wish);
    result_.loss_percent = request.wish.loss_percent;
    // 32 bits, to be typed in again; the client's counts.
    result_.seed = request.wish.seed.value_or(base::now_ns() >> 8U) & 0xffff'ffffU;
  }

  Result run() {
    try {
      if (!set_up()) {
        return std::move(result_);
      }
      is_set_up_ = true;
      is_client_ ? lead() : follow();
      share();
    } catch (const UsageError&) {
      throw;  // the peer finds out by itself
    } catch (const Stalled& stalled) {
      break_off(Kind::kStall, stalled.what());
    } catch (const Found& found) {
      break_off(std::nullopt, found.what());
    } catch (const ProbeFailure& failure) {
      break_off(failure.is_echo() ? Kind::kPeer : Kind::kStatus, failure.what());
    } catch (const base::Error& error) {
      break_off(Kind::kStatus, error.what());
    }
    if (!has_shared_) {
      take_times();
    }
    return std::move(result_);
  }

 private:
  /// False if this is refused.
  bool set_up() {
    pair::agree("verify", entries_of(request_.wish), peer_);
    verbs_ = pair::open_verbs(request_.library);
    device_.emplace(*verbs_, request_.device, request_.choice);
    both_ = common(abilities_of(*device_),
                   pair::exchange(peer_, "abilities", abilities_of(*device_), "its device's abilities"));
    const pair::EndFacts mine{pair::end_name(is_client_), device_->name(), request_.library, device_->port_rate_gbps()};
    const pair::EndFacts theirs = pair::exchange(peer_, "facts", mine, "its device's name");
    result_.ends = is_client_ ? std::vector{mine, theirs} : std::vector{theirs, mine};
    result_.line_rate_gbps = pair::line_rate_gbps(request_.line_rate_gbps, result_.ends);
    if (!is_client_ || !request_.wish.mode) {
      return true;
    }
    first_ = plan_step(request_.wish, *request_.wish.mode, request_.wish.transport, both_);
    if (!first_.refusal.empty()) {
      result_.refusal = first_.refusal;
      peer_.tell("step", "refused " + first_.refusal);
    }
    return first_.refusal.empty();
  }

  void lead() {
    if (request_.wish.mode) {
      Step step = first_.step;
      step.count = request_.wish.count.value_or(0);
      const bool goes_both_ways = request_.wish.is_bidirectional && !step.is_bidirectional && step.mode != Mode::kChurn;
      const double seconds = request_.wish.duration_s.value_or(step.count != 0 ? 0 : kUsualSeconds);
      step.duration_ms = static_cast<uint64_t>(seconds * 1e3 / (goes_both_ways ? 2 : 1));
      step_together(step);
      if (goes_both_ways && !is_stopped() && result_.refusal.empty()) {
        step.is_reversed = true;
        step_together(step);
      }
    } else {
      soak();
    }
    peer_.tell("step", "end");
  }

  void soak() {
    const uint64_t begin = base::now_ns();
    const auto length_ns = static_cast<uint64_t>(request_.wish.duration_s.value_or(kUsualSoakSeconds) * 1e9);
    for (uint32_t turn = 0; !is_stopped() && base::now_ns() - begin < length_ns; ++turn) {
      std::vector<std::string> left_out;
      std::vector<Step> steps = plan_turn(request_.wish, both_, turn, left_out);
      if (steps.empty()) {
        result_.refusal = left_out.empty() ? "there is nothing that both devices can do" : left_out.front();
        return;
      }
      for (const std::string& one : left_out) {
        note(one);
      }
      // Everything twice at least, if there is time; long runs stay at each for a while.
      const double share_ms = static_cast<double>(length_ns) / 1e6 / (2.0 * static_cast<double>(steps.size()));
      const auto slice_ms = static_cast<uint64_t>(std::clamp(share_ms, 100.0, 10'000.0));
      for (Step& step : steps) {
        const uint64_t spent = base::now_ns() - begin;
        if (is_stopped() || spent >= length_ns) {
          break;
        }
        step.duration_ms = std::clamp<uint64_t>((length_ns - spent) / 1'000'000, 1, slice_ms);
        step_together(step);
      }
    }
  }

  void step_together(Step step) {
    step.seed = mixed(result_.seed + step_count_++);
    step.epoch = epoch_;
    pair::tell_value(peer_, "step", step);
    take_step(step);
  }

  void follow() {
    while (true) {
      const std::string text = peer_.await("step", "what to do next");
      if (text == "end") {
        return;
      }
      constexpr std::string_view kRefused = "refused ";
      if (text.substr(0, kRefused.size()) == kRefused) {
        result_.refusal = text.substr(kRefused.size());
        throw Found(result_.refusal);
      }
      const std::optional<Step> step = pair::value_in<Step>(text);
      if (!step) {
        peer_.fail("the step that the other end tells makes no sense");
      }
      take_step(*step);
    }
  }

  void take_step(const Step& step) {
    const Context context{*device_, step,          request_.choice,     peer_,
                          watch_,   result_.tally, result_.not_checked, is_client_};
    const auto trial = std::ranges::find(kTrials, step.mode, &Trial::mode);
    const Outcome mine = trial->run(context);
    watch_.set_errors(result_.tally.total());
    const Outcome theirs = pair::exchange(peer_, "outcome", mine, "its outcome of the step");
    for (const std::string& refusal : {mine.refusal, theirs.refusal}) {
      if (!refusal.empty()) {
        result_.refusal = request_.wish.mode ? refusal : "";
        note(refusal);
        return;
      }
    }
    is_client_ ? result_.add(step, mine, theirs) : result_.add(step, theirs, mine);
    // Each round of churn took one of its own.
    epoch_ += 1 + static_cast<uint32_t>(std::max(mine.rounds, theirs.rounds));
  }

  void note(const std::string& text) { note_once(result_.not_checked, text); }

  /// The server tells what it has found, and gets the whole.
  void share() {
    std::ranges::sort(result_.not_checked);
    if (!is_client_) {
      pair::tell_value(peer_, "findings", result_.tally);
      result_ = pair::await_value<Result>(peer_, "result", "the result");
    } else {
      result_.tally.add(pair::await_value<Tally>(peer_, "findings", "its findings"));
      take_times();
      result_.interruption = is_stopped() ? "it was interrupted; what was done until then is in the table" : "";
      pair::tell_value(peer_, "result", result_);
    }
    has_shared_ = true;
  }

  void take_times() {
    result_.elapsed_ns = base::now_ns() - begin_ns_;
    result_.slowest_gap_ns = watch_.slowest_gap_ns();
  }

  /// It can't go on: keeps what is known, and tells the other end.
  /// Never throws for what the other end does. `kind` unset: the tally has it already.
  void break_off(std::optional<Kind> kind, const std::string& problem) {
    const std::string where = watch_.where();
    const bool has_where = where.empty() || problem.find(where) != std::string::npos;
    const std::string text = has_where ? problem : fmt::format("{}; {}", problem, where);
    try {
      pair::tell_value(peer_, "findings", result_.tally);
      peer_.tell_failure(problem);
    } catch (const std::exception&) {
      // It is gone.
    }
    try {
      if (const auto findings = peer_.look("findings", "its findings")) {
        if (const std::optional<Tally> theirs = pair::value_in<Tally>(*findings)) {
          result_.tally.add(*theirs);
        }
      }
    } catch (const std::exception&) {
      // Nothing of it has come.
    }
    if (!result_.refusal.empty()) {
      return;
    }
    // Before queue pairs were connected once a device refuses, afterwards it fails.
    if (!is_set_up_ || (result_.rows.empty() && kind == Kind::kStatus && !watch_.has_moved())) {
      result_.refusal = text;
      return;
    }
    if (kind) {
      result_.tally.add(*kind,
                        kind == Kind::kStatus ? fmt::format("{}; the other end is {}", text, peer_.name()) : text);
    }
    result_.interruption = "it can't go on after that";
    if (watch_.messages() != 0) {
      result_.interruption +=
          fmt::format("; this end had verified {} messages and {} bytes", watch_.messages(), watch_.bytes());
    }
  }

  const Request& request_;
  Peer& peer_;
  bool is_client_;
  Watch watch_;
  Result result_;
  std::optional<verbs::Library> verbs_;
  std::optional<pair::Device> device_;
  Abilities both_;
  Planned first_;
  uint64_t begin_ns_ = base::now_ns();
  uint64_t step_count_ = 0;
  uint32_t epoch_ = 1;
  bool is_set_up_ = false;
  bool has_shared_ = false;
};

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
  // Twice as long as the watch waits, so that the end which knows what has stalled says so first.
  ends.wait_ns = static_cast<uint64_t>(std::max(options.stall_s, 5.0) * 2e9);
  ends.most_s = most_s(options);
  ends.act = [&](pair::Peer& peer, Progress& progress, bool is_client) {
    verify::Request request = verify::request_of(options);
    request.library = pair::verbs_path(options.verbs);
    return verify::Session(request, peer, is_client, progress).run();
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
      // Names and findings in it are the other end's word.
      fmt::print("{}", options.is_json ? verify::result_json(result) + "\n"
                                       : base::printable(verify::result_text(result), '?', true));
      std::fflush(stdout);
    }
    if (is_refused) {
      base::say(fmt::format("ringbolt verify: refused: {}\n", base::printable(result.refusal)));
    }
    return answer_unless_stopped(verify::exit_code_of(result));
  } catch (const ProbeFailure& failure) {
    base::say(fmt::format("ringbolt verify: {}\n", failure.what()));
    return answer_unless_stopped(kFoundProblem);
  }
}

}  // namespace ringbolt::tools
