#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/unique_fd.h"
#include "commands.h"
#include "failure.h"
#include "pair/device.h"
#include "pair/peer.h"
#include "pair/transport.h"
#include "pair/values.h"
#include "program_pair.h"
#include "progress_line.h"
#include "stop.h"

namespace ringbolt::tools::pair {

/// Why no host of that name can be found, "Name or service not known"; empty: it can. Asks the name service.
/// Blocks for 30 s at most.
std::string objection_to_host(const std::string& host);

/// "10.0.0.2" of "10.0.0.2:4000", "fe80::1%en2" of "[fe80::1%en2]:4000": an end of a TCP connection without its port.
/// Any text is safe.
std::string host_of_peer(std::string_view peer);

/// A connected TCP socket, and the other end's address for messages.
struct Meeting {
  base::UniqueFd fd;
  std::string peer;
};

/// Goes to the host of the options, and tries again for two seconds while nothing listens there yet; without a host
/// waits on all addresses of this machine for one client, and says so. Throws ProbeFailure naming host, port and the
/// subcommand `command` that should wait there, or what else kept the ends from meeting in time.
/// Blocks for the options' `timeout_s` at most.
Meeting meet(const std::string& command, const PairOptions& options);

/// The other end of a meeting, which outlives it. `timeout_ns`: the most for one wait.
Peer peer_at(const Meeting& meeting, uint64_t timeout_ns);

/// Of a process of --nodes: the other end, at the channel that the options name or at input and output; and where such
/// a process says what came of it, for who started it to read.
Peer peer_of_end(const EndOptions& options, uint64_t timeout_ns);
std::FILE* output_of_end(const EndOptions& options);

/// What a process of --nodes prints in one line for the command that started it: its result, which has no newline, or
/// why there is none. `command`: "perf".
std::string emit_result_line(std::string_view command, std::string_view result);
std::string emit_failure_line(std::string_view command, std::string_view problem, bool is_echo);

/// How one of the processes ended.
struct EndOutcome {
  std::optional<std::string> result = {};
  std::string problem = {};  ///< if there is no result, or it makes no sense
  bool is_echo = false;      ///< the problem is only that the other end has one
};
/// The problem of one that said nothing until it was killed.
inline constexpr std::string_view kHung = "it hung and was killed";
EndOutcome outcome_of(std::string_view command, const ProgramEnd& end);

/// What came of a run on two nodes.
struct NodeRun {
  std::optional<std::string> result;  ///< as the client printed it
  std::string problem;                ///< what to say if there is no result, or it makes no sense: node and reason
};

/// Runs both ends of this command line on the two nodes of its --nodes, over the first cable between them; the first
/// one's is the client, and tells `progress` how far it is. Throws UsageError. Not thread-safe.
/// Blocks for `most_s` seconds at most, and kills what has not ended then.
NodeRun run_on_nodes(std::string_view command, const PairOptions& options, double most_s, Progress& progress);

/// Does this end's part, and tells the peer if it fails.
template <class Act>
auto telling_failure(Peer& peer, const Act& act) {
  try {
    return act();
  } catch (const UsageError&) {
    throw;  // the peer finds out by itself
  } catch (const std::exception& error) {
    peer.tell_failure(error.what());
    throw;
  }
}

/// In a process that is one of two ends, on a node: the other is at its channel, and who started it reads what came of
/// it, the value that `act` returns. `wait_ns`: the most for one wait. Returns what the process should.
template <class Act>
int answer_as_end(const std::string& command, const EndOptions& options, uint64_t wait_ns, const Act& act) {
  std::FILE* const out = output_of_end(options);
  catch_stop();
  try {
    Peer peer = peer_of_end(options, wait_ns);
    Progress progress(Progress::of_child(options.tells_progress));
    const auto result = telling_failure(peer, [&] { return act(peer, progress, options.end == "client"); });
    fmt::print(out, "{}", emit_result_line(command, to_line(result)));
    return kOk;
  } catch (const ProbeFailure& failure) {
    fmt::print(out, "{}", emit_failure_line(command, failure.what(), failure.is_echo()));
  } catch (const std::exception& error) {
    fmt::print(out, "{}", emit_failure_line(command, error.what(), false));
  }
  return kFoundProblem;
}

/// A command that has two ends, which both get the same result: over TCP, where somebody starts each of them, or as two
/// processes on nodes of a cluster. The options outlive it. Not thread-safe.
/// `act` runs in the calling thread, or, with --nodes, in processes of their own.
template <class Result>
struct TwoEnds {
  std::string command;  ///< "perf"
  const PairOptions& options;
  uint64_t wait_ns = 0;  ///< the most for one wait of an end
  double most_s = 0;     ///< of a run on nodes: each end bounds its own waits; this is for when both stand still
  std::function<Result(Peer& peer, Progress& progress, bool is_client)> act = nullptr;  ///< the part of an end
  Progress::Style style = Progress::usual();
  double period_s = 0.2;  ///< between two lines of progress

  int answer_as_end() const { return pair::answer_as_end(command, options, wait_ns, act); }

  /// Throws UsageError, and ProbeFailure, which names the node that failed first.
  /// Catches SIGINT and SIGTERM from the meeting on (stop.h): before it they end the process.
  Result run() const {
    if (options.nodes.empty()) {
      (void)verbs_path(options.verbs);  // refuses before anybody waits
      const Meeting meeting = meet(command, options);
      Peer peer = peer_at(meeting, wait_ns);
      Progress progress(style, "ringbolt " + command, period_s);
      catch_stop();
      return telling_failure(peer, [&] { return act(peer, progress, !options.host.empty()); });
    }
    Progress progress(style, "ringbolt " + command, period_s);
    catch_stop();
    const NodeRun run = run_on_nodes(command, options, most_s, progress);
    std::optional<Result> result = run.result ? value_in<Result>(*run.result) : std::nullopt;
    if (!result) {
      throw ProbeFailure(run.problem);
    }
    return std::move(*result);
  }
};

inline constexpr std::array kTransports{Transport::kRc, Transport::kUc, Transport::kUd};

/// Which of `all` has the text_of() `text`; nullopt: none.
template <class Value, size_t kCount>
std::optional<Value> named(std::string_view text, const std::array<Value, kCount>& all) {
  for (const Value one : all) {
    if (text == text_of(one)) {
      return one;
    }
  }
  return std::nullopt;
}

/// The same for the value of an option; throws UsageError that tells all of them.
template <class Value, size_t kCount>
Value chosen(const std::string& text, std::string_view flag, const std::array<Value, kCount>& all) {
  if (const std::optional<Value> one = named(text, all)) {
    return *one;
  }
  std::string known;
  for (const Value one : all) {
    known += fmt::format("{}{}", known.empty() ? "" : ", ", text_of(one));
  }
  throw UsageError(fmt::format("{} \"{}\" is none of {}", flag, text, known));
}

/// Something that can't be had, in words for the user.
struct Objection {
  bool holds;
  std::string text;
};
/// The text of the first that holds; empty: none does.
std::string first_of(std::initializer_list<Objection> objections);
/// Throws UsageError with that text, if there is one.
void refuse(const std::string& objection);

/// Throws UsageError where HOST, --nodes, --cluster and -d contradict each other.
void refuse_two_meetings(const PairOptions& options);

/// Port, path and retries that the options ask for.
PortChoice port_choice_of(const PairOptions& options);

}  // namespace ringbolt::tools::pair
