#include "child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/printable.h"
#include "base/unique_fd.h"
#include "failure.h"
#include "namespaces.h"

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

/// What goes into the child, as plain values: between fork() and exec() nothing may be allocated.
struct Wiring {
  const ProgramStart* program = nullptr;
  char* const* environment = nullptr;
  const char* netns = nullptr;
  int kept_fd = -1;
  int input = -1;
  int output = -1;
  int error_output = -1;
  int report = -1;
};

/// What the child says if it can't become the program.
struct Refusal {
  const char* call = nullptr;  // of our own text: the same address on both sides of fork(); nullptr: the start itself
  int error = 0;
};

/// The child's side of fork(): only async-signal-safe calls.
[[noreturn]] void become(const Wiring& wiring, pid_t parent) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) {
    ::_exit(127);  // the parent was gone before the line above
  }
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  const bool is_wired = ::dup2(wiring.input, 0) >= 0 && ::dup2(wiring.output, 1) >= 0 &&
                        ::dup2(wiring.error_output, 2) >= 0 &&
                        (wiring.kept_fd < 0 || ::fcntl(wiring.kept_fd, F_SETFD, 0) == 0);
  Refusal refusal;
  if (is_wired && wiring.netns != nullptr) {
    refusal.call = enter_namespace(wiring.netns);
  }
  if (is_wired && refusal.call == nullptr) {
    wiring.program->become(wiring.environment);
  }
  refusal.error = errno;
  (void)!::write(wiring.report, &refusal, sizeof refusal);
  ::_exit(127);
}

std::string refusal_text(const Launch& launch, const Refusal& refusal) {
  if (refusal.call != nullptr) {
    return fmt::format("can't enter the network namespace {} for {}: {}: {}; run it as root", launch.netns,
                       launch.command.front(), refusal.call, base::reason_of(refusal.error));
  }
  return cannot_start(launch.command.front(), refusal.error);
}

bool is_startable(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && ::access(path.c_str(), X_OK) == 0;
}

std::string found_path(const std::string& program) {
  if (program.find('/') != std::string::npos) {
    return program;
  }
  const char* folders = std::getenv("PATH");
  std::istringstream all(folders == nullptr ? "/bin:/usr/bin" : folders);
  for (std::string folder; std::getline(all, folder, ':');) {
    if (std::string path = (folder.empty() ? "." : folder) + "/" + program; is_startable(path)) {
      return path;
    }
  }
  return "";
}

/// By its first line, as far as one looks. An empty file is a text.
bool is_text(const std::string& path) {
  const base::UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  std::array<char, 256> bytes;
  const ssize_t got = file.is_open() ? ::read(file.get(), bytes.data(), bytes.size()) : -1;
  if (got < 0) {
    return true;  // that nobody may read it is for the shell to say
  }
  const std::string_view all(bytes.data(), static_cast<size_t>(got));
  return std::ranges::none_of(all.substr(0, all.find('\n')), [](char one) {
    const auto code = static_cast<unsigned char>(one);
    constexpr unsigned char kDelete = 0x7f;
    return (code < ' ' && std::string_view("\t\v\f\r\x1b").find(one) == std::string_view::npos) || code == kDelete;
  });
}

base::UniqueFd readable(const std::string& text) {
  base::UniqueFd fd(::memfd_create("input", MFD_CLOEXEC));
  for (size_t done = 0; fd.is_open() && done < text.size();) {
    const ssize_t written = ::pwrite(fd.get(), text.data() + done, text.size() - done, static_cast<off_t>(done));
    if (written <= 0 && errno != EINTR) {
      throw base::Error(errno, "write", "input of a program");
    }
    done += static_cast<size_t>(std::max<ssize_t>(written, 0));
  }
  if (!fd.is_open()) {
    throw base::Error(errno, "memfd_create", "input of a program");
  }
  return fd;
}

void take(base::UniqueFd& from, std::string& to) {
  std::array<char, 65536> buffer;
  const ssize_t got = ::read(from.get(), buffer.data(), buffer.size());
  if (got > 0) {
    to.append(buffer.data(), std::min(static_cast<size_t>(got), kMostCapturedBytes - to.size()));
  } else if (got == 0 || errno != EINTR) {
    from.reset();
  }
}

}  // namespace

std::string cannot_start(const std::string& program, int error) {
  struct stat status {};
  const bool is_path = program.find('/') != std::string::npos;
  const bool is_there = is_path && ::stat(program.c_str(), &status) == 0;
  std::string remedy = "is it installed and on PATH?";
  if (is_there && S_ISDIR(status.st_mode)) {
    remedy = "it is a folder: give a program in it";
  } else if (error == EACCES && is_there) {
    remedy = fmt::format("it may not be executed; if it is a program: chmod +x {}", program);
  } else if (error == ENOEXEC) {
    remedy = "it is no program for this machine; a script begins with #! and its interpreter, as in #!/bin/sh";
  } else if (is_there && error == ENOENT) {
    remedy = "its interpreter or loader is missing: see its first line, or `file` of it";
  } else if (is_path) {
    remedy = "is the path right?";
  }
  return fmt::format("can't start {}: {}; {}", program, base::reason_of(error), remedy);
}

