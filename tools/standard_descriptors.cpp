#include "standard_descriptors.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

namespace ringbolt::tools {
namespace {

constexpr const char* kNull = "/dev/null";

int useless_mode(int fd) { return fd == STDOUT_FILENO ? O_RDONLY : O_WRONLY; }

bool is_null(int fd) {
  struct stat status {};
  return ::fstat(fd, &status) == 0 && S_ISCHR(status.st_mode) && status.st_rdev == makedev(1, 3);
}

}  // namespace

void open_standard_descriptors() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    // In this order the lowest free number is `fd`.
    if (::fcntl(fd, F_GETFD) < 0 && ::open(kNull, useless_mode(fd)) < 0) {
      (void)::open("/", O_PATH);  // no /dev: whatever this is, it can be neither read nor written
    }
  }
}

void mend_standard_descriptors() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO}) {
    if (is_null(fd) && (::fcntl(fd, F_GETFL) & O_ACCMODE) == useless_mode(fd)) {
      if (const int null = ::open(kNull, O_RDWR | O_CLOEXEC); null >= 0) {
        ::dup2(null, fd);
        ::close(null);
      }
    }
  }
}

}  // namespace ringbolt::tools
