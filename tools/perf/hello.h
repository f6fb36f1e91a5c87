#pragma once

#include <vector>

#include "pair/hello.h"
#include "perf/parameters.h"

namespace ringbolt::tools::perf {

/// What both ends of a measurement must have been asked for alike.
std::vector<pair::HelloEntry> entries_of(const Parameters& parameters);

}  // namespace ringbolt::tools::perf
