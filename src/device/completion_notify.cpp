// Arming a completion queue, and raising its event: here, or by a peer (docs/formats/wake-table.md).

#include <algorithm>

#include "base/asymmetric_fence.h"
#include "base/clock.h"
#include "base/lock_guard.h"
#include "device/completion_channel.h"
#include "device/completion_queue.h"
#include "device/context.h"
#include "device/network.h"
#include "device/queue_pair.h"

namespace ringbolt::device {

/// Only who finds the word as it was has changed it: a peer, or another thread, may be about to raise the same event.
bool CompletionQueue::change_notify(link::Notify from, link::Notify to) {
  const uint32_t own = name_.generation << link::kNotifyBits;
  uint32_t word = own | static_cast<uint32_t>(from);
  return entry_.notify.compare_exchange_strong(word, own | static_cast<uint32_t>(to), std::memory_order_seq_cst);
}

/// A completion that the event is for which is waited for, or was raised.
void CompletionQueue::announce(bool is_solicited, uint64_t completion) {
  if (is_explained_ || (wish_ == link::Notify::solicited && !is_solicited)) {
    return;
  }
  if (const link::Notify armed = notify(); link::is_armed(armed) && change_notify(armed, link::Notify::nothing)) {
    if (channel_ != nullptr) {
      channel_->push(this);
    }
  } else {
    is_explained_ = true;  // a peer has raised it
  }
  announced_ = completion;
}

bool CompletionQueue::ring() {
  const bool is_raised = change_notify(link::Notify::next, link::Notify::raised);
  if (is_raised && channel_ != nullptr) {
    channel_->push(this);
  }
  return is_raised;
}

bool CompletionQueue::collect_ring() { return change_notify(link::Notify::rung, link::Notify::raised); }

void CompletionQueue::on_peer_gone() {
  const base::LockGuard guard(lock);
  if (channel_ != nullptr && !is_retired_) {
    channel_->count_again();
  }
}

void CompletionQueue::request_notification(bool solicited_only) {
  const base::LockGuard guard(lock);
  if (is_retired_) {
    return;
  }
  if (channel_ != nullptr) {
    channel_->make_room();
  }
  if ((entry_.mode.load(std::memory_order_relaxed) & link::kWakeIsArmed) == 0) {
    // From here on peers make a full fence before they look whether it is armed. Those who have not seen that yet, and
    // whose light one came before, have published what is found below.
    entry_.mode.fetch_or(link::kWakeIsArmed, std::memory_order_seq_cst);
    base::heavy_fence();
  }
  explain_event();
  if (notify() != link::Notify::next) {  // a wider wish is not narrowed
    wish_ = solicited_only ? link::Notify::solicited : link::Notify::next;
    const uint32_t before =
        entry_.notify.exchange((name_.generation << link::kNotifyBits) | static_cast<uint32_t>(wish_));
    if (link::notify_of(before) == link::Notify::rung && channel_ != nullptr) {
      channel_->push_uncounted(this);  // just now, for the arming of before
    }
  }
  // A store before a load: either this finds what a peer has published, or the peer that the queue is armed.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  progress();
  // As with a NIC, whose arming says how far the program has read: what lies there unread raises an event at once,
  // since UCX and perftest do not look again after arming. Only the one completion that has raised an event already
  // does not raise a second one: perftest arms before it reads.
  const uint64_t known = std::max(announced_, committed_ - count_);
  if (committed_ > known && is_armed()) {
    announce(last_solicited_ > known, known + 1);
  }
  if (shuffle_ != nullptr && shuffle_->is_spurious(committed_)) [[unlikely]] {
    raise_anyway();
  }
  bool has_unfinished = false;
  senders_.each_marked([&](const QueuePair& qp) { has_unfinished = has_unfinished || qp.has_unfinished_sends(); });
  if (has_unfinished) {
    context_.process().watch_timers(*this);  // somebody has to, while the program sleeps
  }
}

/// An event of this arming, whatever has come. What comes from here on is of the next one.
[[gnu::cold, gnu::noinline]] void CompletionQueue::raise_anyway() {
  if (const link::Notify armed = notify(); link::is_armed(armed) && change_notify(armed, link::Notify::nothing)) {
    if (channel_ != nullptr) {
      channel_->push(this);
    }
  }
  is_explained_ = true;
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
  const uint64_t told = committed_ - count_;
  const bool is_announced = notify() != link::Notify::nothing || announced_ > told;
  return !has_overflowed_ && !is_announced && shuffle_->holds_back(told, committed_, now);
}

/// An event that was raised by who had something for us, and not with the completion, is that of the first completion
/// since: it must be known before the queue is armed again, or it would raise a second one.
void CompletionQueue::explain_event() {
  if (collect_ring() && channel_ != nullptr) {
    channel_->push_uncounted(this);
  }
  if (notify() == link::Notify::raised && !is_explained_) {
    progress();
  }
  is_explained_ = false;
}

}  // namespace ringbolt::device
