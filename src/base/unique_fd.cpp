#include "base/unique_fd.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <atomic>
#include <cerrno>
#include <exception>

#include "base/error.h"
#include "base/say.h"

namespace ringbolt::base {
namespace {

int moved_above_standard(int fd) {
  const int flags = ::fcntl(fd, F_GETFD);
  // Keeps the close-on-exec flag, as fcntl() would not by itself.
  const int moved = ::fcntl(fd, (flags & FD_CLOEXEC) != 0 ? F_DUPFD_CLOEXEC : F_DUPFD, kFirstOwnFd);
  // Before close() changes it.
  const int error = errno == EINVAL ? EMFILE : errno;  // EINVAL: the limit is below kFirstOwnFd itself
  ::close(fd);
  if (moved < 0) {
    errno = error;
  }
  return moved;
}

}  // namespace

int own_unusual_fd(int fd) noexcept {
  const int owned = fd < 0 ? -1 : moved_above_standard(fd);
  if (owned < 0) {
    say_no_descriptor_is_left(errno);
  }
  return owned;
}

void say_no_descriptor_is_left(int errno_value) noexcept {
  static std::atomic<bool> is_said = false;
  if ((errno_value != EMFILE && errno_value != ENFILE) || is_said.exchange(true, std::memory_order_relaxed)) {
    return;
  }
  // say() goes through stdio, which may change it; callers look at it next.
  const int error = errno;
  try {
    say(fmt::format("ringbolt: no file descriptor is left: {}; until there is one, connections fail\n",
                    reason_of(errno_value)));
  } catch (const std::exception&) {
    say("ringbolt: neither a file descriptor nor memory is left\n");
  }
  errno = error;
}

}  // namespace ringbolt::base
