#include "base/unique_fd.h"

#include <fcntl.h>

#include <cerrno>

namespace ringbolt::base {

int move_above_standard(int fd) noexcept {
  const int flags = ::fcntl(fd, F_GETFD);
  const int moved = ::fcntl(fd, (flags & FD_CLOEXEC) != 0 ? F_DUPFD_CLOEXEC : F_DUPFD, kFirstOwnFd);
  const int error = errno;
  ::close(fd);
  errno = error;
  return moved;
}

}  // namespace ringbolt::base
