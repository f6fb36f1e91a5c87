#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include <fmt/format.h>

#include "base/error.h"
#include "base/process_descriptor.h"
#include "child_process.h"
#include "cluster_state.h"
#include "commands.h"
#include "failure.h"
#include "namespaces.h"
#include "node_environment.h"
#include "ssh.h"
#include "standard_descriptors.h"

namespace ringbolt::tools {
namespace {

[[noreturn]] void become(std::vector<std::string> command, std::vector<std::string> environment) {
  mend_standard_descriptors();
  ProgramStart(command).become(pointers_to(environment).data());
  throw UsageError(cannot_start(command.front(), errno));
}

int exit_code_of(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

/// The parent's part while the program runs as `child`, which leads a group: returns its exit code. When our output
/// has no reader any more, the ssh that brought us here is gone, and the group follows it.
int watch(pid_t child) {
  const base::UniqueFd ended = base::open_process(child);
  if (!ended.is_open()) {
    const int error = errno;
    ::kill(-child, SIGKILL);  // nobody would end it when the ssh that brought us is gone
    throw base::Error(error, "pidfd_open", "the program");
  }
  std::array<pollfd, 2> polled{pollfd{ended.get(), POLLIN, 0}, pollfd{STDOUT_FILENO, 0, 0}};
  while (::poll(polled.data(), polled.size(), -1) < 0 && errno == EINTR) {
  }
  if (polled[0].revents == 0) {
    constexpr int kPoliteMs = 2000;
    ::kill(-child, SIGHUP);
    ::kill(-child, SIGCONT);
    ::poll(polled.data(), 1, kPoliteMs);
    ::kill(-child, SIGKILL);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  ::kill(-child, SIGKILL);  // what it left in its group
  return exit_code_of(status);
}

int exec_watched(std::vector<std::string> command, std::vector<std::string> environment) {
  const pid_t child = ::fork();
  if (child < 0) {
    throw base::Error(errno, "fork", command.front());
  }
  if (child == 0) {
    ::setpgid(0, 0);
    become(std::move(command), std::move(environment));
  }
  ::setpgid(child, child);
  return watch(child);
}

[[noreturn]] void exec_remote(const LiveCluster& live, const ExecOptions& options) {
  const uint32_t node = find_node(live.model, options.node);
  const bool has_terminal = ::isatty(STDIN_FILENO) != 0 && ::isatty(STDOUT_FILENO) != 0;
  std::vector<std::string> words{"exec", std::to_string(node)};
  if (!has_terminal) {
    words.emplace_back("--watched");  // with a terminal the hang-up does it
  }
  words.emplace_back("--");
  words.insert(words.end(), options.command.begin(), options.command.end());
  const Launch launch =
      node_launch(live.model, node, std::move(words), has_terminal ? Terminal::wanted : Terminal::none);
  become(launch.command, launch.environment);
}

}  // namespace

int exec(const ExecOptions& options) {
  if (options.node != "local") {
    if (const LiveCluster live = open_cluster(options.cluster); live.is_remote()) {
      exec_remote(live, options);
    }
  }
  const NodeEnvironment changes = environment_of(options.cluster, options.node);
  if (!changes.netns.empty()) {
    if (const char* call = enter_namespace(changes.netns.c_str()); call != nullptr) {
      throw UsageError(fmt::format("can't enter the network namespace {}: {}: {}; run it as root", changes.netns, call,
                                   base::reason_of(errno)));
    }
  }
  if (options.is_watched) {
    return exec_watched(options.command, merged_environment(changes));
  }
  become(options.command, merged_environment(changes));
}

}  // namespace ringbolt::tools
