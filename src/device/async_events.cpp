#include "device/async_events.h"

#include <algorithm>
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

void AsyncEvents::push_late(const ibv_async_event& event, uint64_t due_ns) noexcept try {
  const base::LockGuard guard(mutex_);
  late_.push_back({event, late_.empty() ? due_ns : std::max(due_ns, late_.back().due_ns)});
} catch (const std::bad_alloc&) {
  push(event);
}

uint64_t AsyncEvents::release_late(uint64_t now_ns) noexcept {
  for (;;) {
    ibv_async_event event{};
    {
      const base::LockGuard guard(mutex_);
      if (late_.empty() || late_.front().due_ns > now_ns) {
        return late_.empty() ? UINT64_MAX : late_.front().due_ns;
      }
      event = late_.front().event;
      late_.erase(late_.begin());
    }
    push(event);
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
  const auto is_of_element = [&](const ibv_async_event& event) {
    const bool names_element = event.event_type <= IBV_EVENT_PATH_MIG_ERR || event.event_type == IBV_EVENT_SRQ_ERR ||
                               event.event_type == IBV_EVENT_SRQ_LIMIT_REACHED ||
                               event.event_type == IBV_EVENT_QP_LAST_WQE_REACHED;
    return names_element && event.element.qp == element;
  };
  std::erase_if(late_, [&](const Late& late) { return is_of_element(late.event); });
  count_.take_back(std::erase_if(queue_, is_of_element));
}

}  // namespace ringbolt::device
