#pragma once

#include <optional>
#include <vector>

#include "pair/peer.h"
#include "perf/link.h"
#include "perf/result.h"
#include "progress_line.h"

namespace ringbolt::tools::perf {

using pair::Peer;

/// Measures latency over a link, at both ends at once: closed loops, so that no early completion makes it look better.
/// At the client: the figures. At the server: nothing. Throws ProbeFailure.
/// Of a link whose step is of latency. Blocks until both ends are through; silence is bounded by the peer's time
/// limit.
std::optional<LatencyFigures> measure_latency(Link& link, Peer& peer, bool is_client, Progress& progress);

/// Measures bandwidth over a link, at both ends at once. At the client: a figure for each direction. At the server:
/// nothing. Throws ProbeFailure.
/// Of a link whose step is not. In `by` the end that posted. Blocks as the other.
std::vector<BandwidthFigures> measure_bandwidth(Link& link, Peer& peer, bool is_client, Progress& progress);

}  // namespace ringbolt::tools::perf
