#pragma once

#include <infiniband/verbs.h>

#include <deque>
#include <mutex>

#include "base/unique_fd.h"

namespace ringbolt::device {

/// The asynchronous events of one context: a queue with a descriptor that is readable while it holds something.
/// Thread-safe.
class AsyncEvents {
 public:
  AsyncEvents();  ///< throws base::Error
  int descriptor() const { return fd_.get(); }

  void push(const ibv_async_event& event);
  /// The oldest event. Blocks until there is one, unless the descriptor is non-blocking: then EAGAIN. 0 or an errno.
  int take(ibv_async_event& event);
  /// Drops the events not yet taken that name `element`: it is being destroyed.
  void forget(const void* element);

 private:
  base::UniqueFd fd_;  // an eventfd that counts the events in queue_
  std::mutex mutex_;
  std::deque<ibv_async_event> queue_;
};

}  // namespace ringbolt::device
