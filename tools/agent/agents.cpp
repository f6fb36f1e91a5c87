#include "agent/agents.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "agent/attendance.h"
#include "agent/roster.h"
#include "base/clock.h"
#include "base/errno_name.h"
#include "base/error.h"
#include "base/process_descriptor.h"
#include "bootstrap/environment.h"
#include "child_process.h"
#include "cluster/limits.h"
#include "cluster/read_file.h"
#include "failure.h"
#include "namespaces.h"
#include "node_environment.h"
#include "progress_line.h"
#include "ranks/start.h"

namespace ringbolt::tools::agent {
namespace {

constexpr uint64_t kMillisecond = 1'000'000;
constexpr uint64_t kMeetingNs = 65'000 * kMillisecond;  // longer than the agents wait for each other
// For all together; then as long for each that is killed.
constexpr int kPoliteMs = 3'000;

struct Starting {
  uint32_t node = 0;
  base::UniqueFd ready;
  base::UniqueFd process;
  pid_t pid = 0;
  std::string said = {};     ///< by it: kHere once it has entered the roster, kReady once it serves
  bool is_anothers = false;  ///< somebody else was faster: that node has an agent
  off_t log_bytes = 0;       ///< of its log before it began: what earlier agents of the node have written

  bool has_said(std::string_view word) const { return said.find(word) != std::string::npos; }
};

/// A profile that the user tries belongs to programs; the agent's cables are what the cluster says. And where a
/// launcher has its ranks meet is none of the agents' business (their ranks are set in plan_of()).
bool is_of_programs(const std::string& variable) {
  constexpr auto kNames = std::to_array<std::string_view>(
      {"RINGBOLT_LIKE", "RINGBOLT_FAULTS", "RINGBOLT_GROUP_PORT", "RINGBOLT_SECRET", "RINGBOLT_SECRET_FILE",
       "RINGBOLT_COORDINATOR", "RINGBOLT_BIND", "RINGBOLT_GROUP", "RINGBOLT_JOIN_TIMEOUT_MS"});
  const std::string_view name = std::string_view(variable).substr(0, variable.find('='));
  return bootstrap::is_of_launcher(name) || std::ranges::find(kNames, name) != kNames.end();
}

/// In the child; only async-signal-safe calls.
/// All memory that it looks at was made before the fork: another thread may have held the allocator's lock (fork(2)).
[[noreturn]] void become(char* const* command, char* const* environment, const char* netns, const char* log,
                         int ready) {
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  const pid_t own = ::getpid();
  (void)!::write(ready, &own, sizeof own);
  const int null = ::open("/dev/null", O_RDONLY);
  const int out = ::open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
  ::dup2(null, 0);
  ::dup2(out, 1);
  ::dup2(out, 2);
  (void)::fcntl(ready, F_SETFD, 0);
  const char* call = *netns == '\0' ? nullptr : enter_namespace(netns);
  if (call == nullptr) {
    ::execve(command[0], command, environment);
    call = "execve";
  }
  const char* why = base::errno_name(errno);
  for (const char* text : {call, ": ", why == nullptr ? "?" : why, "\n"}) {
    (void)!::write(2, text, std::strlen(text));
  }
  ::_exit(127);
}

Starting start(const LiveCluster& live, uint32_t node) {
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) {
    throw base::Error(errno, "pipe2", "agent", "raise the limit of open files: ulimit -n");
  }
  Starting starting{node, base::UniqueFd(pipe[0]), {}};
  base::UniqueFd ready(pipe[1]);
  const NodeEnvironment changes = node_environment(live, node);
  std::vector<std::string> environment = merged_environment(changes);
  std::erase_if(environment, is_of_programs);
  std::vector<std::string> command{own_prefix() + "/bin/ringbolt",
                                   "agent",
                                   "--cluster",
                                   live.model.name,
                                   "--node",
                                   std::to_string(node),
                                   "--ready-fd",
                                   std::to_string(ready.get())};
  const std::vector<char*> arguments = pointers_to(command);
  const std::vector<char*> variables = pointers_to(environment);
  const std::string log = Roster(live.dir, live.model.name).log_file(node);
  struct stat before {};
  starting.log_bytes = ::stat(log.c_str(), &before) == 0 ? before.st_size : 0;
  // Twice: the agent is nobody's child, and leaves no zombie.
  const pid_t child = ::fork();
  if (child < 0) {
    throw base::Error(errno, "fork", "agent", "raise the limit of processes: ulimit -u");
  }
  if (child == 0) {
    ::setsid();
    if (::fork() != 0) {
      ::_exit(0);
    }
    become(arguments.data(), variables.data(), changes.netns.c_str(), log.c_str(), ready.get());
  }
  // The first child, which ends at once.
  ::waitpid(child, nullptr, 0);
  // Ours: when the agent ends, too, the other end reads 0 bytes.
  ready.reset();
  const ssize_t length = ::read(starting.ready.get(), &starting.pid, sizeof starting.pid);
  if (length != sizeof starting.pid) {
    throw base::Error(length < 0 ? errno : EAGAIN, "fork", "agent", "raise the limit of processes: ulimit -u");
  }
  // A descriptor of the process, since its number may be given again (pidfd_open(2)).
  starting.process = base::open_process(starting.pid);
  return starting;
}

/// Waits until all have said `word`; one whose agent has ended, or is late, or that a signal keeps us from waiting for;
/// null: none.
const Starting* first_silent(std::string_view word, const Roster& roster, std::vector<Starting>& all, int signals) {
  const uint64_t deadline_ns = base::now_ns() + kMeetingNs;
  Waiting waiting("");
  for (Starting& one : all) {
    waiting.show(fmt::format("{}: {} of {}", word == kHere ? "starting agents" : "waiting for agents to meet",
                             &one - all.data(), all.size()));
    while (!one.has_said(word) && !one.is_anothers) {
      const uint64_t now_ns = base::now_ns();
      std::array<pollfd, 2> readable{{{one.ready.get(), POLLIN, 0}, {signals, POLLIN, 0}}};
      if (now_ns >= deadline_ns ||
          ::poll(readable.data(), readable.size(), static_cast<int>((deadline_ns - now_ns) / kMillisecond)) <= 0 ||
          readable[1].revents != 0) {
        return &one;
      }
      std::array<char, 16> text{};
      const ssize_t length = ::read(one.ready.get(), text.data(), text.size());
      if (length > 0) {
        one.said.append(text.data(), static_cast<size_t>(length));
        continue;
      }
      const std::optional<pid_t> other = roster.find(one.node);
      one.is_anothers = other && *other != one.pid;
      if (!one.is_anothers) {
        return &one;
      }
    }
  }
  return nullptr;
}

/// Starts an agent on every node that has none. Until all have entered the roster, none calls the others: they shall
/// all be called. One that did not, or null.
const Starting* start_all(const LiveCluster& live, const Roster& roster, std::vector<Starting>& all, int signals) {
  const base::UniqueFd starting = roster.begin_starting();
  for (uint32_t node = 0; node < live.model.nodes.size(); ++node) {
    if (!roster.find(node)) {
      all.push_back(start(live, node));
    }
  }
  return first_silent(kHere, roster, all, signals);
}

/// Politely, then with SIGKILL.
void end_all(const std::vector<base::UniqueFd>& processes) {
  for (const base::UniqueFd& process : processes) {
    (void)base::signal_process(process.get(), SIGTERM);
    (void)base::signal_process(process.get(), SIGCONT);  // or one that is stopped takes no notice
  }
  const uint64_t deadline_ns = base::now_ns() + kPoliteMs * kMillisecond;
  for (const base::UniqueFd& process : processes) {
    const uint64_t now_ns = base::now_ns();
    pollfd ended{process.get(), POLLIN, 0};
    if (::poll(&ended, 1, now_ns < deadline_ns ? static_cast<int>((deadline_ns - now_ns) / kMillisecond) : 0) <= 0) {
      (void)base::signal_process(process.get(), SIGKILL);
      (void)::poll(&ended, 1, kPoliteMs);
    }
  }
}

/// The last line that it has written itself; or that there is none, and where it would be.
std::string last_words(const LiveCluster& live, const Starting& one) {
  constexpr off_t kMostBytes = 4096;  // of the end of the log, which grows for as long as the cluster stands
  const std::string path = Roster(live.dir, live.model.name).log_file(one.node);
  const base::UniqueFd log(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat now {};
  std::string text(kMostBytes, '\0');
  ssize_t length = -1;
  if (log.is_open() && ::fstat(log.get(), &now) == 0) {
    length = ::pread(log.get(), text.data(), text.size(), std::max(one.log_bytes, now.st_size - kMostBytes));
  }
  if (length < 0) {
    return fmt::format("{}: {}", path, base::reason_of(errno));
  }
  text.resize(static_cast<size_t>(length));
  text.resize(text.find_last_not_of('\n') + 1);  // npos + 1 is 0
  return text.empty() ? fmt::format("it has written nothing to {}", path) : text.substr(text.rfind('\n') + 1);
}

}  // namespace

std::string secret_file(const LiveCluster& live) {
  std::string path = live.dir.cluster(live.model.name) + "/agents.secret";
  const base::UniqueFd lock = lock_clusters(live.dir);  // others may make it, too
  if (::access(path.c_str(), F_OK) != 0) {
    cluster::write_new_file(path, ranks::random_secret() + "\n");
  }
  return path;
}

size_t start_agents(const LiveCluster& live, const HeldSignals& signals) {
  const Roster roster(live.dir, live.model.name);
  std::vector<Starting> all;
  const auto end_started = [&all] {  // not those that others have started meanwhile
    std::vector<base::UniqueFd> started;
    for (Starting& one : all) {
      if (one.process.is_open()) {
        started.push_back(std::move(one.process));
      }
    }
    end_all(started);
  };
  const Starting* missing = nullptr;
  try {
    missing = start_all(live, roster, all, signals.descriptor());
  } catch (const base::Error&) {
    end_started();
    throw;
  }
  missing = missing != nullptr ? missing : first_silent(kReady, roster, all, signals.descriptor());
  if (missing != nullptr) {
    const uint32_t node = missing->node;
    const std::string words = last_words(live, *missing);
    end_started();
    throw UsageError(
        fmt::format("the agent of node {} ({}) did not get ready: {}", live.model.nodes[node].name, node, words));
  }
  return static_cast<size_t>(std::ranges::count_if(all, [](const Starting& one) { return !one.is_anothers; }));
}

std::vector<AgentSeen> look_at_agents(const LiveCluster& live) {
  const Roster roster(live.dir, live.model.name);
  std::vector<AgentSeen> seen;
  for (uint32_t node = 0; live.model.has_overlay && node < live.model.nodes.size(); ++node) {
    const std::optional<Roster::Agent> agent = roster.look(node);
    AgentSeen one;
    if (agent) {
      one = {is_stopped(*agent) ? AgentSeen::State::stopped : AgentSeen::State::runs, agent->pid, agent->meeting};
    }
    seen.push_back(one);
  }
  return seen;
}

std::string parts_text(const LiveCluster& live) {
  live.control.refresh();
  const fabric::Graph usable = usable_cabling(live);
  const std::vector<bool> all(live.model.nodes.size(), true);
  std::vector<bool> is_in_part(all.size());
  std::string alone;
  std::vector<std::string> parts;
  for (uint32_t node = 0; node < all.size(); ++node) {
    if (is_in_part[node]) {
      continue;
    }
    const std::vector<uint32_t> part = joined_with(usable, all, node);
    std::vector<std::string> names;
    for (const uint32_t one : part) {
      is_in_part[one] = true;
      names.push_back(live.model.nodes[one].name);
    }
    if (part.size() > 1) {
      parts.push_back(fmt::format("{}", fmt::join(names, ", ")));
    } else if (all.size() > 1) {
      const bool is_planned = std::ranges::any_of(
          live.model.cables, [&](const cluster::Cable& cable) { return cable.a.node == node || cable.b.node == node; });
      alone += fmt::format("overlay: node {} has no cable{}: ringbolt0 reaches nobody from there\n", names.front(),
                           is_planned ? " that is up" : "");
    }
  }
  return parts.size() < 2 ? alone
                          : fmt::format("overlay: no cable that is up joins {}\n{}", fmt::join(parts, " with "), alone);
}

size_t stop_agents(const cluster::RuntimeDir& dir, const std::string& name) {
  const Roster roster(dir, name);
  std::vector<base::UniqueFd> ending;
  for (uint32_t node = 0; node < cluster::kMaxNodes; ++node) {
    if (const std::optional<pid_t> pid = roster.find(node)) {
      base::UniqueFd process = base::open_process(*pid);
      if (process.is_open() && roster.find(node) == pid) {  // still the same one
        ending.push_back(std::move(process));
      }
    }
  }
  end_all(ending);
  return ending.size();
}

std::vector<Program> without_agents(const cluster::RuntimeDir& dir, const std::string& name,
                                    std::vector<Program> programs) {
  const Roster roster(dir, name);
  for (uint32_t node = 0; node < cluster::kMaxNodes; ++node) {
    if (const std::optional<pid_t> pid = roster.find(node)) {
      std::erase_if(programs, [&](const Program& program) { return program.pid == *pid; });
    }
  }
  return programs;
}

}  // namespace ringbolt::tools::agent
