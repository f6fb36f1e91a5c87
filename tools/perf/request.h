#pragma once

#include <string>
#include <vector>

#include "commands.h"
#include "pair/request.h"
#include "perf/session.h"

namespace ringbolt::tools::perf {

/// What the command line asks for. Throws UsageError for what makes no sense, alone or together.
Request request_of(const PerfOptions& options);

/// The words of a command line that asks one end on a node for the same: "perf", "send", "--end", "client"...
std::vector<std::string> words_of(const PerfOptions& options, const pair::EndWords& end);

}  // namespace ringbolt::tools::perf
