#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "failure.h"
#include "pair/device.h"
#include "pair/meeting.h"
#include "pair/node_pair.h"
#include "progress_line.h"
#include "stop.h"

namespace ringbolt::tools::pair {

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
/// it, the line that `act` returns. `wait_ns`: the most for one wait. Returns what the process should.
template <class Act>
int answer_as_end(const std::string& command, const EndOptions& options, uint64_t wait_ns, const Act& act) {
  std::FILE* const out = output_of_end(options);
  catch_stop();
  try {
    Peer peer = peer_of_end(options, wait_ns);
    Progress progress(Progress::of_child(options.tells_progress));
    const std::string line = telling_failure(peer, [&] { return act(peer, progress, options.end == "client"); });
    fmt::print(out, "{}", emit_result_line(command, line));
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
template <class Result>
struct TwoEnds {
  std::string command;  ///< "perf"
  const PairOptions& options;
  uint64_t wait_ns = 0;  ///< the most for one wait of an end
  double most_s = 0;     ///< of a run on nodes: each end bounds its own waits; this is for when both stand still
  std::function<Result(Peer& peer, Progress& progress, bool is_client)> act = nullptr;  ///< the part of an end
  std::string (*emit)(const Result&) = nullptr;
  std::optional<Result> (*parse)(std::string_view) = nullptr;
  Progress::Style style = Progress::usual();
  double period_s = 0.2;  ///< between two lines of progress

  int answer_as_end() const {
    return pair::answer_as_end(command, options, wait_ns, [this](Peer& peer, Progress& progress, bool is_client) {
      return emit(act(peer, progress, is_client));
    });
  }

  /// Throws UsageError, and ProbeFailure, which names the node that failed first.
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
    std::optional<Result> result = run.result ? parse(*run.result) : std::nullopt;
    if (!result) {
      throw ProbeFailure(run.problem);
    }
    return std::move(*result);
  }
};

}  // namespace ringbolt::tools::pair
