#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pair/peer.h"
#include "perf/link.h"
#include "perf/pace.h"
#include "perf/patience.h"
#include "perf/poster.h"

namespace ringbolt::tools::perf {

/// What an initiator has found out on its own clock.
struct Timing {
  uint64_t first = 0;           ///< operations before the clock started, of all queue pairs: to warm up
  uint64_t duration_ns = 0;     ///< first post to last credit
  uint64_t tx_operations = 0;   ///< completed at the sender
  uint64_t tx_duration_ns = 0;  ///< first post to their last completion
};

/// Streams SENDs or WRITEs over all queue pairs of a link, never more than the receiver has room for, until the pace
/// says that it is enough and the receiver has acknowledged all. A first window that is not timed warms up. Over UC and
/// UD, where messages and credits get lost, what is not acknowledged in a while counts as lost. Not thread-safe.
class Sender {
 public:
  Sender(Link& link, Peer& peer);

  /// Does what can be done without waiting. True if that was something. Throws ProbeFailure.
  bool advance();
  bool is_done() const { return phase_ == Phase::kDone; }
  const Timing& timing() const { return timing_; }
  /// How many messages were posted on each queue pair.
  std::vector<uint64_t> posted() const;

 private:
  enum class Phase { kWarming, kRunning, kEnding, kDone };
  struct Lane {
    uint64_t posted = 0;
    uint64_t completed = 0;
    uint64_t credited = 0;
    uint64_t noticed = 0;
    uint32_t notices_under_way = 0;
  };

  bool post(uint32_t index);
  bool reap();
  bool take_credits();
  void post_notice(uint32_t index);
  void change_phase();
  void look_for_loss();
  bool is_all_credited() const;

  Link& link_;
  Poster poster_;
  Pace pace_;
  bool is_write_;
  bool is_compared_;
  uint32_t window_;
  uint32_t slots_;
  uint32_t notice_every_;
  std::vector<Lane> lanes_;
  Phase phase_ = Phase::kWarming;
  Timing timing_;
  uint64_t begin_ns_ = 0;
  uint64_t last_credit_ns_ = 0;
  uint64_t last_completion_ns_ = 0;
  uint64_t posted_total_ = 0;
  uint64_t limit_ = 0;  // of warming: so many messages
  uint32_t fruitless_ = 0;
  bool needs_credits_ = false;
};

}  // namespace ringbolt::tools::perf
