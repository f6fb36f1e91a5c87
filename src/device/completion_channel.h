#pragma once

#include <atomic>
#include <cstddef>
#include <vector>

#include "base/mutex.h"
#include "device/event_count.h"

namespace ringbolt::device {

class CompletionQueue;

/// Where armed completion queues announce themselves: a queue with a descriptor that is readable while it holds
/// something. One announcement per arming. Its constructor throws base::Error. Thread-safe.
class CompletionChannel {
 public:
  int descriptor() const { return count_.descriptor(); }

  /// One completion queue more, or less, announces itself here.
  void add_user() { users_.fetch_add(1, std::memory_order_relaxed); }
  void remove_user() { users_.fetch_sub(1, std::memory_order_relaxed); }
  /// Makes room for an announcement of every user, beside those that wait: each pushes once an arming, and calls this
  /// before. Throws std::bad_alloc.
  void make_room();
  void push(CompletionQueue* queue) noexcept;
  /// The oldest announcement. Blocks until there is one, unless the descriptor is non-blocking: then EAGAIN.
  /// `note` hears of it before a forget() of that queue can return, and must not call back.
  int take(CompletionQueue*& queue, void (*note)(CompletionQueue&));
  /// Drops the announcements of a queue that is being destroyed.
  void forget(const CompletionQueue* queue);

 private:
  EventCount count_{"completion channel"};  // of what is in queue_; every push is a fresh edge for epoll
  base::Mutex mutex_;
  std::vector<CompletionQueue*> queue_ RINGBOLT_GUARDED_BY(mutex_);
  std::atomic<size_t> users_{0};
};

}  // namespace ringbolt::device
