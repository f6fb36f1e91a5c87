// One command of the host's, as a process with pipes.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ringbolt::guest {

/// A running command. Owns the ends of its pipes. Not thread-safe.
class Command {
 public:
  /// Starts `argv` as the leader of a session. A program that can't be started exits with 127 and says why on stderr.
  explicit Command(const std::vector<std::string>& argv);
  ~Command();
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  pid_t pid() const { return pid_; }
  /// Bytes for stdin; an empty text closes it once all before it is written.
  void feed(std::string_view bytes);
  /// Sends a signal to every process of the session's leading group.
  void signal(int number) const;
  /// What to poll, in the order stdin, stdout, stderr; -1 where nothing is left to do.
  std::array<pollfd, 3> interests() const;
  /// Writes what stdin takes now.
  void push();
  /// Reads what `stream` (1 stdout, 2 stderr) has now, at most one frame's payload; empty: nothing there.
  std::string pull(int stream);

 private:
  void shut(int stream);

  pid_t pid_ = -1;
  std::array<int, 3> pipes_{-1, -1, -1};
  std::string pending_;
  bool ends_after_pending_ = false;
};

}  // namespace ringbolt::guest
