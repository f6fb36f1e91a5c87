// Small text files below /sys, for programs that ask the verbs library to read them.

#include <fcntl.h>
#include <infiniband/verbs.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <string>

#include "base/c_border.h"
#include "base/unique_fd.h"

extern "C" {

/// Where sysfs is mounted: $SYSFS_PATH (ignored by set-user-id programs), else /sys. Never ends in '/'. Thread-safe.
const char* ibv_get_sysfs_path() try {
  // Read once: later changes of the environment are not seen, as in the stock library.
  static const std::string path = [] {
    const char* chosen = secure_getenv("SYSFS_PATH");
    std::string result = chosen != nullptr && *chosen != '\0' ? chosen : "/sys";
    while (result.size() > 1 && result.back() == '/') {
      result.pop_back();
    }
    return result;
  }();
  return path.c_str();
} catch (...) {
  return ringbolt::base::caught_null();
}

/// Reads `file` below `dir` into buf[size], without the newline at its end and with a 0 behind it where there is room.
/// Returns the length, or -1 with errno. Thread-safe.
int ibv_read_sysfs_file(const char* dir, const char* file, char* buf, size_t size) try {
  const std::string path = std::string(dir) + "/" + file;
  const ringbolt::base::UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.is_open()) {
    return -1;
  }
  // The answer is an int.
  const ssize_t got = read(fd.get(), buf, size < INT_MAX ? size : INT_MAX);
  if (got < 0) {
    return -1;
  }
  auto length = static_cast<size_t>(got);
  if (length > 0 && buf[length - 1] == '\n') {
    buf[--length] = '\0';
  } else if (length < size) {
    buf[length] = '\0';
  }
  return static_cast<int>(length);
} catch (...) {
  return ringbolt::base::caught_minus_one();
}

}  // extern "C"
