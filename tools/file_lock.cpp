#include "file_lock.h"

#include <fcntl.h>

#include <cerrno>

#include <fmt/format.h>

#include "base/error.h"
#include "base/file_turn.h"
#include "failure.h"
#include "progress_line.h"

namespace ringbolt::tools {

base::UniqueFd lock_file(const std::string& path) {
  constexpr uint64_t kPatienceMs = 10'000;
  base::UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd.is_open()) {
    throw base::Error(errno, "open", path);
  }
  const Waiting waiting(fmt::format("another ringbolt command holds {}", path));
  const int error = base::take_file_turn(fd.get(), kPatienceMs);
  if (error == EWOULDBLOCK) {
    throw UsageError(fmt::format("another ringbolt command has held {} for 10 s; end it, then try again", path));
  }
  if (error != 0) {
    throw base::Error(error, "lock", path);
  }
  return fd;
}

}  // namespace ringbolt::tools
