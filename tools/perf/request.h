#pragma once

#include "commands.h"
#include "pair/request.h"
#include "perf/session.h"

namespace ringbolt::tools::perf {

/// What the command line asks for. Throws UsageError for what makes no sense, alone or together.
Request request_of(const PerfOptions& options);

}  // namespace ringbolt::tools::perf
