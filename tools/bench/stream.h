#pragma once

#include "commands.h"

namespace ringbolt::tools::bench {

/// `bench stream`: streams beside UNIX sockets and TCP between two processes of this machine. Exit status. Throws
/// UsageError and FoundProblem.
int bench_streams(const BenchOptions& options);

}  // namespace ringbolt::tools::bench
