#include "device/queue_pair_numbers.h"

#include "base/assert.h"
#include "base/lock_guard.h"

namespace ringbolt::device {

static_assert(kMaxQueuePairs == 1U << kQpnIndexBits);

std::optional<uint32_t> QueuePairNumbers::take() {
  const base::LockGuard guard(mutex_);
  for (uint32_t tries = 0; tries < kMaxQueuePairs; ++tries) {
    const uint32_t index = next_index_++ % kMaxQueuePairs;
    const uint32_t qpn = (slot_ << kQpnIndexBits) | index;
    if (qpn > 1 && !is_taken_.test(index)) {
      is_taken_.set(index);
      return qpn;
    }
  }
  return std::nullopt;
}

void QueuePairNumbers::give_back(uint32_t qpn) {
  RINGBOLT_ASSERT(qpn >> kQpnIndexBits == slot_);
  const base::LockGuard guard(mutex_);
  is_taken_.reset(qpn % kMaxQueuePairs);
}

}  // namespace ringbolt::device
