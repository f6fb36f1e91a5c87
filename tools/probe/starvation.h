#pragma once

#include <cstdint>

namespace ringbolt::tools {

/// How long the thread of this process that waited longest for a processor, while it could have run, has done so since
/// it began, as the kernel counts it; 0 if it does not.
uint64_t starved_ns();

}  // namespace ringbolt::tools
