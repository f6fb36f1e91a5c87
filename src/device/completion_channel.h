#pragma once

#include <deque>

#include "base/mutex.h"
#include "device/event_count.h"

namespace ringbolt::device {

class CompletionQueue;

/// Where armed completion queues announce themselves: a queue with a descriptor that is readable while it holds
/// something. One announcement per arming. Its constructor throws base::Error. Thread-safe.
class CompletionChannel {
 public:
  int descriptor() const { return count_.descriptor(); }

  void push(CompletionQueue* queue);
  /// The oldest announcement. Blocks until there is one, unless the descriptor is non-blocking: then EAGAIN.
  /// `note` hears of it before a forget() of that queue can return, and must not call back.
  int take(CompletionQueue*& queue, void (*note)(CompletionQueue&));
  /// Drops the announcements of a queue that is being destroyed.
  void forget(const CompletionQueue* queue);

 private:
  EventCount count_{"completion channel"};  // of what is in queue_; every push is a fresh edge for epoll
  base::Mutex mutex_;
  std::deque<CompletionQueue*> queue_;
};

}  // namespace ringbolt::device