ChildProcess ChildProcess::start(Launch launch) {
  Pipe output = launch.output_fd < 0 ? make_pipe() : Pipe{};
  Pipe error_output = make_pipe();
  Pipe control = launch.is_remote ? make_pipe() : Pipe{};
  Pipe report = make_pipe();
  base::UniqueFd nothing;
  if (!launch.is_remote && launch.input_fd < 0) {
    nothing.reset(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!nothing.is_open()) {
      throw base::Error(errno, "open", "/dev/null", "a program that is given no input reads it");
    }
  }
  const ProgramStart program(launch.command);
  const std::vector<char*> environment = pointers_to(launch.environment);
  const Wiring wiring{&program,
                      environment.data(),
                      launch.netns.empty() ? nullptr : launch.netns.c_str(),
                      launch.kept_fd,
                      launch.is_remote      ? control.read.get()
                      : launch.input_fd < 0 ? nothing.get()
                                            : launch.input_fd,
                      launch.output_fd < 0 ? output.write.get() : launch.output_fd,
                      error_output.write.get(),
                      report.write.get()};
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) {
    throw base::Error(errno, "fork", launch.command.front(), "end other processes, or raise the limit: ulimit -u");
  }
  if (pid == 0) {
    become(wiring, parent);
  }
  ::setpgid(pid, pid);  // both sides, so that the group is there whoever comes first
  ChildProcess child(pid, std::move(output.read), std::move(error_output.read), std::move(control.write));
  report.write.reset();
  Refusal refusal;
  ssize_t got = 0;
  do {
    got = ::read(report.read.get(), &refusal, sizeof refusal);
  } while (got < 0 && errno == EINTR);
  if (got == static_cast<ssize_t>(sizeof refusal)) {
    throw UsageError(refusal_text(launch, refusal));
  }
  return child;
}

ChildProcess::ChildProcess(pid_t pid, base::UniqueFd output, base::UniqueFd error_output, base::UniqueFd control)
    : pid_(pid), output_(std::move(output)), error_output_(std::move(error_output)), control_(std::move(control)) {}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      output_(std::move(other.output_)),
      error_output_(std::move(other.error_output_)),
      control_(std::move(other.control_)),
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
  if (signal_ != 0) {
    return fmt::format("was killed by signal {} ({})", signal_, ::strsignal(signal_));
  }
  // What a shell, or our own command on a host, says of a program of its own.
  const int passed_on = exit_code_ - 128;
  return passed_on > 0 && passed_on < __SIGRTMIN
             ? fmt::format("exited with {}, as after signal {} ({})", exit_code_, passed_on, ::strsignal(passed_on))
             : fmt::format("exited with {}", exit_code_);
}

void ChildProcess::signal_group(int signal) const {
  if (control_.is_open() && signal != SIGKILL) {
    const std::string line = fmt::format("{}\n", signal);
    (void)!::write(control_.get(), line.data(), line.size());  // a pipe that is full or broken leads nowhere any more
    return;
  }
  if (pid_ > 0) {
    ::kill(-pid_, signal);
  }
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> array;
  for (std::string& text : texts) {
    array.push_back(text.data());
  }
  array.push_back(nullptr);
  return array;
}

ProgramStart::ProgramStart(std::vector<std::string> words)
    : words_(std::move(words)), path_(found_path(words_.front())), is_text_(is_text(path_)) {
  shell_words_ = {"sh", path_};
  shell_words_.insert(shell_words_.end(), words_.begin() + 1, words_.end());
  command_ = pointers_to(words_);
  shell_command_ = pointers_to(shell_words_);
}

void ProgramStart::become(char* const* environment) const {
  if (path_.empty()) {
    ::execvpe(command_.front(), command_.data(), environment);
    return;
  }
  ::execve(path_.c_str(), command_.data(), environment);
  if (errno == ENOEXEC && is_text_) {
    ::execve("/bin/sh", shell_command_.data(), environment);
  }
}

Captured run_captured(Launch launch, const std::string& input, double timeout_s,
                      const std::function<bool()>& is_stopped) {
  const base::UniqueFd input_fd = readable(input);
  launch.input_fd = input_fd.get();
  ChildProcess child = ChildProcess::start(std::move(launch));
  Captured result;
  bool has_stopped = false;
  uint64_t deadline = base::now_ns() + static_cast<uint64_t>(timeout_s * 1e9);
  for (;;) {
    const bool is_open = child.output().is_open() || child.error_output().is_open();
    // Its end closes its outputs, unless something that it left behind holds them open.
    if (child.has_ended() && !is_open) {
      break;
    }
    if (base::now_ns() >= deadline) {
      result.is_late = true;
      break;
    }
    if (!has_stopped && is_stopped && is_stopped()) {
      constexpr uint64_t kEndingNs = 5'000'000'000;
      has_stopped = true;
      child.signal_group(SIGINT);
      deadline = std::min(deadline, base::now_ns() + kEndingNs);
    }
    std::array<pollfd, 2> polled{pollfd{child.output().get(), POLLIN, 0},
                                 pollfd{child.error_output().get(), POLLIN, 0}};
    constexpr int kWaitMs = 50;
    ::poll(polled.data(), polled.size(), is_open ? kWaitMs : 1);
    if (polled[0].revents != 0) {
      take(child.output(), result.output);
    }
    if (polled[1].revents != 0) {
      take(child.error_output(), result.error_output);
    }
  }
  result.exit_code = result.is_late ? -1 : child.exit_code();
  return result;
}

std::string one_line(const std::string& text) {
  constexpr size_t kMostBytes = 400;
  std::string line;
  for (const char c : text.substr(0, std::min(text.find_last_not_of(" \r\n") + 1, kMostBytes))) {
    if (c == '\n') {
      line += "; ";
    } else if (c != '\r') {
      line += c;
    }
  }
  return base::printable(std::move(line));  // programs of other machines write it
}

}  // namespace ringbolt::tools
