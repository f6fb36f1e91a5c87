#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "ringbolt/group.h"

namespace ringbolt::tools::ranks {

/// One that nobody uses now. Whoever takes it in between makes the ranks say so. Throws base::Error.
uint16_t free_port();

std::string random_secret();

/// Makes this process's environment that of ranks of a group of its own, which it is about to start: by their nodes'
/// numbers, whatever a launcher says of this process, and with a port and a secret that no other group has, unless the
/// user has set these. Not thread-safe.
void prepare_meeting();

/// Group::join(). Throws UsageError where the environment can't be right, else FoundProblem; also if `n_ranks` is given
/// and the group has another number: ranks that meet nobody would find nothing wrong.
Group join(const GroupOptions& options, std::optional<uint32_t> n_ranks);

/// Every rank's text, in the order of ranks, on every rank. A collective call; blocks for `timeout_ms` twice at most.
tl::expected<std::vector<std::string>, Status> exchange_texts(Group& group, const std::string& mine,
                                                              uint64_t timeout_ms);

}  // namespace ringbolt::tools::ranks
