#include "program_pair.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/unique_fd.h"
#include "child_process.h"
#include "node_environment.h"
#include "ssh.h"
#include "stop.h"

namespace ringbolt::tools {
namespace {

/// A program that prints without end is cut off.
constexpr size_t kMostOutputBytes = size_t{1} << 22U;
/// For the second, to notice that the first has ended.
constexpr uint64_t kPartingNs = 10'000'000'000;

/// How a program on a host says which process it is, so that it can be interrupted there.
constexpr std::string_view kPidMark = "ringbolt-pid: ";

struct Running {
  ChildProcess child;
  ProgramEnd end;
  std::string remote_pid;  // on its host; empty: not there, or not known yet
};

/// The stream between two ends on hosts. The ssh of each holds one side, and so do we: an ssh that can't write what its
/// program sends gives up its other output too, and with that the program's last words. Not thread-safe.
class HeldStream {
 public:
  /// `sides`: both closed if nobody needs to hold them.
  explicit HeldStream(std::array<base::UniqueFd, 2> sides) : sides_(std::move(sides)) {}

  /// The program at this side has ended: the other one reads an end of file, and may go on writing.
  void part(size_t side) {
    ::shutdown(sides_[side].get(), SHUT_WR);
    std::array<char, 65536> thrown_away;
    while (::recv(sides_[side].get(), thrown_away.data(), thrown_away.size(), MSG_DONTWAIT) > 0) {
    }
  }

 private:
  std::array<base::UniqueFd, 2> sides_;
};

/// By ssh, whose input and output are the channel.
Launch remote_launch(const LiveCluster& live, const cluster::CableEnd& end, std::vector<std::string> words,
                     int channel_fd) {
  words.insert(words.begin(),
               {"exec", std::to_string(end.node), "--", "sh", "-c",
                fmt::format("echo '{}'$$ >&2; exec \"$@\"", kPidMark), "sh", live.model.prefix + "/bin/ringbolt"});
  Launch launch = node_launch(live.model, end.node, std::move(words));
  launch.input_fd = launch.output_fd = channel_fd;
  return launch;
}

Launch launch_at(const LiveCluster& live, const cluster::CableEnd& end, std::vector<std::string> words,
                 int channel_fd) {
  if (live.is_remote()) {
    return remote_launch(live, end, std::move(words), channel_fd);
  }
  words.insert(words.begin(), std::filesystem::read_symlink("/proc/self/exe").string());
  words.insert(words.end(), {"--channel", std::to_string(channel_fd)});
  Launch launch;
  launch.command = std::move(words);
  NodeEnvironment environment = node_environment(live, end.node);
  // The program does not look at paths, and a sanitizer's runtime wants no other library before it.
  std::erase_if(environment.set, [](const Variable& one) { return one.name == "LD_PRELOAD"; });
  launch.environment = merged_environment(environment);
  launch.netns = environment.netns;
  launch.kept_fd = channel_fd;
  return launch;
}

void take_output(base::UniqueFd& from, std::string& to) {
  std::array<char, 4096> buffer;
  const ssize_t got = ::read(from.get(), buffer.data(), buffer.size());
  if (got > 0) {
    to.append(buffer.data(), std::min(static_cast<size_t>(got), kMostOutputBytes - to.size()));
  } else if (got == 0 || errno != EINTR) {
    from.reset();
  }
}

/// Looks once at the outputs of both; waits a moment if there is nothing.
void look(std::array<Running, 2>& both) {
  std::array<pollfd, 4> polled;
  size_t at = 0;
  for (Running& one : both) {
    polled[at++] = {one.child.output().get(), POLLIN, 0};
    polled[at++] = {one.child.error_output().get(), POLLIN, 0};
  }
  const bool is_open = std::any_of(polled.begin(), polled.end(), [](const pollfd& one) { return one.fd >= 0; });
  // The end of a process itself raises nothing here; it follows the end of its outputs at once.
  constexpr int kLookMs = 100;
  ::poll(polled.data(), polled.size(), is_open ? kLookMs : 1);
  for (size_t i = 0; i < both.size(); ++i) {
    if (polled[2 * i].revents != 0) {
      take_output(both[i].child.output(), both[i].end.output);
    }
    if (polled[2 * i + 1].revents != 0) {
      take_output(both[i].child.error_output(), both[i].end.error_output);
    }
  }
}

bool has_ended(Running& one) {
  return !one.child.output().is_open() && !one.child.error_output().is_open() && one.child.has_ended();
}

/// On a host by another ssh, since the first one's input is the stream.
void interrupt(const LiveCluster& live, uint32_t node, const Running& one) {
  if (one.remote_pid.empty()) {
    one.child.signal_group(SIGINT);
    return;
  }
  constexpr double kPatienceS = 10;
  (void)run_captured(
      node_launch(live.model, node,
                  {"exec", std::to_string(node), "--", "sh", "-c", "kill -INT \"$1\"", "sh", one.remote_pid}),
      "", kPatienceS);
}

void await(const LiveCluster& live, uint32_t first_node, std::array<Running, 2>& both, HeldStream& stream,
           uint64_t deadline_ns, const PairWatch& watch) {
  bool has_stopped = false;
  while (base::now_ns() < deadline_ns) {
    look(both);
    for (Running& one : both) {
      take_marked_lines(one.end.error_output, kPidMark, [&](const std::string& pid) { one.remote_pid = pid; });
    }
    take_marked_lines(both[0].end.error_output, watch.mark, watch.on_line);
    if (!has_stopped && watch.is_stopped && watch.is_stopped()) {
      has_stopped = true;
      interrupt(live, first_node, both[0]);
      deadline_ns = std::min(deadline_ns, base::now_ns() + watch.ending_ns);
    }
    const bool first = has_ended(both[0]);
    const bool second = has_ended(both[1]);
    if (first && second) {
      return;
    }
    if (first || second) {
      stream.part(first ? 0 : 1);
      deadline_ns = std::min(deadline_ns, base::now_ns() + kPartingNs);
    }
  }
}

}  // namespace

PairWatch watch_of(Progress& progress) {
  PairWatch watch;
  watch.mark = Progress::kMark;
  watch.on_line = [&progress](const std::string& line) { progress.show(line); };
  watch.is_stopped = [&progress] {
    progress.tick();
    return is_stopped();
  };
  return watch;
}

std::array<ProgramEnd, 2> run_pair(const LiveCluster& live, const std::array<cluster::CableEnd, 2>& ends,
                                   const std::array<std::vector<std::string>, 2>& words, uint64_t deadline_ns,
                                   const PairWatch& watch) {
  int fds[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) {
    throw base::Error(errno, "socketpair", "measurement");
  }
  std::array<base::UniqueFd, 2> sides{base::UniqueFd(fds[0]), base::UniqueFd(fds[1])};
  std::array<Running, 2> both{Running{ChildProcess::start(launch_at(live, ends[0], words[0], fds[0])), {}, {}},
                              Running{ChildProcess::start(launch_at(live, ends[1], words[1], fds[1])), {}, {}}};
  if (!live.is_remote()) {
    sides = {};  // so that an end sees at once when the other is gone
  }
  HeldStream stream(std::move(sides));
  await(live, ends[0].node, both, stream, deadline_ns, watch);
  for (Running& one : both) {
    if (one.child.has_ended()) {
      one.end.end_text = one.child.end_text();
      one.end.exit_code = one.child.exit_code();
    }
  }
  return {both[0].end, both[1].end};
}

}  // namespace ringbolt::tools
