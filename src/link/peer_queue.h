#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/unique_fd.h"
#include "link/wake_table.h"

namespace ringbolt::link {

/// A completion queue of a peer's, as who has something for it sees it. The memory and the descriptor stay open as long
/// as this does: who makes it sees to the first. Copies are cheap enough for once a connection. Thread-safe.
/// It may outlive the peer: the table stays mapped, and nobody is woken then.
class PeerQueue {
 public:
  /// Nobody's: never looks at anything.
  PeerQueue() = default;
  /// `channel`: the descriptor that its program sleeps on; null where that could not be had.
  PeerQueue(WakeMemory& memory, WakeName name, std::shared_ptr<const base::UniqueFd> channel)
      : memory_(&memory), queue_(&memory.queues[name.index % kWakeQueues]), name_(name), channel_(std::move(channel)) {}

  /// Hot path: 0 while it looks at all its queue pairs and was never armed: there is nothing to do then. After a fence
  /// that orders what was published before; a light one is enough, for who changes it makes a heavy one.
  uint32_t mode() const { return queue_->mode.load(std::memory_order_relaxed); }
  /// With that mode: marks the queue pair that has a place in it, if that is wanted. A full fence in any case. Whether
  /// it is the busy one is asked again behind it: the owner makes one, too, between striking that and a look at it, so
  /// that either this finds it struck, and marks, or the owner sees what was published.
  void mark(uint32_t mode, uint32_t place) const {
    const uint32_t set = mode >> kWakeSetShift;
    const bool has_set = set != 0 && set <= kWakeSets;
    if (!has_set || is_busy(place)) {
      std::atomic_thread_fence(std::memory_order_seq_cst);
      if (!has_set || is_busy(place)) {
        return;
      }
    }
    memory_->sets[set - 1].mark(place);
  }
  /// What it waits for; nothing when it was rung already, or is another queue by now. After a full fence.
  Notify wish() const {
    const uint32_t notify = queue_->notify.load(std::memory_order_relaxed);
    return notify >> kNotifyBits == name_.generation && is_armed(notify_of(notify)) ? notify_of(notify)
                                                                                    : Notify::nothing;
  }
  /// Wakes its program, if it still waits: who comes first does. False: it waits, and its descriptor can't be reached
  /// from here. A system call.
  bool ring() const;
  /// Its service thread shall look at it, once that is woken: Peer::ring(). A full fence, see MarkSet::mark().
  void mark_for_service() const {
    if (memory_ != nullptr) {
      memory_->service.mark(name_.index % kMarks);
    }
  }

 private:
  bool is_busy(uint32_t place) const { return queue_->busy.load(std::memory_order_relaxed) == place + 1; }

  static WakeQueue nobody_;

  WakeMemory* memory_ = nullptr;
  WakeQueue* queue_ = &nobody_;
  WakeName name_;
  std::shared_ptr<const base::UniqueFd> channel_;
};

}  // namespace ringbolt::link
