// Hot path: notify().
#pragma once

#include <cstdint>
#include <memory>
#include <new>

#include "base/asymmetric_fence.h"
#include "device/completion_channel.h"
#include "link/wake_table.h"

namespace ringbolt::device {

class CompletionQueue;

/// A completion queue's entry in the wake table, by which peers know it and see what it waits for, and its place at its
/// channel. Whoever changes the entry's word from armed to something else, here or at a peer, raises the event: one a
/// request for notification. Layout and orders: docs/formats/wake-table.md. Thread-safe, except where said.
/// Part of its completion queue, and lives as long; the place in the table is free again when it ends, under another
/// generation, so that a peer that is late rings nobody.
class WakeEntry {
 public:
  /// `queue` is what the channel announces, and is not looked into. `channel` may be null; else it must outlive
  /// retire(). Throws std::bad_alloc when all entries are taken as well.
  WakeEntry(link::WakeTable& table, CompletionChannel* channel, CompletionQueue* queue);
  ~WakeEntry();
  WakeEntry(const WakeEntry&) = delete;
  WakeEntry& operator=(const WakeEntry&) = delete;

  /// Peers' events are for `owner`, which this is part of. Once, before anybody can arm it.
  void join_channel(const std::shared_ptr<CompletionQueue>& owner);
  /// No event from here on: nothing here touches the channel again. Once.
  void retire();

  CompletionQueue* queue() const { return queue_; }
  /// What peers know it by, and where it announces itself: number and descriptor of its channel, or 0 and -1.
  link::WakeName name() const { return name_; }
  uint32_t channel_number() const { return channel_number_; }
  int channel_descriptor() const { return channel_descriptor_; }
  /// Of its channel, for RINGBOLT_EXPLAIN; null: it has none.
  const Waiters* sleepers() const { return sleepers_.get(); }
  /// What peers see of it.
  link::WakeQueue& shown() { return shown_; }

  /// Relaxed: it decides whether to try, and change() decides who wins.
  link::Notify notify() const { return link::notify_of(shown_.notify.load(std::memory_order_relaxed)); }
  bool is_armed() const { return link::is_armed(notify()); }

  /// Raises the event with its completion, if it is waited for. False: it is not, or a peer has raised it first.
  bool raise() {
    const link::Notify armed = notify();
    return link::is_armed(armed) && change(armed, link::Notify::nothing) && push();
  }
  /// The same before its completion is seen here. Only for who waits for any completion.
  bool ring() { return change(link::Notify::next, link::Notify::raised) && push(); }
  /// The event that a peer has raised is about to be given to the program. False: there is none.
  /// Any thread; under the channel's lock, or by who arms.
  bool collect_ring() { return change(link::Notify::rung, link::Notify::raised); }

  // Of who arms it, which is one at a time, and not after retire().
  /// Room for its event. Throws std::bad_alloc, and nothing has changed.
  void make_room() {
    if (channel_ != nullptr) {
      channel_->make_room();
    }
  }
  /// Peers look whether it is armed from here on.
  void show_arming();
  /// The event that a peer has raised for the arming of before waits with the others.
  void announce_ring() {
    if (collect_ring() && channel_ != nullptr) {
      channel_->push_uncounted(queue_);  // the count is the peer's
    }
  }
  /// `wish`: solicited or next. Instead of what it was.
  /// Sequentially consistent: the caller's fence and look at what has come are behind it.
  void arm(link::Notify wish) {
    const uint32_t before = shown_.notify.exchange(word(wish));
    if (link::notify_of(before) == link::Notify::rung && channel_ != nullptr) {
      channel_->push_uncounted(queue_);  // just now, for the arming of before
    }
  }
  /// A peer is gone, perhaps in the middle of raising an event.
  void count_again() {
    if (channel_ != nullptr) {
      channel_->count_again();
    }
  }

 private:
  static link::WakeName take_name(link::WakeTable& table, CompletionChannel* channel, uint32_t channel_place);
  uint32_t word(link::Notify notify) const {
    return (name_.generation << link::kNotifyBits) | static_cast<uint32_t>(notify);
  }
  /// Only who finds the word as it was has changed it: a peer, or another thread, may be about to raise the same event.
  bool change(link::Notify from, link::Notify to) {
    uint32_t found = word(from);
    return shown_.notify.compare_exchange_strong(found, word(to), std::memory_order_seq_cst);
  }
  /// After the word has changed, which no one else can do again until it is armed anew: one announcement a request.
  bool push() {
    if (channel_ != nullptr) {
      channel_->push(queue_);
    }
    return true;
  }

  link::WakeTable& table_;
  CompletionQueue* const queue_;
  CompletionChannel* const channel_;  // not after retire(): it is never armed again
  const uint32_t channel_place_;
  const uint32_t channel_number_;
  const int channel_descriptor_;
  const std::shared_ptr<const Waiters> sleepers_;
  const link::WakeName name_;
  link::WakeQueue& shown_;
  bool has_joined_ = false;
};

inline WakeEntry::WakeEntry(link::WakeTable& table, CompletionChannel* channel, CompletionQueue* queue)
    : table_(table),
      queue_(queue),
      channel_(channel),
      channel_place_(channel == nullptr ? 0 : channel->add_user()),
      channel_number_(channel == nullptr ? 0 : channel->number()),
      channel_descriptor_(channel == nullptr ? -1 : channel->descriptor()),
      sleepers_(channel == nullptr ? nullptr : channel->waiters()),
      name_(take_name(table, channel, channel_place_)),
      shown_(table.queue(name_.index)) {}

/// What the channel has given is given back where there is no entry.
inline link::WakeName WakeEntry::take_name(link::WakeTable& table, CompletionChannel* channel,
                                           uint32_t channel_place) try {
  const auto name = table.add_queue(channel == nullptr ? link::kNoWakeChannel : channel->index(), channel_place);
  if (!name) {
    throw std::bad_alloc();
  }
  return *name;
} catch (const std::bad_alloc&) {
  if (channel != nullptr) {
    channel->remove_user(channel_place, false);
  }
  throw;
}

/// A queue that was given to somebody has retired, and its channel may be gone.
inline WakeEntry::~WakeEntry() {
  table_.remove_queue(name_);
  if (!has_joined_ && channel_ != nullptr) {
    channel_->remove_user(channel_place_, false);
  }
}

inline void WakeEntry::join_channel(const std::shared_ptr<CompletionQueue>& owner) {
  has_joined_ = true;
  if (channel_ != nullptr) {
    channel_->set_user(channel_place_, std::shared_ptr<WakeEntry>(owner, this));
  }
}

inline void WakeEntry::retire() {
  const uint32_t before = shown_.notify.exchange(word(link::Notify::nothing));
  if (channel_ != nullptr) {
    channel_->remove_user(channel_place_, link::notify_of(before) == link::Notify::rung);
  }
}

inline void WakeEntry::show_arming() {
  if ((shown_.mode.load(std::memory_order_relaxed) & link::kWakeIsArmed) == 0) {
    // From here on peers make a full fence before they look whether it is armed. Those who have not seen that yet, and
    // whose light one came before, have published what the caller finds behind this.
    shown_.mode.fetch_or(link::kWakeIsArmed, std::memory_order_seq_cst);
    base::heavy_fence();
  }
}

}  // namespace ringbolt::device
