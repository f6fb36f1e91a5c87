#pragma once

#include <string>

#include "pair/peer.h"
#include "perf/parameters.h"
#include "perf/result.h"
#include "progress_line.h"

namespace ringbolt::tools::perf {

using pair::Peer;

/// What one end was asked for.
struct Request {
  Parameters parameters;
  Tuning tuning;
  std::string library;  ///< path of the verbs library
  std::string device;   ///< empty: the first
  bool needs_counters = false;
};

/// One end's whole part: both agree, then measure size after size, and both get the same result, whose line rate is the
/// client's. Asked to stop (stop.h), they end with what they have measured. Throws ProbeFailure, and UsageError if the
/// ends were asked for different things.
Result run_session(const Request& request, Peer& peer, bool is_client, Progress& progress);

}  // namespace ringbolt::tools::perf
