#include "early_peer.h"

#include <chrono>

namespace ringbolt::bench {
namespace {

using Clock = std::chrono::steady_clock;

/// Longer than rank 1 needs for its part of a short call, if it has a core; shorter than a rank of ours polls before it
/// sleeps, and than its thread naps.
constexpr auto kLead = std::chrono::microseconds(50);

}  // namespace

void EarlyPeer::meet() {
  ++meetings_;
  if (rank_ != 0) {
    page_.turn.store(meetings_, std::memory_order_release);
    return;
  }
  while (page_.turn.load(std::memory_order_acquire) < meetings_) {
  }
  for (const auto end = Clock::now() + kLead; Clock::now() < end;) {
  }
}

}  // namespace ringbolt::bench
