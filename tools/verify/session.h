#pragma once

#include <string>

#include "pair/peer.h"
#include "pair/transport.h"
#include "verify/plan.h"
#include "verify/result.h"
#include "verify/watch.h"

namespace ringbolt::tools::verify {

/// What one end was asked for.
struct Request {
  Wish wish;
  pair::PortChoice choice;
  std::string library;         ///< path of the verbs library
  std::string device;          ///< empty: the first
  double line_rate_gbps = -1;  ///< -1: what the ports say; 0: none
  double stall_s = 5;
};

/// One end's whole part. The client decides what is done; both get the same result, or, if it breaks off, what each
/// knows. A refusal is in the result. Throws UsageError if the ends were asked for different things.
Result run_session(const Request& request, pair::Peer& peer, bool is_client, Progress& progress);

}  // namespace ringbolt::tools::verify
