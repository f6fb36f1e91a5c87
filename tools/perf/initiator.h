#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "pair/peer.h"
#include "perf/link.h"
#include "perf/pace.h"
#include "perf/poster.h"

namespace ringbolt::tools::perf {

/// What an initiator has found out on its own clock.
struct Timing {
  uint64_t first = 0;           ///< operations before the clock started, of all queue pairs: to warm up
  uint64_t duration_ns = 0;     ///< first post to the end of the last operation
  uint64_t tx_operations = 0;   ///< completed at the sender
  uint64_t tx_duration_ns = 0;  ///< first post to their last completion
};

/// Posts operations on all queue pairs of a link: some to warm up, then, on the clock, as many as the pace wants. What
/// an operation is, and when it is settled, says who derives from it. Not thread-safe.
/// A phase ends only when all queue pairs together have posted their share; `link` and `peer` outlive it.
class Initiator {
 public:
  bool is_done() const { return phase_ == Phase::kDone; }
  const Timing& timing() const { return timing_; }
  /// How many on each queue pair.
  std::vector<uint64_t> counts() const {
    std::vector<uint64_t> counts;
    std::ranges::transform(lanes_, std::back_inserter(counts), &Lane::posted);
    return counts;
  }

 protected:
  enum class Phase { kWarming, kRunning, kEnding, kDone };
  struct Lane {
    uint64_t posted = 0;
    uint64_t completed = 0;
    uint64_t settled = 0;  ///< nothing more is awaited of these
  };

  /// `limit`: so many operations warm up.
  Initiator(Link& link, Peer& peer, ibv_wr_opcode opcode, uint64_t limit)
      : link_(link), poster_(link, peer, opcode), pace_(link.parameters()), lanes_(link.queue_pairs()), limit_(limit) {}

  /// Posts a list of up to `room` operations, if more are wanted; add(number) puts one on it. False: none was. Hot
  /// path.
  /// `room` must be no more than what the queue holds and the memory has slots for: nothing here is refused by
  /// either.
  template <class Add>
  bool post_list(uint32_t index, uint64_t room, const Add& add) {
    const auto most = static_cast<uint32_t>(std::min<uint64_t>(room, link_.depths().post_list));
    while (poster_.added() < most && wants_more()) {
      add(lanes_[index].posted);
      ++lanes_[index].posted;
      ++posted_;
    }
    if (poster_.added() == 0) {
      return false;
    }
    poster_.post(index);
    return true;
  }

  /// Nothing more of this phase is to be posted.
  bool has_posted_all() const { return phase_ == Phase::kWarming ? posted_ == limit_ : phase_ != Phase::kRunning; }
  /// Lanes are settled by who derives from it, as credits, losses or checks say.
  bool is_settled() const {
    return std::ranges::all_of(lanes_, [](const Lane& lane) { return lane.settled == lane.posted; });
  }

  /// After each turn.
  void change_phase() {
    if (phase_ == Phase::kWarming && posted_ == limit_ && is_settled()) {
      phase_ = Phase::kRunning;
      timing_.first = posted_;
      // Over RC the receiver has checked all that warmed up.
      begin_ns_ = settled_ns_ = base::now_ns();
      pace_.begin(begin_ns_);
    } else if (phase_ == Phase::kRunning && !pace_.wants_more(posted_ - timing_.first)) {
      phase_ = Phase::kEnding;
    }
    if (phase_ == Phase::kEnding && is_settled()) {
      phase_ = Phase::kDone;
      timing_.duration_ns = settled_ns_ - begin_ns_;
      // What was under way when the clock started may complete later: then it has to be left out.
      timing_.tx_operations -= std::min(timing_.first, timing_.tx_operations);
      timing_.tx_duration_ns = timing_.tx_operations == 0 ? 0 : completed_ns_ - begin_ns_;
    }
  }

  Link& link_;
  Poster poster_;
  Pace pace_;
  std::vector<Lane> lanes_;
  Phase phase_ = Phase::kWarming;
  Timing timing_;
  uint64_t begin_ns_ = 0;      // of what is on the clock
  uint64_t settled_ns_ = 0;    // when something was last
  uint64_t completed_ns_ = 0;  // likewise at this end

 private:
  bool wants_more() {
    return phase_ == Phase::kWarming   ? posted_ < limit_
           : phase_ == Phase::kRunning ? pace_.wants_more(posted_ - timing_.first)
                                       : false;
  }

  uint64_t posted_ = 0;
  uint64_t limit_;
};

}  // namespace ringbolt::tools::perf
