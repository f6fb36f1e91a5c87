#pragma once

#include <cstdint>

#include "pair/peer.h"
#include "perf/fetch.h"
#include "perf/link.h"
#include "perf/patience.h"
#include "perf/poster.h"

namespace ringbolt::tools::perf {

/// READs or atomics one after the other; the peer is passive. Not thread-safe.
class FetchRound {
 public:
  FetchRound(Link& link, Peer& peer);

  /// Fetches and checks what came. Always true. Throws ProbeFailure. Hot path.
  bool ask(uint64_t number);

 private:
  Link& link_;
  Peer& peer_;
  Fetch fetch_;
  Poster poster_;
  Patience patience_;
};

}  // namespace ringbolt::tools::perf
