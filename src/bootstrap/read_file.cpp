#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include <fmt/format.h>

#include "base/error.h"
#include "base/unique_fd.h"
#include "bootstrap/environment.h"
#include "bootstrap/jaccl_devices.h"

// POSIX (environ(7)); no header declares it without _GNU_SOURCE.
extern char** environ;

namespace ringbolt::bootstrap {

Environment environment_of_process() {
  Environment environment;
  for (char** each = environ; each != nullptr && *each != nullptr; ++each) {
    const std::string_view line(*each);
    const size_t equals = line.find('=');
    if (equals != std::string_view::npos) {
      environment.emplace(line.substr(0, equals), line.substr(equals + 1));
    }
  }
  return environment;
}

std::string read_file(const std::string& path, bool is_secret) {
  // Longer ones are another file by mistake.
  constexpr size_t kMaxSecretBytes = 4096;
  const size_t most_bytes = is_secret ? kMaxSecretBytes : kMaxMlxFileBytes;
  // O_NONBLOCK: a FIFO in the place of the file must not hang us.
  const base::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (!fd.is_open() || ::fstat(fd.get(), &status) != 0) {
    throw base::Error(errno, "open", path);
  }
  if (!S_ISREG(status.st_mode)) {
    throw base::Error(S_ISDIR(status.st_mode) ? EISDIR : EINVAL, "read", path, "give a regular file");
  }
  // Of the open file, so that it can't be another one by the time it is read.
  if (is_secret && (status.st_mode & (S_IRWXO)) != 0) {
    throw base::Error(EACCES, fmt::format("keep the secret: the file has mode {:04o}", status.st_mode & 07777), path,
                      "everybody may use it: chmod 600");
  }
  // One more than allowed tells a file that is too long.
  std::string text(most_bytes + 1, '\0');
  size_t length = 0;
  while (length < text.size()) {
    const ssize_t got = ::read(fd.get(), text.data() + length, text.size() - length);
    if (got < 0 && errno != EINTR) {
      throw base::Error(errno, "read", path);
    }
    if (got == 0) {
      break;
    }
    length += static_cast<size_t>(got < 0 ? 0 : got);
  }
  if (length > most_bytes) {
    throw base::Error(EFBIG, "read", path, fmt::format("it may hold {} bytes at most", most_bytes));
  }
  text.resize(length);
  if (is_secret) {
    // One line end of either kind: editors append it.
    for (const char end : {'\n', '\r'}) {
      if (!text.empty() && text.back() == end) {
        text.pop_back();
      }
    }
    if (text.empty()) {
      throw base::Error(EINVAL, "read the secret", path, "the file is empty");
    }
  }
  return text;
}

}  // namespace ringbolt::bootstrap
