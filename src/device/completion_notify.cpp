// Arming a completion queue (docs/formats/wake-table.md).

#include <atomic>

#include "base/clock.h"
#include "base/lock_guard.h"
#include "device/completion_queue.h"
#include "device/context.h"
#include "device/network.h"
#include "device/queue_pair.h"

namespace ringbolt::device {

void CompletionQueue::on_peer_gone() {
  const base::LockGuard guard(lock);
  events_.on_peer_gone();
}

void CompletionQueue::request_notification(bool solicited_only) {
  const base::LockGuard guard(lock);
  if (events_.is_retired()) {
    return;
  }
  wake_entry_.make_room();
  wake_entry_.show_arming();
  if (events_.begin_request()) {
    progress();
  }
  events_.arm(solicited_only);
  // A store before a load: either this finds what a peer has published, or the peer that the queue is armed.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  progress();
  events_.announce_unread(unread_.taken(), unread_.committed(), unread_.last_solicited());
  if (shuffle_ != nullptr && shuffle_->is_spurious(unread_.committed())) [[unlikely]] {
    events_.raise_anyway();
  }
  bool has_unfinished = false;
  senders_.each_marked([&](const QueuePair& qp) { has_unfinished = has_unfinished || qp.has_unfinished_sends(); });
  if (has_unfinished) {
    context_.process().watch_timers(*this);  // somebody has to, while the program sleeps
  }
}

/// What lies here is told some time later, and all at once. Not what an event was raised for, or may be: whoever was
/// woken finds something. A program that finds nothing and arms then has an event at once.
[[gnu::cold, gnu::noinline]] bool CompletionQueue::holds_back() {
  const uint64_t now = base::now_ns();
  if (network_ != nullptr) {
    last_poll_ns_.store(now, std::memory_order_relaxed);
    network_->poll(now);
  }
  const base::LockGuard guard(lock);
  progress();
  const uint64_t told = unread_.taken();
  return !unread_.has_overflowed() && !events_.may_have_told(told) &&
         shuffle_->holds_back(told, unread_.committed(), now);
}

}  // namespace ringbolt::device
