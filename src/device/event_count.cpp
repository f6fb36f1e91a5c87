#include "device/event_count.h"

#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "base/error.h"

namespace ringbolt::device {

EventCount::EventCount(const char* object) : fd_(eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE)) {
  if (!fd_.is_open()) {
    throw base::Error(errno, "eventfd", object, "raise the limit of open files (ulimit -n)");
  }
}

void EventCount::add() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(fd_.get(), &one, sizeof one);
}

int EventCount::take() {
  uint64_t one = 0;
  return read(fd_.get(), &one, sizeof one) == sizeof one ? 0 : errno;
}

void EventCount::take_back(size_t count) {
  uint64_t one = 0;
  const iovec into{&one, sizeof one};
  // Whether the descriptor blocks is the program's choice, and nothing to change behind its back.
  while (count > 0 && preadv2(fd_.get(), &into, 1, -1, RWF_NOWAIT) == sizeof one) {
    --count;
  }
}

}  // namespace ringbolt::device
