#include "agent/roster.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <string_view>

#include <fmt/format.h>

#include "base/error.h"
#include "cluster/read_file.h"
#include "failure.h"

namespace ringbolt::tools::agent {
namespace {

constexpr const char* kWaits = "--------";    // as wide as a meeting's number
constexpr uint64_t kStillNs = 2'000'000'000;  // agents that run look around every half second
constexpr size_t kStatusBytes = size_t{1} << 16U;

/// Of the same length always: written over while others read, it is never half a number.
std::string line_of(pid_t pid, std::optional<uint32_t> meeting) {
  return fmt::format("{} {}\n", pid, meeting ? fmt::format("{:08x}", *meeting) : kWaits);
}

/// Of an agent, for as long as it has the file open.
/// A length of 0 is to the end, wherever that comes to be (fcntl(2)).
struct flock whole_file(short type = F_WRLCK) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  return lock;
}

/// How the kernel sees a process.
struct Sight {
  bool is_stopped = false;  ///< by a signal or a debugger
  uint64_t switches = 0;    ///< how often it has gone to sleep; grows for as long as it runs, whoever has stopped it
};

std::optional<Sight> sight_of(pid_t pid) {
  constexpr std::string_view kState = "\nState:";
  constexpr std::string_view kSwitches = "\nvoluntary_ctxt_switches:";
  try {
    const std::string text = cluster::read_file(fmt::format("/proc/{}/status", pid), kStatusBytes);
    const size_t state = text.find(kState);
    const size_t at = text.find(kSwitches);
    const size_t letter = state == std::string::npos ? state : text.find_first_not_of("\t ", state + kState.size());
    const size_t begin = at == std::string::npos ? at : text.find_first_of("0123456789", at);
    Sight sight;
    if (letter != std::string::npos && begin != std::string::npos &&
        std::from_chars(text.data() + begin, text.data() + text.size(), sight.switches).ec == std::errc{}) {
      sight.is_stopped = text[letter] == 'T' || text[letter] == 't';
      return sight;
    }
  } catch (const base::Error&) {
  }
  return std::nullopt;
}

}  // namespace

std::string Roster::file(uint32_t node, const char* suffix) const {
  return fmt::format("{}/agent-{}.{}", dir_.cluster(cluster_), node, suffix);
}

Roster::Entry Roster::enter(uint32_t node) const {
  const std::string path = file(node, "pid");
  base::UniqueFd lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock.is_open()) {
    throw base::Error(errno, "open", path);
  }
  struct flock whole = whole_file();
  if (::fcntl(lock.get(), F_OFD_SETLK, &whole) != 0) {
    if (errno != EAGAIN && errno != EACCES) {
      throw base::Error(errno, "lock", path);
    }
    const std::optional<pid_t> other = find(node);  // asked once: it may end between two looks
    throw UsageError(fmt::format("node {} of cluster \"{}\" has an agent already{}", node, cluster_,
                                 other ? fmt::format(" (pid {})", *other) : ""));
  }
  const std::string text = line_of(::getpid(), std::nullopt);
  // What a longer one has left goes afterwards: only a file that was just made is ever found empty.
  if (::pwrite(lock.get(), text.data(), text.size(), 0) < 0 ||
      ::ftruncate(lock.get(), static_cast<off_t>(text.size())) != 0) {
    throw base::Error(errno, "write", path);
  }
  return {std::move(lock)};
}

void Roster::set_meeting(const Entry& entry, std::optional<uint32_t> meeting) const {
  const std::string text = line_of(::getpid(), meeting);
  if (::pwrite(entry.lock.get(), text.data(), text.size(), 0) < 0) {
    throw base::Error(errno, "write", dir_.cluster(cluster_));
  }
}

std::optional<Roster::Agent> Roster::look(uint32_t node) const {
  const std::string path = file(node, "pid");
  const base::UniqueFd lock(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!lock.is_open()) {
    if (errno != ENOENT) {
      throw base::Error(errno, "open", path);
    }
    return std::nullopt;
  }
  struct flock whole = whole_file();  // asked for and not taken, which would be in the way of an agent that starts
  if (::fcntl(lock.get(), F_OFD_GETLK, &whole) != 0) {
    throw base::Error(errno, "fcntl", path);
  }
  // The kernel writes that where nobody is in the way.
  if (whole.l_type == F_UNLCK) {
    return std::nullopt;  // nobody holds it
  }
  // By the descriptor at hand: somebody may take the cluster's folder away at this moment.
  std::array<char, 32> text{};
  const ssize_t length = ::pread(lock.get(), text.data(), text.size(), 0);
  if (length < 0) {
    throw base::Error(errno, "read", path);
  }
  const char* const end = text.data() + length;
  Agent agent;
  const auto pid = std::from_chars(text.data(), end, agent.pid);
  if (pid.ec != std::errc{} || agent.pid <= 0) {
    return std::nullopt;
  }
  uint32_t meeting = 0;
  if (pid.ptr != end && std::from_chars(pid.ptr + 1, end, meeting, 16).ec == std::errc{}) {
    agent.meeting = meeting;
  }
  return agent;
}

std::optional<pid_t> Roster::find(uint32_t node) const {
  const std::optional<Agent> agent = look(node);
  return agent ? std::optional(agent->pid) : std::nullopt;
}

base::UniqueFd Roster::begin_starting() const {
  const std::string path = dir_.cluster(cluster_) + "/agents.starting";
  base::UniqueFd lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  struct flock whole = whole_file(F_RDLCK);  // several may at the same time
  if (!lock.is_open() || ::fcntl(lock.get(), F_OFD_SETLK, &whole) != 0) {
    throw base::Error(errno, "lock", path);
  }
  return lock;
}

bool Roster::is_starting() const {
  const base::UniqueFd lock(::open((dir_.cluster(cluster_) + "/agents.starting").c_str(), O_RDONLY | O_CLOEXEC));
  struct flock whole = whole_file();
  return lock.is_open() && ::fcntl(lock.get(), F_OFD_GETLK, &whole) == 0 && whole.l_type != F_UNLCK;
}

bool is_forgotten(const Roster::Entry& entry) {
  struct stat file {};
  return ::fstat(entry.lock.get(), &file) == 0 && file.st_nlink == 0;
}

bool is_stopped(const Roster::Agent& agent) {
  const std::optional<Sight> sight = sight_of(agent.pid);
  return sight && sight->is_stopped;
}

std::optional<bool> Watch::runs(uint32_t node, const Roster::Agent& agent, uint64_t now_ns) {
  const std::optional<Sight> sight = sight_of(agent.pid);
  if (!sight) {
    return true;  // it holds its lock, and nobody can tell more
  }
  if (sight->is_stopped) {
    return false;
  }
  if (!agent.meeting) {
    return true;  // it may sleep for long while it waits for the others
  }
  Seen& seen = seen_[node];
  if (seen.pid != agent.pid || now_ns - seen.looked_ns >= kStillNs) {
    seen = {agent.pid, sight->switches, now_ns, now_ns, 0};
  } else if (seen.switches != sight->switches) {
    seen.moved_ns = now_ns;
  }
  seen.switches = sight->switches;
  seen.looked_ns = now_ns;
  if (seen.moved_ns != 0) {
    return now_ns - seen.moved_ns < kStillNs;
  }
  return now_ns - seen.since_ns < kStillNs ? std::nullopt : std::optional(false);
}

}  // namespace ringbolt::tools::agent
