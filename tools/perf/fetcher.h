#pragma once

#include <cstdint>
#include <vector>

#include "pair/peer.h"
#include "perf/fetch.h"
#include "perf/link.h"
#include "perf/pace.h"
#include "perf/poster.h"
#include "perf/sender.h"

namespace ringbolt::tools::perf {

/// Streams READs or atomics over all queue pairs of a link until the pace says that it is enough, and checks what each
/// brings. The peer's part is passive. Not thread-safe.
class Fetcher {
 public:
  Fetcher(Link& link, Peer& peer);

  /// Does what can be done without waiting. True if that was something. Throws ProbeFailure, naming what is wrong.
  bool advance();
  bool is_done() const { return phase_ == Phase::kDone; }
  const Timing& timing() const { return timing_; }
  uint64_t checked() const { return checked_; }
  /// How many operations each queue pair has done: what the counters there must say.
  std::vector<uint64_t> counts() const;

 private:
  enum class Phase { kWarming, kRunning, kDone };
  struct Lane {
    uint64_t posted = 0;
    uint64_t checked = 0;
  };

  bool post(uint32_t index);
  bool reap();
  void change_phase();

  Link& link_;
  Fetch fetch_;
  Poster poster_;
  Pace pace_;
  std::vector<Lane> lanes_;
  Phase phase_ = Phase::kWarming;
  Timing timing_;
  uint64_t begin_ns_ = 0;
  uint64_t posted_ = 0;
  uint64_t checked_ = 0;
  uint64_t limit_ = 0;
};

}  // namespace ringbolt::tools::perf
