#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "child_process.h"

namespace ringbolt::tools {

/// One program of a run.
struct Member {
  std::string label;   ///< "n0", for messages
  std::string prefix;  ///< before each line of its output; may be empty
  Launch launch;
};

/// Whoever wants to know, or has something to say, of a run. Called on the thread of supervise().
struct RunWatch {
  /// Member `index` has ended and failed, and not because it was told to.
  std::function<void(size_t index, pid_t pid, const std::string& how)> on_failure = nullptr;
  /// Shortly before the time limit, and at it: what to say then of the members that have not ended.
  std::function<void()> before_limit = nullptr;
  std::function<std::vector<std::string>()> at_limit = nullptr;
};

struct SuperviseOptions {
  std::string command_name;  ///< "ringbolt run", before messages
  std::optional<double> timeout_s;
  bool keeps_going = false;
  bool is_remote = false;  ///< our input tells of signals, a number a line, and its end means hang up; say nothing
  RunWatch watch = {};
  bool shows_progress = false;  ///< lines of Progress on members' standard error are shown on ours, which is a terminal
};

/// Starts all members, passes their output on line by line, and waits for all of them. Ends the whole groups of all:
/// at SIGINT, SIGTERM or SIGHUP; at the time limit; when our own reader is gone; and, unless told to keep going, some
/// seconds after a member failed. First politely, then with SIGKILL. If a member can't be started, none is left.
/// Returns 0, or the exit code of the first that failed, or 128 + signal, or kTimedOut. Throws UsageError.
/// Blocks SIGINT, SIGTERM, SIGHUP and SIGCHLD for good; one call per process.
/// Without a time limit it waits for its members however long they run, and for its own reader however slowly that reads.
int supervise(std::vector<Member> members, const SuperviseOptions& options);

}  // namespace ringbolt::tools
