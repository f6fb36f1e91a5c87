#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "device/wake_entry.h"

namespace ringbolt::device {

/// Which completion each event of a queue stands for: one event a request for notification (InfiniBand Architecture
/// Specification 1.4, 11.4.2.2), one completion an event. Completions are known by their numbers in the queue's ring;
/// one that goes straight to a poller has the number of the last there. Under the lock of the queue.
/// Peers change the entry's word at any time, so that each step here is a compare and exchange that one side wins.
class CompletionEvents {
 public:
  explicit CompletionEvents(WakeEntry& entry) : entry_(entry) {}

  /// A completion has come while an event was waited for, or raised: raises it, or is the one that it was raised for.
  /// `is_solicited`: or failed.
  void announce(bool is_solicited, uint64_t completion);

  // A request for notification, in this order; not after retire().
  /// True: somebody has raised the event of the request before whose completion is still to be looked for. It must be
  /// known before the queue is armed again, or it would raise a second one.
  bool begin_request();
  /// Arms. A wider wish than this one, that nothing came for yet, stays.
  void arm(bool solicited_only);
  /// Behind a full fence and a look at what peers have published: what lies in the queue raises the event.
  void announce_unread(uint64_t taken, uint64_t committed, uint64_t last_solicited);

  /// An event of this request, whatever has come. What comes from here on is of the next one.
  void raise_anyway();
  /// Whoever waits was woken, or may be, for one of the completions behind the first `taken`.
  bool may_have_told(uint64_t taken) const { return entry_.notify() != link::Notify::nothing || announced_ > taken; }

  bool is_retired() const { return is_retired_; }
  void retire();
  /// A peer is gone, perhaps in the middle of raising an event.
  void on_peer_gone();

 private:
  WakeEntry& entry_;
  // What this process knows by itself: the entry's word is in memory that peers write.
  link::Notify wish_ = link::Notify::nothing;  // of the last request
  uint64_t announced_ = 0;                     // the completion of the last event
  bool is_explained_ = false;                  // the completion has been seen whose event was raised before
  bool is_retired_ = false;
};

[[gnu::noinline]] inline void CompletionEvents::announce(bool is_solicited, uint64_t completion) {
  if (is_explained_ || (wish_ == link::Notify::solicited && !is_solicited)) {
    return;
  }
  if (!entry_.raise()) {
    is_explained_ = true;  // a peer has raised it
  }
  announced_ = completion;
}

inline bool CompletionEvents::begin_request() {
  entry_.announce_ring();
  return entry_.notify() == link::Notify::raised && !is_explained_;
}

inline void CompletionEvents::arm(bool solicited_only) {
  is_explained_ = false;
  if (entry_.notify() != link::Notify::next) {
    wish_ = solicited_only ? link::Notify::solicited : link::Notify::next;
    entry_.arm(wish_);
  }
}

/// As with a NIC, whose arming says how far the program has read: what lies there unread raises an event at once, since
/// UCX and perftest do not look again after arming. Only the one completion that has raised an event already does not
/// raise a second one: perftest arms before it reads.
inline void CompletionEvents::announce_unread(uint64_t taken, uint64_t committed, uint64_t last_solicited) {
  const uint64_t known = std::max(announced_, taken);
  if (committed > known && entry_.is_armed()) {
    announce(last_solicited > known, known + 1);
  }
}

[[gnu::cold, gnu::noinline]] inline void CompletionEvents::raise_anyway() {
  entry_.raise();
  is_explained_ = true;
}

inline void CompletionEvents::retire() {
  if (!std::exchange(is_retired_, true)) {
    entry_.retire();
  }
}

inline void CompletionEvents::on_peer_gone() {
  if (!is_retired_) {
    entry_.count_again();
  }
}

}  // namespace ringbolt::device
