#include "cluster/read_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <string_view>

#include <fmt/format.h>

#include "base/error.h"
#include "base/folder.h"
#include "base/unique_fd.h"

namespace ringbolt::cluster {

std::string read_file(const std::string& path, size_t most_bytes) {
  // O_NONBLOCK: a FIFO in the place of the file must not hang us.
  base::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.is_open()) {
    throw base::Error(errno, "open", path);
  }
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) {
    throw base::Error(errno, "fstat", path);
  }
  if (!S_ISREG(status.st_mode)) {
    throw base::Error(S_ISDIR(status.st_mode) ? EISDIR : EINVAL, "read", path, "give a regular file");
  }
  // st_size is not believed: the file may grow or shrink meanwhile, and /proc says 0.
  std::string bytes;
  // At most one step more than `most_bytes` is ever held.
  while (bytes.size() <= most_bytes) {
    constexpr size_t kStepBytes = 65536;
    const size_t had = bytes.size();
    bytes.resize(had + kStepBytes);
    const ssize_t got = ::read(fd.get(), bytes.data() + had, kStepBytes);
    if (got < 0 && errno != EINTR) {
      throw base::Error(errno, "read", path);
    }
    bytes.resize(had + static_cast<size_t>(got < 0 ? 0 : got));
    if (got == 0) {
      return bytes;
    }
  }
  throw base::Error(EFBIG, "read", path, fmt::format("it may hold {} bytes at most", most_bytes));
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  const int error = base::each_name_in(folder.c_str(), [&](std::string_view name) { names.emplace_back(name); });
  if (error != 0 && error != ENOENT) {
    throw base::Error(error, "list", folder);
  }
  std::sort(names.begin(), names.end());
  return names;
}

void write_new_file(const std::string& path, std::string_view bytes) {
  // O_EXCL: it replaces nothing and follows no link, and of two that make it at once one fails.
  base::UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd.is_open()) {
    throw base::Error(errno, "create", path);
  }
  while (!bytes.empty()) {
    const ssize_t put = ::write(fd.get(), bytes.data(), bytes.size());
    if (put < 0 && errno != EINTR) {
      const int error = errno;
      // Ours by O_EXCL, unless somebody has replaced it since: the folder is private.
      ::unlink(path.c_str());
      throw base::Error(error, "write", path, error == ENOSPC ? "make room on that file system" : "");
    }
    bytes.remove_prefix(static_cast<size_t>(put < 0 ? 0 : put));
  }
}

void replace_file(const std::string& path, std::string_view bytes) {
  const std::string fresh = path + ".new";
  ::unlink(fresh.c_str());  // of somebody who was interrupted
  write_new_file(fresh, bytes);
  if (::rename(fresh.c_str(), path.c_str()) != 0) {
    throw base::Error(errno, "rename to " + path, fresh);
  }
}

}  // namespace ringbolt::cluster
