#include "transport/response_queue.h"

#include <bit>

#include "base/assert.h"
#include "transport/sequence.h"

namespace ringbolt::transport {
namespace {

bool carries_data(const Response& response) {
  return response.kind == Response::read || response.kind == Response::atomic;
}

}  // namespace

// At most one without data before and after each with data.
ResponseQueue::ResponseQueue(uint32_t answers)
    : most_answers_(answers), mask_(std::bit_ceil(2 * answers + 1) - 1), items_(size_t{mask_} + 1) {}

void ResponseQueue::pop() {
  answers_ -= carries_data(front()) ? 1U : 0U;
  ++head_;
}

void ResponseQueue::push(const Response& response) {
  if (carries_data(response)) {
    RINGBOLT_ASSERT(has_room());
    ++answers_;
  } else if (head_ != tail_ && !carries_data(items_[(tail_ - 1) & mask_])) {
    // It says all that the older one did: a NAK acknowledges what precedes it, an ACK means that a NAK is repaired.
    items_[(tail_ - 1) & mask_] = response;
    return;
  }
  RINGBOLT_ASSERT(tail_ - head_ <= mask_);
  items_[tail_++ & mask_] = response;
}

void ResponseQueue::replace_all(const Response& response) {
  head_ = tail_ = 0;
  answers_ = 0;
  push(response);
}

bool ResponseQueue::covers(uint32_t psn, uint32_t packets) const {
  for (uint32_t at = head_; at != tail_; ++at) {
    const Response& item = items_[at & mask_];
    if (carries_data(item)) {
      const int32_t skipped = psn_distance(psn, item.psn);
      if (skipped >= 0 && static_cast<uint32_t>(skipped) + packets <= item.packets - item.sent) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace ringbolt::transport
