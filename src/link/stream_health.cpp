// Hot path: update.
#include "link/stream_health.h"

#include <algorithm>

#include "link/stream_link.h"

namespace ringbolt::link {
namespace {

/// Peers acknowledge within a millisecond or two; one that doesn't for so long is off its core, frozen or unplugged.
constexpr uint64_t kStuckNs = 20'000'000;

}  // namespace

uint64_t StreamHealth::end_of(uint64_t since_ns, uint64_t now_ns) const {
  return std::min(now_ns, since_ns + limits_.outage_ns);
}

void StreamHealth::update(const StreamLink& link, uint64_t now_ns) {
  const uint64_t waited_since = waiting_since_ns_.load(std::memory_order_relaxed);
  const uint64_t waiting_since = link.has_left() ? 0 : link.waiting_since_ns();
  if (waiting_since != waited_since) {
    if (waited_since != 0 && now_ns >= waited_since + kStuckNs) {
      excused_until_ns_.store(end_of(waited_since, now_ns), std::memory_order_relaxed);
    }
    waiting_since_ns_.store(waiting_since, std::memory_order_relaxed);
  }
  if (link.is_up()) [[likely]] {
    if (not_up_since_ns_ != 0) [[unlikely]] {
      not_up_since_ns_ = 0;
      if (const uint64_t since = down_since_ns_.exchange(0, std::memory_order_relaxed); since != 0) {
        excused_until_ns_.store(end_of(since, now_ns), std::memory_order_relaxed);
      }
      is_gone_.store(false, std::memory_order_relaxed);
    }
    return;
  }
  if (link.peer_incarnation() == 0) {
    return;
  }
  if (not_up_since_ns_ == 0) {
    not_up_since_ns_ = now_ns;
    if (!link.has_left()) {
      down_since_ns_.store(now_ns, std::memory_order_relaxed);
    }
  }
  if (link.has_left() || now_ns >= not_up_since_ns_ + limits_.grace_ns) {
    is_gone_.store(true, std::memory_order_relaxed);
  }
}

uint64_t StreamHealth::next_deadline_ns() const {
  return not_up_since_ns_ == 0 || is_gone() ? UINT64_MAX : not_up_since_ns_ + limits_.grace_ns;
}

uint64_t StreamHealth::excused_until_ns(uint64_t now_ns) const {
  const uint64_t down_since = down_since_ns_.load(std::memory_order_relaxed);
  const uint64_t waiting_since = waiting_since_ns_.load(std::memory_order_relaxed);
  const bool is_stuck = waiting_since != 0 && now_ns >= waiting_since + kStuckNs;
  uint64_t until = excused_until_ns_.load(std::memory_order_relaxed);
  if (down_since != 0 || is_stuck) {
    const uint64_t since = down_since == 0 ? waiting_since : !is_stuck ? down_since : std::min(down_since, waiting_since);
    until = std::max(until, end_of(since, now_ns));
  }
  return until;
}

}  // namespace ringbolt::link
