#pragma once

#include "commands.h"

namespace CLI {
class App;
}

// The options that `perf` and `verify` share, in groups that follow one another in their help.
namespace ringbolt::tools::pair {

/// What an end is told by who starts it, hidden.
void add_end(CLI::App* command, EndOptions& options);

/// Where the other end is; also what a process of --nodes is told.
void add_meeting(CLI::App* command, PairOptions& options);

/// The verbs library.
void add_library(CLI::App* command, PairOptions& options);

/// Device, port and GID.
void add_device(CLI::App* command, PairOptions& options);

/// Packets, and where the ends meet.
void add_path(CLI::App* command, PairOptions& options);

/// What RC does when no answer comes.
void add_retries(CLI::App* command, PairOptions& options);

/// What is wrong with figures.
void add_line_rate(CLI::App* command, PairOptions& options);

}  // namespace ringbolt::tools::pair
