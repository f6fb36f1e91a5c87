#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "commands.h"
#include "program_pair.h"
#include "progress_line.h"

namespace ringbolt::tools::pair {

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
EndOutcome outcome_of(std::string_view command, const ProgramEnd& end);

/// What came of a run on two nodes.
struct NodeRun {
  std::optional<std::string> result;  ///< as the client printed it
  std::string problem;                ///< what to say if there is no result, or it makes no sense: node and reason
};

/// Runs both ends of this command line on the two nodes of its --nodes, over the first cable between them; the first
/// one's is the client, and tells `progress` how far it is. Throws UsageError. Not thread-safe.
NodeRun run_on_nodes(std::string_view command, const PairOptions& options, double most_s, Progress& progress);

}  // namespace ringbolt::tools::pair
