#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/mutex.h"
#include "device/event_count.h"

namespace ringbolt::device {

/// The asynchronous events of one context: a queue with a descriptor that is readable while it holds something.
/// Its constructor throws base::Error. Thread-safe.
/// Owned by its context. Its lock is a leaf, and push() may be called under any other: it makes one system call.
class AsyncEvents {
 public:
  AsyncEvents() { queue_.reserve(kRoom); }

  int descriptor() const { return count_.descriptor(); }

  /// What finds no room, where so many wait that more memory is needed and there is none, is lost, which is said once.
  void push(const ibv_async_event& event) noexcept;
  /// The same from `due_ns` on, and after those that are late already. RINGBOLT_SHUFFLE.
  void push_late(const ibv_async_event& event, uint64_t due_ns) noexcept;
  /// Those that are late are pushed when they are due. When the next one is; UINT64_MAX: there is none.
  uint64_t release_late(uint64_t now_ns) noexcept;
  /// The oldest event. Blocks until there is one, unless the descriptor is non-blocking: then EAGAIN. 0 or an errno.
  /// `note` hears of it before a forget() of its object can return, and must not call back.
  int take(ibv_async_event& event, void (*note)(ibv_async_event&));
  /// Drops the events not yet taken that name `element`: it is being destroyed.
  void forget(const void* element);

 private:
  static constexpr size_t kRoom = 256;  ///< events that need no memory

  EventCount count_{"asynchronous events"};  // of what is in queue_
  base::Mutex mutex_;
  std::vector<ibv_async_event> queue_ RINGBOLT_GUARDED_BY(mutex_);
  struct Late {
    ibv_async_event event;
    uint64_t due_ns;
  };
  std::vector<Late> late_ RINGBOLT_GUARDED_BY(mutex_);  // the next one first
};

}  // namespace ringbolt::device
