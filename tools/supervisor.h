#pragma once

#include <cstdint>
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

struct SuperviseOptions {
  std::string command_name;  ///< "ringbolt run", before messages
  std::optional<double> timeout_s;
  bool keeps_going = false;
  bool is_remote = false;  ///< our input tells of signals, a number a line, and its end means hang up; say nothing
};

/// Starts all members, passes their output on line by line, and waits for all of them. Ends the whole groups of all:
/// at SIGINT, SIGTERM or SIGHUP; at the time limit; when our own reader is gone; and, unless told to keep going, some
/// seconds after a member failed. First politely, then with SIGKILL. If a member can't be started, none is left.
/// Returns 0, or the exit code of the first that failed, or 128 + signal, or kTimedOut. Throws UsageError.
/// Blocks SIGINT, SIGTERM, SIGHUP and SIGCHLD for good; one call per process.
int supervise(std::vector<Member> members, const SuperviseOptions& options);

}  // namespace ringbolt::tools
