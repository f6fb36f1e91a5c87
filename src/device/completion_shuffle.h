#pragma once

#include <cstdint>
#include <utility>

#include "shuffle/shuffle.h"

namespace ringbolt::device {

/// What RINGBOLT_SHUFFLE does to one completion queue. Under its lock.
class CompletionShuffle {
 public:
  /// `number`: which queue of the process at its port it is, from 0. `shuffle` must outlive it.
  CompletionShuffle(const shuffle::Shuffle& shuffle, uint32_t number) : shuffle_(shuffle), number_(number) {}

  /// Of the completions so far, `told` were polled and `committed` came: whether a poll at `now_ns` finds none of the
  /// others. Once it finds some, it finds all that had come by then.
  bool holds_back(uint64_t told, uint64_t committed, uint64_t now_ns) {
    if (told == committed || told < released_) {
      return false;
    }
    if (due_ns_ == 0) {
      due_ns_ = now_ns + shuffle::delay_ns(shuffle_.draw(shuffle::Kind::late, number_, told + 1));
    }
    if (now_ns < due_ns_) {
      return true;
    }
    due_ns_ = 0;
    released_ = committed;
    return false;
  }
  /// Asked once an arming, when `committed` have come: whether an event comes at once, for one that was polled since
  /// the last arming. A queue that nothing came to raises none.
  bool is_spurious(uint64_t committed) {
    const bool has_come = std::exchange(armed_at_, committed) != committed;
    return shuffle_.draw(shuffle::Kind::events, number_, ++armings_) != 0 && has_come;
  }

 private:
  const shuffle::Shuffle& shuffle_;
  const uint32_t number_;
  uint64_t armings_ = 0;
  uint64_t armed_at_ = 0;  ///< so many had come at the last arming
  uint64_t released_ = 0;  ///< up to this one completions may be polled
  uint64_t due_ns_ = 0;    ///< of those behind; 0: nobody has asked
};

}  // namespace ringbolt::device
