#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "collective/topology.h"
#include "group/group.h"

namespace ringbolt::group {

/// Which schedules a collective of `count` elements a share has on these cables, the fastest first, and why: for
/// people, one line each. What there is not is said in words as well. `n_measured_links`: links whose times the
/// topology's model comes from; 0: it is assumed. Pure, and without a lock: the topology is thread-safe. May take
/// seconds for many ranks.
std::string explain(const std::string& operation, size_t count, Type type, const collective::Topology& topology,
                    uint32_t n_measured_links);

}  // namespace ringbolt::group
