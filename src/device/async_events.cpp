#include "device/async_events.h"

#include <atomic>
#include <new>

#include "base/lock_guard.h"
#include "base/say.h"

namespace ringbolt::device {

void AsyncEvents::push(const ibv_async_event& event) noexcept try {
  {
    const base::LockGuard guard(mutex_);
    queue_.push_back(event);
  }
  count_.add();
} catch (const std::bad_alloc&) {
  static std::atomic<bool> is_said{false};
  if (!is_said.exchange(true)) {
    base::say(
        "ringbolt: out of memory: an asynchronous event is lost; the program should read them (ibv_get_async_event)\n");
  }
}

int AsyncEvents::take(ibv_async_event& event, void (*note)(ibv_async_event&)) {
  for (;;) {
    if (const int error = count_.take()) {
      return error;
    }
    const base::LockGuard guard(mutex_);
    if (!queue_.empty()) {  // empty: the event was forgotten between the write and here
      event = queue_.front();
      queue_.erase(queue_.begin());
      note(event);
      return 0;
    }
  }
}

void AsyncEvents::forget(const void* element) {
  const base::LockGuard guard(mutex_);
  const size_t dropped = std::erase_if(queue_, [&](const ibv_async_event& event) {
    const bool names_element = event.event_type <= IBV_EVENT_PATH_MIG_ERR || event.event_type == IBV_EVENT_SRQ_ERR ||
                               event.event_type == IBV_EVENT_SRQ_LIMIT_REACHED ||
                               event.event_type == IBV_EVENT_QP_LAST_WQE_REACHED;
    return names_element && event.element.qp == element;
  });
  count_.take_back(dropped);
}

}  // namespace ringbolt::device
