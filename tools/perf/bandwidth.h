#pragma once

#include <vector>

#include "pair/peer.h"
#include "perf/link.h"
#include "perf/result.h"
#include "progress_line.h"

namespace ringbolt::tools::perf {

using pair::Peer;

/// Measures bandwidth over a link, at both ends at once. At the client: a figure for each direction. At the server:
/// nothing. Throws ProbeFailure.
std::vector<BandwidthFigures> measure_bandwidth(Link& link, Peer& peer, bool is_client, Progress& progress);

}  // namespace ringbolt::tools::perf
