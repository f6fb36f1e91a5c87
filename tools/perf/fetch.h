#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <vector>

#include "pair/peer.h"
#include "perf/link.h"
#include "perf/pace.h"
#include "perf/poster.h"
#include "perf/sender.h"

namespace ringbolt::tools::perf {

/// What an atomic's counter holds after `count` of them; starts at 0. An odd step, so that all 64 bits take part.
uint64_t atomic_value(uint64_t count);

/// READs and atomics as requests, and what each must bring: the bytes that the peer keeps in its slots, or what the
/// atomics before have left in the counter. Not thread-safe.
class Fetch {
 public:
  Fetch(Link& link, Peer& peer, Check check);

  static ibv_wr_opcode opcode_of(const Parameters& parameters);
  /// Adds operation `sequence` of a queue pair to the poster's list. Hot path.
  void add(Poster& poster, uint32_t queue_pair, uint64_t sequence) const;
  /// Throws ProbeFailure naming the operation if it brought anything else. Hot path.
  void check(uint32_t queue_pair, uint64_t sequence) const;

 private:
  Link& link_;
  Peer& peer_;
  Check check_;
  bool is_atomic_;
  uint32_t source_slots_;
  uint32_t landing_slots_;
};

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
