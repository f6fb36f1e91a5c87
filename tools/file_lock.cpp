#include "file_lock.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/error.h"
#include "failure.h"

namespace ringbolt::tools {

base::UniqueFd lock_file(const std::string& path) {
  constexpr uint64_t kPatienceNs = 10'000'000'000;
  base::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd.is_open()) {
    throw base::Error(errno, "open", path);
  }
  // flock() without LOCK_NB would wait for ever for a stopped holder.
  for (const uint64_t give_up = base::now_ns() + kPatienceNs; ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0;) {
    if (errno != EWOULDBLOCK && errno != EINTR) {
      throw base::Error(errno, "flock", path);
    }
    if (base::now_ns() > give_up) {
      throw UsageError(fmt::format("another ringbolt command has held {} for 10 s; end it, then try again", path));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return fd;
}

}  // namespace ringbolt::tools
