// Hot path: see clearances.h.
#include "circuit/clearances.h"

#include <algorithm>

namespace ringbolt::circuit {

void Clearances::begin(int32_t tag) {
  const uint32_t message = next_message_++;
  latest_.reset();
  tag_of(message) = tag;  // kept for a base that comes later
  // Until a base says from where on to count again, messages go by frames, which need no clearance.
  if (is_lost_) {
    return;
  }
  if (next_message_ - first_unmatched_ > kMostUnmatched) {
    is_lost_ = true;
    return;
  }
  is_matched_[message % kMostUnmatched] = false;
  (void)match(message);
}

bool Clearances::hear(const ClearToSend& frame) {
  // Signed, so that it holds where numbers wrap around.
  const auto ahead = static_cast<int32_t>(frame.first - next_clearance_);
  if (ahead > 0) {
    return false;  // those between have not been told
  }
  for (uint32_t i = 0; i < frame.n_receives; ++i) {
    // Told again after a rail failed: known already.
    if (frame.first + i != next_clearance_) {
      continue;
    }
    if (i == 0 && frame.is_base && !start_from(frame.base_message)) {
      return false;
    }
    if (!add(frame, frame.receives[i])) {
      return false;
    }
  }
  return true;
}

bool Clearances::start_from(uint32_t message) {
  const uint32_t n_unmatched = next_message_ - message;
  if (n_unmatched > UINT32_MAX / 2) {
    return false;  // it has not begun
  }
  is_lost_ = n_unmatched > kMostUnmatched;
  while (!queue_.is_empty()) {
    queue_.pop();
  }
  if (!is_lost_) {
    first_unmatched_ = message;
    for (uint32_t number = message; number != next_message_; ++number) {
      is_matched_[number % kMostUnmatched] = false;
    }
  }
  return true;
}

bool Clearances::add(const ClearToSend& frame, const ClearedReceive& cleared) {
  const uint32_t number = next_clearance_++;
  if (is_lost_) {
    return true;
  }
  while (!queue_.is_empty() && queue_.first().n_untaken == 0) {
    queue_.pop();
  }
  if (queue_.is_full()) {
    return false;  // as many can't be posted and wait
  }
  Receive& receive = queue_.next();
  receive.clearance = number;
  Where& where = where_[number % kMostReceives];
  where = {frame.n_rails, frame.rails, cleared.parts};
  for (uint32_t i = 0; i < cleared.n_parts; ++i) {
    receive.parts[i].tag = cleared.parts[i].tag;
  }
  queue_.post(cleared.n_parts);
  for (uint32_t message = first_unmatched_; message != next_message_ && receive.n_untaken > 0; ++message) {
    if (!is_matched_[message % kMostUnmatched]) {
      (void)match(message);
    }
  }
  return true;
}

bool Clearances::match(uint32_t message) {
  const ReceiveQueue::Place place = queue_.match(tag_of(message));
  if (place.part == nullptr) {
    return false;
  }
  is_matched_[message % kMostUnmatched] = true;
  while (first_unmatched_ != next_message_ && is_matched_[first_unmatched_ % kMostUnmatched]) {
    ++first_unmatched_;
  }
  if (message + 1 == next_message_) {
    const Where& where = where_[place.receive->clearance % kMostReceives];
    const ClearedPart& part = where.parts[static_cast<size_t>(place.part - place.receive->parts.data())];
    latest_ = {
        place.receive->clearance, part.is_direct, part.capacity, part.address, where.n_rails, where.rails, part.keys};
  }
  return true;
}

}  // namespace ringbolt::circuit
