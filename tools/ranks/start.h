#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "bootstrap/environment.h"
#include "ringbolt/group.h"

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
/// Changes the process's environment, by prepare_meeting(); once per process, as supervise().
int run_on_all_nodes(const std::string& cluster, std::vector<std::string> words, std::optional<double> timeout_s);

/// A TCP port from 20000 to 29999, one that nobody uses now. Whoever takes it in between makes the ranks say so. Throws
/// base::Error.
uint16_t free_port();

/// 32 hexadecimal digits of the system's random numbers.
std::string random_secret();

/// Makes this process's environment that of ranks of a group of its own, which it is about to start: by their nodes'
/// numbers, whatever a launcher says of this process, and with a port and a secret that no other group has, unless the
/// user has set these. Not thread-safe.
void prepare_meeting();

/// Group::join(). Throws UsageError where the environment can't be right, else FoundProblem; also if `n_ranks` is given
/// and the group has another number: ranks that meet nobody would find nothing wrong.
/// Blocks for the options' time limit at most.
Group join(const GroupOptions& options, std::optional<uint32_t> n_ranks);

/// Every rank's text, in the order of ranks, on every rank. A collective call; blocks for `timeout_ms` twice at most.
/// Takes as much memory as all ranks say that they send: they are of one secret, and trusted.
tl::expected<std::vector<std::string>, Status> exchange_texts(Group& group, const std::string& mine,
                                                              uint64_t timeout_ms);

}  // namespace ringbolt::tools::ranks
