#include "agent/roster.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <string_view>

#include <fmt/format.h>

#include "base/error.h"
#include "cluster/read_file.h"
#include "fabric/relaying.h"
#include "failure.h"
#include "fault_file.h"

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
struct flock whole_file() {
  struct flock lock {};
  lock.l_type = F_WRLCK;
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

/// The cables that are neither cut nor pulled out by a fault.
fabric::Graph cabling_of(const LiveCluster& live) {
  const std::vector<bool> is_dead = dead_cables(live);
  fabric::Graph up{static_cast<uint32_t>(live.model.nodes.size()), {}};
  for (uint32_t i = 0; i < live.model.cables.size(); ++i) {
    const cluster::Cable& cable = live.model.cables[i];
    if (cable.a.node != cable.b.node && live.control.cable_up(i) && !is_dead[i]) {
      fabric::join(up, cable.a.node, cable.b.node);
    }
  }
  return up;
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
    throw UsageError(fmt::format("node {} of cluster \"{}\" has an agent already{}", node, cluster_,
                                 find(node) ? fmt::format(" (pid {})", *find(node)) : ""));
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
  if (whole.l_type == F_UNLCK) {
    return std::nullopt;  // nobody holds it
  }
  const std::string text = cluster::read_file(path, 32);
  const char* const end = text.data() + text.size();
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

bool is_forgotten(const Roster::Entry& entry) {
  struct stat file {};
  return ::fstat(entry.lock.get(), &file) == 0 && file.st_nlink == 0;
}

bool Watch::runs(uint32_t node, const Roster::Agent& agent, uint64_t now_ns) {
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
    seen = {agent.pid, sight->switches, now_ns, 0};
  } else if (seen.switches != sight->switches) {
    seen.moved_ns = now_ns;
  }
  seen.switches = sight->switches;
  seen.looked_ns = now_ns;
  return seen.moved_ns != 0 && now_ns - seen.moved_ns < kStillNs;
}

bool can_be_group(const fabric::Graph& cabling) {
  const fabric::Distances distances = fabric::distances(cabling);
  return distances.is_connected && distances.diameter <= fabric::kMostHopsOfGroup;
}

bool can_all_meet(const LiveCluster& live, const Roster& roster, Watch& watch, uint64_t now_ns) {
  live.control.refresh();
  bool do_all_run = true;  // all are looked at: who moves is told by two looks
  for (uint32_t node = 0; node < live.model.nodes.size(); ++node) {
    const std::optional<Roster::Agent> agent = roster.look(node);
    do_all_run = agent && watch.runs(node, *agent, now_ns) && do_all_run;
  }
  return do_all_run && can_be_group(cabling_of(live));
}

Absence::Absence(const LiveCluster& live, const Roster& roster, uint32_t meeting)
    : live_(live), roster_(roster), meeting_(meeting) {
  live_.control.refresh();
  generation_ = live_.control.generation();
}

bool Absence::would_come(uint32_t node, Lost& lost, uint64_t now_ns) {
  const std::optional<Roster::Agent> agent = roster_.look(node);
  if (!agent) {
    return false;
  }
  if (agent->meeting != meeting_) {  // another process, or it has left the meeting to have a new one
    lost.is_changed = true;
    return true;
  }
  lost.is_changed = lost.is_changed || lost.generation != live_.control.generation();
  return watch_.runs(node, *agent, now_ns);
}

bool Absence::is_over(const std::map<uint32_t, Status>& failed, uint64_t now_ns) {
  live_.control.refresh();
  bool would_all_come = true;
  bool has_changed = false;
  for (const auto& [node, status] : failed) {
    // Whose silence was the reason has stood still: it is back as soon as it moves.
    Lost& lost = lost_.try_emplace(node, Lost{generation_, status.code == EHOSTDOWN}).first->second;
    would_all_come = would_come(node, lost, now_ns) && would_all_come;
    has_changed = has_changed || lost.is_changed;
  }
  generation_ = live_.control.generation();
  return has_changed && would_all_come && can_all_meet(live_, roster_, watch_, now_ns);
}

}  // namespace ringbolt::tools::agent
