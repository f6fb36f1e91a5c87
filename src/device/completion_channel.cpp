#include "device/completion_channel.h"

#include "base/lock_guard.h"

namespace ringbolt::device {

void CompletionChannel::make_room() {
  const base::LockGuard guard(mutex_);
  const size_t wanted = queue_.size() + users_.load(std::memory_order_relaxed);
  if (wanted > queue_.capacity()) {
    queue_.reserve(2 * wanted);
  }
}

void CompletionChannel::push(CompletionQueue* queue) noexcept {
  {
    const base::LockGuard guard(mutex_);
    queue_.push_back(queue);
  }
  count_.add();
}

int CompletionChannel::take(CompletionQueue*& queue, void (*note)(CompletionQueue&)) {
  for (;;) {
    if (const int error = count_.take()) {
      return error;
    }
    const base::LockGuard guard(mutex_);
    if (!queue_.empty()) {
      queue = queue_.front();
      queue_.erase(queue_.begin());
      note(*queue);
      return 0;
    }
  }
}

void CompletionChannel::forget(const CompletionQueue* queue) {
  const base::LockGuard guard(mutex_);
  count_.take_back(std::erase(queue_, queue));
}

}  // namespace ringbolt::device
