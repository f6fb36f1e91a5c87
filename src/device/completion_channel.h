#pragma once

#include <deque>
#include <mutex>

#include "base/unique_fd.h"

namespace ringbolt::device {

class CompletionQueue;

/// Where armed completion queues announce themselves: a queue with a descriptor that is readable while it holds
/// something. One announcement per arming. Thread-safe.
class CompletionChannel {
 public:
  CompletionChannel();  ///< throws base::Error
  int descriptor() const { return fd_.get(); }

  void push(CompletionQueue* queue);
  /// The oldest announcement. Blocks until there is one, unless the descriptor is non-blocking: then EAGAIN.
  int take(CompletionQueue*& queue);
  /// Drops the announcements of a queue that is being destroyed.
  void forget(const CompletionQueue* queue);

 private:
  base::UniqueFd fd_;  // an eventfd; every push is a fresh edge for epoll
  std::mutex mutex_;
  std::deque<CompletionQueue*> queue_;
};

}  // namespace ringbolt::device
