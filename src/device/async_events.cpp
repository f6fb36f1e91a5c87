#include "device/async_events.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.h"

namespace ringbolt::device {

AsyncEvents::AsyncEvents() : fd_(eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE)) {
  if (!fd_.is_open()) {
    throw base::Error(errno, "eventfd", "asynchronous events", "raise the limit of open files (ulimit -n)");
  }
}

void AsyncEvents::push(const ibv_async_event& event) {
  {
    const std::scoped_lock guard(mutex_);
    queue_.push_back(event);
  }
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(fd_.get(), &one, sizeof one);
}

int AsyncEvents::take(ibv_async_event& event) {
  for (;;) {
    uint64_t one = 0;
    if (read(fd_.get(), &one, sizeof one) != sizeof one) {
      return errno;
    }
    const std::scoped_lock guard(mutex_);
    if (!queue_.empty()) {  // empty: the event was forgotten between the write and here
      event = queue_.front();
      queue_.pop_front();
      return 0;
    }
  }
}

void AsyncEvents::forget(const void* element) {
  const std::scoped_lock guard(mutex_);
  std::erase_if(queue_, [&](const ibv_async_event& event) {
    const bool names_element = event.event_type <= IBV_EVENT_PATH_MIG_ERR || event.event_type == IBV_EVENT_SRQ_ERR ||
                               event.event_type == IBV_EVENT_SRQ_LIMIT_REACHED ||
                               event.event_type == IBV_EVENT_QP_LAST_WQE_REACHED;
    return names_element && event.element.qp == element;
  });
}

}  // namespace ringbolt::device
