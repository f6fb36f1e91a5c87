#include "child_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "failure.h"

namespace ringbolt::tools {
namespace {

struct Pipe {
  base::UniqueFd read;
  base::UniqueFd write;
};

Pipe make_pipe() {
  int fds[2];
  if (::pipe2(fds, O_CLOEXEC) != 0) {
    throw base::Error(errno, "pipe2", "output of a program", "raise the limit of open files: ulimit -n");
  }
  return {base::UniqueFd(fds[0]), base::UniqueFd(fds[1])};
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> array;
  for (std::string& text : texts) {
    array.push_back(text.data());
  }
  array.push_back(nullptr);
  return array;
}

/// The child's side of fork(): only async-signal-safe calls.
[[noreturn]] void become(char* const* command, char* const* environment, int kept_fd, pid_t parent, int input,
                         int output, int error_output, int report) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) {
    ::_exit(127);  // the parent was gone before the line above
  }
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  const bool is_wired = ::dup2(input, 0) >= 0 && ::dup2(output, 1) >= 0 && ::dup2(error_output, 2) >= 0 &&
                        (kept_fd < 0 || ::fcntl(kept_fd, F_SETFD, 0) == 0);
  if (is_wired) {
    ::execvpe(command[0], command, environment);
  }
  const int error = errno;
  (void)!::write(report, &error, sizeof error);
  ::_exit(127);
}

}  // namespace

ChildProcess ChildProcess::start(Launch launch) {
  Pipe output = make_pipe();
  Pipe error_output = make_pipe();
  Pipe report = make_pipe();
  base::UniqueFd input(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const std::vector<char*> command = pointers(launch.command);
  const std::vector<char*> environment = pointers(launch.environment);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) {
    throw base::Error(errno, "fork", launch.command.front(), "end other processes, or raise the limit: ulimit -u");
  }
  if (pid == 0) {
    become(command.data(), environment.data(), launch.kept_fd, parent, input.get(), output.write.get(),
           error_output.write.get(), report.write.get());
  }
  ::setpgid(pid, pid);  // both sides, so that the group is there whoever comes first
  ChildProcess child(pid, std::move(output.read), std::move(error_output.read));
  report.write.reset();
  int error = 0;
  ssize_t got = 0;
  do {
    got = ::read(report.read.get(), &error, sizeof error);
  } while (got < 0 && errno == EINTR);
  if (got == static_cast<ssize_t>(sizeof error)) {
    throw UsageError(
        fmt::format("can't start {}: {}; is it installed and on PATH?", launch.command.front(), std::strerror(error)));
  }
  return child;
}

ChildProcess::ChildProcess(pid_t pid, base::UniqueFd output, base::UniqueFd error_output)
    : pid_(pid), output_(std::move(output)), error_output_(std::move(error_output)) {}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      output_(std::move(other.output_)),
      error_output_(std::move(other.error_output_)),
      has_ended_(other.has_ended_),
      exit_code_(other.exit_code_),
      signal_(other.signal_) {}

ChildProcess::~ChildProcess() {
  if (pid_ > 0) {
    signal_group(SIGKILL);
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
}

bool ChildProcess::has_ended() {
  if (has_ended_) {
    return true;
  }
  siginfo_t info{};
  // WNOWAIT: a zombie keeps the number of the group ours.
  if (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) {
    return false;
  }
  has_ended_ = true;
  signal_ = info.si_code == CLD_EXITED ? 0 : info.si_status;
  exit_code_ = info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
  signal_group(SIGKILL);
  return true;
}

std::string ChildProcess::end_text() const {
  return signal_ == 0 ? fmt::format("exited with {}", exit_code_)
                      : fmt::format("was killed by signal {} ({})", signal_, ::strsignal(signal_));
}

void ChildProcess::signal_group(int signal) const {
  if (pid_ > 0) {
    ::kill(-pid_, signal);
  }
}

}  // namespace ringbolt::tools
