#include "program_pair.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>

#include "base/clock.h"
#include "base/error.h"
#include "child_process.h"
#include "node_environment.h"
#include "ssh.h"

namespace ringbolt::tools {
namespace {

/// A program that prints without end is cut off.
constexpr size_t kMostOutputBytes = size_t{1} << 22U;
/// For the second, to notice that the first has ended.
constexpr uint64_t kPartingNs = 10'000'000'000;

struct Running {
  ChildProcess child;
  ProgramEnd end;
};

/// By ssh, whose input and output are the channel.
Launch remote_launch(const LiveCluster& live, const cluster::CableEnd& end, std::vector<std::string> words,
                     int channel_fd) {
  words.insert(words.begin(), {"exec", std::to_string(end.node), "--", live.model.prefix + "/bin/ringbolt"});
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

/// Takes whole lines that begin with the mark out of `text`.
void take_lines(std::string& text, const PairWatch& watch) {
  for (size_t at = watch.mark.empty() ? std::string::npos : text.find(watch.mark); at != std::string::npos;
       at = text.find(watch.mark)) {
    const size_t end = text.find('\n', at);
    if (end == std::string::npos) {
      return;
    }
    const size_t begin = at + watch.mark.size();
    watch.on_line(text.substr(begin, end - begin));
    text.erase(at, end + 1 - at);
  }
}

void await(std::array<Running, 2>& both, uint64_t deadline_ns, const PairWatch& watch) {
  bool has_stopped = false;
  while (base::now_ns() < deadline_ns) {
    look(both);
    take_lines(both[0].end.error_output, watch);
    if (!has_stopped && watch.is_stopped && watch.is_stopped()) {
      has_stopped = true;
      both[0].child.signal_group(SIGINT);
      deadline_ns = std::min(deadline_ns, base::now_ns() + watch.ending_ns);
    }
    const bool first = has_ended(both[0]);
    const bool second = has_ended(both[1]);
    if (first && second) {
      return;
    }
    if (first || second) {
      deadline_ns = std::min(deadline_ns, base::now_ns() + kPartingNs);
    }
  }
}

}  // namespace

std::array<ProgramEnd, 2> run_pair(const LiveCluster& live, const std::array<cluster::CableEnd, 2>& ends,
                                   const std::array<std::vector<std::string>, 2>& words, uint64_t deadline_ns,
                                   const PairWatch& watch) {
  int fds[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) {
    throw base::Error(errno, "socketpair", "measurement");
  }
  base::UniqueFd first_fd(fds[0]);
  base::UniqueFd second_fd(fds[1]);
  std::array<Running, 2> both{Running{ChildProcess::start(launch_at(live, ends[0], words[0], fds[0])), {}},
                              Running{ChildProcess::start(launch_at(live, ends[1], words[1], fds[1])), {}}};
  first_fd.reset();  // so that an end sees when the other is gone
  second_fd.reset();
  await(both, deadline_ns, watch);
  for (Running& one : both) {
    if (one.child.has_ended()) {
      one.end.end_text = one.child.end_text();
      one.end.exit_code = one.child.exit_code();
    }
  }
  return {both[0].end, both[1].end};
}

}  // namespace ringbolt::tools
