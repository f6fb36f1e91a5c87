#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "pair/peer.h"
#include "perf/link.h"
#include "perf/pace.h"
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

/// What a receiver has found out.
struct Receipt {
  uint64_t messages = 0;  ///< arrived and checked
  uint64_t lost = 0;
};

/// The receiving end of a Sender: checks every message, in order, and acknowledges. Of WRITEs it learns by notices,
/// which follow them on their queue pair. Not thread-safe.
class Receiver {
 public:
  Receiver(Link& link, Peer& peer);

  /// Does what can be done without waiting. True if that was something. Throws ProbeFailure, naming the message, if one
  /// is damaged, or, over RC, missing or out of order.
  bool advance();
  /// The sender's posted(): it has ended. [queue pairs]
  void set_posted(const std::vector<uint64_t>& counts);
  /// When all that was posted has come; over UC and UD when nothing more can be hoped for.
  bool is_done();
  const Receipt& receipt() const { return receipt_; }

 private:
  struct Lane {
    uint64_t next = 0;  ///< the sequence number expected
    uint64_t credited = 0;
    uint64_t posted = 0;  ///< by the sender, once it has ended
  };

  void take_message(uint32_t index, uint32_t slot, uint32_t length);
  void take_notice(uint32_t index, uint32_t slot);
  void check(uint32_t index, std::span<const std::byte> message, uint64_t sequence);
  void acknowledge(uint32_t index, uint64_t least);
  void when_idle();

  Link& link_;
  Peer& peer_;
  bool is_write_;
  /// The target of WRITEs has nothing to do until it is told of some; looking all the time would take from the writer
  /// what the two share: a processor, or the memory's bookkeeping.
  bool may_nap_;
  Check check_;
  uint32_t window_;
  uint32_t slots_;
  uint32_t credit_every_;
  std::vector<Lane> lanes_;
  Receipt receipt_;
  uint32_t fruitless_ = 0;
  bool knows_posted_ = false;
};

}  // namespace ringbolt::tools::perf
