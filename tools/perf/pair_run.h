#pragma once

#include <string>

#include "commands.h"
#include "perf/result.h"

namespace ringbolt::tools::perf {

/// What a process of --nodes prints in one line for the command that started it: the result, or why there is none.
std::string emit_outcome(const Result& result);
std::string emit_failure(const std::string& problem, bool is_echo);

/// Runs both ends on the two nodes that the options name, over the first cable between them. Throws UsageError, and
/// ProbeFailure naming the node that failed first.
Result run_on_nodes(const PerfOptions& options);

}  // namespace ringbolt::tools::perf
