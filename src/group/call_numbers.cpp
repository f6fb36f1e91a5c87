#include "group/call_numbers.h"

namespace ringbolt::group {

uint32_t CallNumbers::rank_behind(const CallId& id) const {
  // Others may have ended, and given up, calls that this rank has not begun.
  const auto is_near = [&](uint32_t ended) {
    return static_cast<int32_t>(id.number - ended) < static_cast<int32_t>(kMostAhead);
  };
  if (id.is_message) {
    const bool may_go = id.source != rank_ || id.destination == rank_ || is_near(taken_by_[id.destination]);
    return may_go ? kNobody : id.destination;
  }
  for (uint32_t rank = 0; rank < finished_.size(); ++rank) {
    if (rank != rank_ && !is_near(finished_[rank])) {
      return rank;
    }
  }
  return kNobody;
}

/// What may_begin() looks at for every short call: so it is not found out anew each time.
void CallNumbers::note_finished() {
  uint32_t least = next_call_;
  for (uint32_t rank = 0; rank < finished_.size(); ++rank) {
    if (rank != rank_ && engine::is_before(finished_[rank], least)) {
      least = finished_[rank];
    }
  }
  may_go_before_ = least + kMostAhead;
}

}  // namespace ringbolt::group
