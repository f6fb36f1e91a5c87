#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bootstrap/environment.h"

namespace ringbolt::tools::ranks {

/// Whether this process is one rank of a group that somebody else has started: a launcher, or `ringbolt run`. It is if
/// the environment says which rank (docs/environment.md). The only task of a Slurm step is none: it may be a shell, and
/// the only rank of a group can do without.
bool is_rank(const bootstrap::Environment& environment = bootstrap::environment_of_process());

/// Makes a node's environment that of rank `rank` of `n_ranks`, where ranks are not nodes by their numbers: also the
/// place where they meet, if it says one, becomes that of rank 0, node `first_node`.
void take_rank(bootstrap::Environment& environment, uint32_t rank, uint32_t n_ranks, uint32_t first_node);

/// Runs this same command, with the same words and --as-rank --of N after them, on all N nodes of a cluster (empty:
/// as always), as a group that no other meets (but on machines, see docs/environment.md), and passes on what they
/// print. Blocks until all have ended. Returns 0, or the exit code of the first that failed.
int run_on_all_nodes(const std::string& cluster, std::vector<std::string> words, std::optional<double> timeout_s);

}  // namespace ringbolt::tools::ranks
