#include "enter_namespace.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>

namespace ringbolt::tools {

const char* enter_namespace(const char* path) {
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return "open the network namespace";
  }
  const int entered = ::setns(fd, CLONE_NEWNET);
  const int refused = errno;
  ::close(fd);
  if (entered != 0) {
    errno = refused;
    return "setns";
  }
  // /sys/class/net shows the namespace of whoever mounted it. The mount is for this process and its children only.
  if (::unshare(CLONE_NEWNS) != 0) {
    return "unshare";
  }
  if (::mount("", "/", nullptr, MS_SLAVE | MS_REC, nullptr) != 0) {
    return "make mounts private";
  }
  ::umount2("/sys", MNT_DETACH);  // whether it was a mount or not
  return ::mount("ringbolt", "/sys", "sysfs", 0, nullptr) == 0 ? nullptr : "mount /sys";
}

}  // namespace ringbolt::tools
