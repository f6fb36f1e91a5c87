#include "early_peer.h"

#include <sched.h>
#include <unistd.h>

namespace ringbolt::bench {
namespace {

/// Longer than rank 1 needs for its part of a short call, if it has a core.
constexpr useconds_t kLeadUs = 1000;

}  // namespace

void EarlyPeer::meet() {
  ++meetings_;
  if (rank_ != 0) {
    page_.turn.store(meetings_, std::memory_order_release);
    return;
  }
  while (page_.turn.load(std::memory_order_acquire) < meetings_) {
    sched_yield();
  }
  usleep(kLeadUs);
}

}  // namespace ringbolt::bench
