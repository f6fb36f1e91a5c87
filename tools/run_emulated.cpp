#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "agent/held_signals.h"
#include "base/say.h"
#include "base/unique_fd.h"
#include "cluster/names.h"
#include "cluster_state.h"
#include "commands.h"
#include "failure.h"
#include "fault_file.h"
#include "hosts.h"
#include "node_environment.h"

namespace ringbolt::tools {
namespace {

constexpr std::string_view kPrefix = "run-";  // then the number of the process that makes and removes the cluster

std::string maker_file(const cluster::RuntimeDir& dir, const std::string& name) { return dir.cluster(name) + "/maker"; }

/// A file of the cluster that is locked until this process ends, however it does: a pid alone may pass to another
/// process, and says nothing in another namespace of pids. Until the file is there, and where it can't be had (then it
/// is not open), the pid tells.
base::UniqueFd hold_maker_file(const cluster::RuntimeDir& dir, const std::string& name) {
  const std::string path = maker_file(dir, name);
  const std::string fresh = path + ".new";
  base::UniqueFd file(::open(fresh.c_str(), O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  const bool is_held = file.is_open() && ::flock(file.get(), LOCK_EX | LOCK_NB) == 0;
  if (!is_held || ::rename(fresh.c_str(), path.c_str()) != 0) {
    ::unlink(fresh.c_str());
    return {};
  }
  return file;
}

/// Whether the process that made the cluster has ended.
bool is_orphan(const cluster::RuntimeDir& dir, const std::string& name, pid_t maker) {
  const base::UniqueFd file(::open(maker_file(dir, name).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (file.is_open()) {
    return ::flock(file.get(), LOCK_SH | LOCK_NB) == 0;
  }
  // It is just being made, or its maker could not hold a file.
  return errno == ENOENT && ::kill(maker, 0) != 0 && errno == ESRCH;
}

/// Those of commands that were killed by SIGKILL. One that can't be removed is left to `ringbolt down`, which says why.
void remove_orphans(const cluster::RuntimeDir& dir) {
  for (const std::string& name : cluster_names(dir)) {
    const std::optional<pid_t> pid = maker_of(name);
    if (pid && is_orphan(dir, name, *pid)) {
      try {
        (void)down({name, true, true});
      } catch (const std::exception&) {
      }
    }
  }
}

/// For a shell.
std::string words_of(const RunOptions& options) {
  std::string words = " --emulate " + shell_quoted(options.emulated.spec);
  words += options.emulated.is_netns ? " --netns" : "";
  words += options.emulated.has_overlay ? " --overlay" : "";
  words += options.emulated.like.empty() ? "" : " --like " + shell_quoted(options.emulated.like);
  for (const std::string& fault : options.faults) {
    words += " --fault " + shell_quoted(fault);
  }
  return words;
}

void add_faults(const std::string& name, const std::vector<std::string>& faults) {
  LiveCluster live = open_cluster(name);
  fault::Plan plan;
  for (const std::string& text : faults) {
    const fault::Plan more = read_faults(live, text);
    plan.rules.insert(plan.rules.end(), more.rules.begin(), more.rules.end());
  }
  if (plan.rules.size() > fault::Plan::kMaxRules) {
    throw UsageError(fmt::format("{} faults are more than a cluster's {}", plan.rules.size(), fault::Plan::kMaxRules));
  }
  const base::UniqueFd lock = lock_clusters(live.dir);
  (void)store_faults(live, plan);
}

}  // namespace

std::optional<pid_t> maker_of(const std::string& name) {
  pid_t pid = 0;
  if (!name.starts_with(kPrefix)) {
    return std::nullopt;
  }
  const char* const end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data() + kPrefix.size(), end, pid);
  // A negative number would stand for a group of processes.
  return error == std::errc{} && rest == end && pid > 0 ? std::optional(pid) : std::nullopt;
}

int run_emulated(const RunOptions& options) {
  const cluster::RuntimeDir dir = cluster::RuntimeDir::from_environment();
  remove_orphans(dir);
  RunOptions inside = options;
  inside.cluster = fmt::format("{}{}", kPrefix, ::getpid());
  inside.again_words = words_of(options);
  inside.emulated = {};
  inside.faults.clear();
  UpOptions made = options.emulated;
  made.name = inside.cluster;
  made.is_quiet = true;
  // From the cluster's beginning to its end: who interrupts gets the program ended, the cluster removed, and then us.
  const agent::HeldSignals signals;
  if (const int status = up(made); status != kOk) {
    return status;
  }
  const base::UniqueFd maker = hold_maker_file(dir, inside.cluster);
  // Its end, whatever comes: what went wrong before says more than what goes wrong here.
  const auto remove = [&inside] {
    try {
      (void)down({inside.cluster, true, true});
    } catch (const std::exception& error) {
      base::say(fmt::format("ringbolt run: {}; remove the cluster: ringbolt down --force --cluster {}\n", error.what(),
                            inside.cluster));
    }
  };
  try {
    add_faults(inside.cluster, options.faults);
    const int status = signals.has_come() ? kFoundProblem : run(inside);
    remove();
    return status;
  } catch (...) {
    remove();
    throw;
  }
}

}  // namespace ringbolt::tools
