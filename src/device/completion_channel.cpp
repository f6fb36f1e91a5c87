#include "device/completion_channel.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.h"

namespace ringbolt::device {

CompletionChannel::CompletionChannel() : fd_(eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE)) {
  if (!fd_.is_open()) {
    throw base::Error(errno, "eventfd", "completion channel", "raise the limit of open files (ulimit -n)");
  }
}

void CompletionChannel::push(CompletionQueue* queue) {
  {
    const std::scoped_lock guard(mutex_);
    queue_.push_back(queue);
  }
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(fd_.get(), &one, sizeof one);
}

int CompletionChannel::take(CompletionQueue*& queue) {
  for (;;) {
    uint64_t one = 0;
    if (read(fd_.get(), &one, sizeof one) != sizeof one) {
      return errno;
    }
    const std::scoped_lock guard(mutex_);
    if (!queue_.empty()) {
      queue = queue_.front();
      queue_.pop_front();
      return 0;
    }
  }
}

void CompletionChannel::forget(const CompletionQueue* queue) {
  const std::scoped_lock guard(mutex_);
  std::erase(queue_, queue);
}

}  // namespace ringbolt::device
