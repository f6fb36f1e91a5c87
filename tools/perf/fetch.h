#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "pair/peer.h"
#include "perf/link.h"
#include "perf/poster.h"

namespace ringbolt::tools::perf {

/// READs and atomics as requests, and what each must bring: the bytes that the peer keeps in its slots, or what the
/// atomics before have left in the counter. Not thread-safe.
class Fetch {
 public:
  /// `link` and `peer` outlive it.
  Fetch(Link& link, Peer& peer, Check check);

  static ibv_wr_opcode opcode_of(const Parameters& parameters);
  /// Adds operation `sequence` of a queue pair to the poster's list. Hot path.
  void add(Poster& poster, uint32_t queue_pair, uint64_t sequence) const;
  /// Throws ProbeFailure naming the operation if it brought anything else. Hot path.
  /// After the operation's completion, and before its slot is used again: in the order of the sequence numbers.
  void check(uint32_t queue_pair, uint64_t sequence) const;

 private:
  Link& link_;
  Peer& peer_;
  Check check_;
  bool is_atomic_;
  uint32_t source_slots_;
  uint32_t landing_slots_;
};

}  // namespace ringbolt::tools::perf
