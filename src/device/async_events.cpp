#include "device/async_events.h"

#include "base/lock_guard.h"

namespace ringbolt::device {

void AsyncEvents::push(const ibv_async_event& event) {
  {
    const base::LockGuard guard(mutex_);
    queue_.push_back(event);
  }
  count_.add();
}

int AsyncEvents::take(ibv_async_event& event, void (*note)(ibv_async_event&)) {
  for (;;) {
    if (const int error = count_.take()) {
      return error;
    }
    const base::LockGuard guard(mutex_);
    if (!queue_.empty()) {  // empty: the event was forgotten between the write and here
      event = queue_.front();
      queue_.pop_front();
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
