#pragma once

#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "ringbolt/group.h"

namespace ringbolt::tools::ranks {

/// Every rank's text, in the order of ranks, on every rank. A collective call; blocks for `timeout_ms` twice at most.
tl::expected<std::vector<std::string>, Status> exchange_texts(Group& group, const std::string& mine,
                                                              uint64_t timeout_ms);

}  // namespace ringbolt::tools::ranks
