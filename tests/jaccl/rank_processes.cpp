#include "rank_processes.h"

#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <stdexcept>

extern char** environ;

namespace ringbolt::jaccl {
namespace {

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (std::string& text : texts) {
    list.push_back(text.data());
  }
  list.push_back(nullptr);
  return list;
}

/// The environment with the settings in place of what they name.
std::vector<std::string> with_settings(const std::vector<std::string>& settings) {
  std::vector<std::string> result = settings;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::string name = text.substr(0, text.find('=') + 1);
    bool is_replaced = false;
    for (const std::string& setting : settings) {
      is_replaced = is_replaced || setting.starts_with(name);
    }
    if (!is_replaced) {
      result.push_back(text);
    }
  }
  return result;
}

}  // namespace

pid_t start_process(const std::vector<std::string>& arguments, const std::vector<std::string>& settings) {
  std::vector<std::string> words = arguments;
  std::vector<std::string> variables = with_settings(settings);
  pid_t pid = -1;
  const int error =
      posix_spawnp(&pid, words[0].c_str(), nullptr, nullptr, pointers(words).data(), pointers(variables).data());
  if (error != 0) {
    throw std::runtime_error("cannot start " + arguments[0] + ": " + std::strerror(error));
  }
  return pid;
}

int wait_for_process(pid_t pid) {
  constexpr int kPatienceMs = 60'000;
  int status = 0;
  // Asleep: ranks poll, and whoever does so beside them takes their processor away.
  pollfd end{static_cast<int>(syscall(SYS_pidfd_open, pid, 0)), POLLIN, 0};
  const bool has_exited = poll(&end, 1, kPatienceMs) == 1;
  close(end.fd);
  if (!has_exited) {
    kill(pid, SIGKILL);
  }
  waitpid(pid, &status, 0);
  if (!has_exited) {
    return -1;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int run_process(const std::vector<std::string>& arguments, const std::vector<std::string>& settings) {
  return wait_for_process(start_process(arguments, settings));
}

}  // namespace ringbolt::jaccl
