#pragma once

#include <cstdint>

#include "commands.h"
#include "perf/probe.h"
#include "ringbolt/group.h"

namespace ringbolt::tools::relayed {

/// Measures this rank's sending to `peer`, which calls answer(): round trips of 8 bytes, then messages whose every byte
/// the peer verifies. Blocks for the options' time limit at most for each message. Throws ProbeFailure.
void measure(Group& group, uint32_t peer, const RelayProbeOptions& options, ProbeReport& report);

/// The other side of it.
void answer(Group& group, uint32_t peer, const RelayProbeOptions& options);

}  // namespace ringbolt::tools::relayed
