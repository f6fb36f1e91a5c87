#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/unique_fd.h"

namespace ringbolt::tools {

/// A process to start.
struct Launch {
  std::vector<std::string> command;
  std::vector<std::string> environment;  ///< all of it, "NAME=value"
  int kept_fd = -1;                      ///< stays open in the child, under the same number; -1: none
  int input_fd = -1;                     ///< its input; -1: /dev/null
  int output_fd = -1;                    ///< its output; -1: a pipe to us
  bool is_remote = false;                ///< a `ringbolt run --remote` by ssh: its input tells it of signals
  std::string netns = {};                ///< file of the network namespace that it runs in; empty: ours
};

/// Why `program` could not be started, `error` being the errno of exec, and what to do.
std::string cannot_start(const std::string& program, int error);

/// A child that leads a process group of its own. The leader stays
/// unreaped until destruction, so that the number of its group can't be given to others in between. If it still runs at
/// destruction the group is killed. Dies with its parent. Not thread-safe.
class ChildProcess {
 public:
  /// Throws UsageError naming the command if it can't be started, base::Error where this process can't make what a
  /// child needs; then nothing runs.
  static ChildProcess start(Launch launch);

  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&& other) = delete;
  ~ChildProcess();

  pid_t pid() const { return pid_; }
  /// Closed by the owner at end of file. Not open if the launch has an output_fd.
  base::UniqueFd& output() { return output_; }
  base::UniqueFd& error_output() { return error_output_; }

  /// Looks, without waiting, whether the leader has ended; then kills what is left of its group.
  bool has_ended();
  /// As a shell says it: 0 to 255, or 128 + signal. Of a leader that has ended: 0 before has_ended() said so.
  int exit_code() const { return exit_code_; }
  /// "exited with 3", "was killed by signal 9 (Killed)".
  std::string end_text() const;
  /// A remote program is told by a line of its input, and hung up by SIGKILL. SIGPIPE must be ignored then. Never
  /// blocks: the line fits into the pipe as long as there are few signals.
  void signal_group(int signal) const;

 private:
  ChildProcess(pid_t pid, base::UniqueFd output, base::UniqueFd error_output, base::UniqueFd control);

  pid_t pid_ = -1;
  base::UniqueFd output_;
  base::UniqueFd error_output_;
  base::UniqueFd control_;  // of a remote program
  bool has_ended_ = false;
  int exit_code_ = 0;
  int signal_ = 0;
};

/// A program to become, as shells start one: found on PATH where its name has no slash, and given to /bin/sh where it
/// is a text that the kernel does not take. What is neither is no program; execvpe() alone would give that to the
/// shell, too, which runs whatever words it finds there. Not thread-safe.
class ProgramStart {
 public:
  explicit ProgramStart(std::vector<std::string> words);
  ProgramStart(const ProgramStart&) = delete;
  ProgramStart& operator=(const ProgramStart&) = delete;

  /// Returns only if it fails; errno says why. Async-signal-safe.
  void become(char* const* environment) const;

 private:
  std::vector<std::string> words_;
  std::vector<std::string> shell_words_;
  std::vector<char*> command_;
  std::vector<char*> shell_command_;
  std::string path_;  // empty: execvpe() is to say what is wrong
  bool is_text_;
};

/// An array for exec of those texts, which must outlive it.
std::vector<char*> pointers_to(std::vector<std::string>& texts);

/// What a program printed and how it ended.
struct Captured {
  bool is_late = false;  ///< it was killed at the time limit
  int exit_code = 0;
  std::string output;
  std::string error_output;
};

/// Runs a program to its end with `input` as its input, and keeps the first `kMostCapturedBytes` of each output. Throws
/// UsageError if it can't be started. Blocks for `timeout_s` at most. Once `is_stopped`, which is asked often, says so,
/// it gets SIGINT and some seconds to end.
Captured run_captured(Launch launch, const std::string& input, double timeout_s,
                      const std::function<bool()>& is_stopped = nullptr);

inline constexpr size_t kMostCapturedBytes = size_t{4} << 20U;

/// The text without its last line ends, other line ends replaced by "; ", cut to what a message can hold, and fit for a
/// terminal: what another machine's programs write reaches people through this. Thread-safe.
std::string one_line(const std::string& text);

}  // namespace ringbolt::tools
