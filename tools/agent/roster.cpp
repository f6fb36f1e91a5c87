#include "agent/roster.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>

#include <fmt/format.h>

#include "base/error.h"
#include "cluster/read_file.h"
#include "failure.h"

namespace ringbolt::tools::agent {

std::string Roster::file(uint32_t node, const char* suffix) const {
  return fmt::format("{}/agent-{}.{}", dir_.cluster(cluster_), node, suffix);
}

Roster::Entry Roster::enter(uint32_t node) const {
  const std::string path = file(node, "pid");
  base::UniqueFd lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock.is_open()) {
    throw base::Error(errno, "open", path);
  }
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    throw UsageError(fmt::format("node {} of cluster \"{}\" has an agent already{}", node, cluster_,
                                 find(node) ? fmt::format(" (pid {})", *find(node)) : ""));
  }
  const std::string text = fmt::format("{}\n", ::getpid());
  if (::ftruncate(lock.get(), 0) != 0 || ::pwrite(lock.get(), text.data(), text.size(), 0) < 0) {
    throw base::Error(errno, "write", path);
  }
  return {std::move(lock)};
}

std::optional<pid_t> Roster::find(uint32_t node) const {
  const std::string path = file(node, "pid");
  const base::UniqueFd lock(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!lock.is_open() || ::flock(lock.get(), LOCK_SH | LOCK_NB) == 0) {
    return std::nullopt;  // nobody holds it
  }
  const std::string text = cluster::read_file(path, 32);
  pid_t pid = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), pid);
  return error == std::errc{} && pid > 0 ? std::optional(pid) : std::nullopt;
}

}  // namespace ringbolt::tools::agent
