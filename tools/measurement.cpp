#include "measurement.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <optional>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/error.h"
#include "child_process.h"
#include "node_environment.h"
#include "probe/report.h"
#include "ssh.h"

namespace ringbolt::tools {
namespace {

/// Beyond the probes' own deadline, for them to start and to report.
constexpr uint64_t kSlackNs = 3'000'000'000;
/// A program that prints without end is cut off.
constexpr size_t kMostOutputBytes = size_t{1} << 16U;

/// One end of a measurement.
struct Probe {
  ChildProcess child;
  std::string output;
  std::string error_output;
};

std::vector<std::string> probe_words(const LiveCluster& live, const cluster::CableEnd& end, bool is_first,
                                     const MatrixOptions& options) {
  std::vector<std::string> words{"probe",
                                 "--device",
                                 live.model.nodes[end.node].ports[end.port].name,
                                 "--timeout",
                                 std::to_string(options.timeout_s),
                                 "--seconds",
                                 std::to_string(options.phase_s),
                                 "--size",
                                 std::to_string(options.size_bytes),
                                 "--messages",
                                 std::to_string(options.messages),
                                 "--rounds",
                                 std::to_string(options.rounds),
                                 "--library"};
  words.push_back((live.is_remote() ? live.model.prefix + "/lib/ringbolt" : library_folder()) + "/libibverbs.so.1");
  if (is_first) {
    words.emplace_back("--first");
  }
  return words;
}

/// By ssh, whose input and output are the channel.
Launch remote_launch(const LiveCluster& live, const cluster::CableEnd& end, std::vector<std::string> words,
                     int channel_fd) {
  words.insert(words.begin(), {"exec", std::to_string(end.node), "--", live.model.prefix + "/bin/ringbolt"});
  Launch launch = node_launch(live.model, end.node, std::move(words));
  launch.input_fd = launch.output_fd = channel_fd;
  return launch;
}

Launch probe_launch(const LiveCluster& live, const cluster::CableEnd& end, bool is_first, int channel_fd,
                    const MatrixOptions& options) {
  std::vector<std::string> words = probe_words(live, end, is_first, options);
  if (live.is_remote()) {
    return remote_launch(live, end, std::move(words), channel_fd);
  }
  words.insert(words.begin(), std::filesystem::read_symlink("/proc/self/exe").string());
  words.insert(words.end(), {"--channel", std::to_string(channel_fd)});
  Launch launch;
  launch.command = std::move(words);
  NodeEnvironment environment = node_environment(live, end.node);
  // The probe does not look at paths, and a sanitizer's runtime wants no other library before it.
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

/// Until both probes have closed their outputs and ended, or the deadline. True if they have.
bool await(std::array<Probe, 2>& probes, uint64_t deadline_ns) {
  while (base::now_ns() < deadline_ns) {
    std::array<pollfd, 4> polled;
    size_t at = 0;
    for (Probe& probe : probes) {
      polled[at++] = {probe.child.output().get(), POLLIN, 0};
      polled[at++] = {probe.child.error_output().get(), POLLIN, 0};
    }
    const bool is_open = std::any_of(polled.begin(), polled.end(), [](const pollfd& one) { return one.fd >= 0; });
    // The end of a process itself raises nothing here; it follows the end of its outputs at once.
    constexpr int kLookMs = 100;
    ::poll(polled.data(), polled.size(), is_open ? kLookMs : 1);
    for (size_t i = 0; i < probes.size(); ++i) {
      if (polled[2 * i].revents != 0) {
        take_output(probes[i].child.output(), probes[i].output);
      }
      if (polled[2 * i + 1].revents != 0) {
        take_output(probes[i].child.error_output(), probes[i].error_output);
      }
    }
    if (!is_open && probes[0].child.has_ended() && probes[1].child.has_ended()) {
      return true;
    }
  }
  return false;
}

ProbeReport report_of(Probe& probe, double timeout_s) {
  // Of a remote one the output is the channel.
  for (const std::string* text : {&probe.output, &probe.error_output}) {
    if (const std::optional<ProbeReport> report = parse_report(*text)) {
      return *report;
    }
  }
  ProbeReport report;
  std::string said = probe.error_output.substr(0, 300);
  std::replace(said.begin(), said.end(), '\n', ' ');
  report.problem = probe.child.has_ended()
                       ? fmt::format("the measuring program {}; it said: {}", probe.child.end_text(), said)
                       : fmt::format("the measuring program hung and was killed after {} s", timeout_s);
  return report;
}

Direction direction_of(const ProbeReport& mine, const ProbeReport& other, Direction direction) {
  if (!mine.problem.empty()) {
    direction.problem = mine.is_echo && !other.problem.empty() && !other.is_echo ? other.problem : mine.problem;
    return direction;
  }
  direction.state = Direction::State::kMeasured;
  direction.latency_us = static_cast<double>(mine.median_rtt_ns) / 2000.0;
  direction.latency_p99_us = static_cast<double>(mine.p99_rtt_ns) / 2000.0;
  direction.latency_most_us = static_cast<double>(mine.most_rtt_ns) / 2000.0;
  direction.rounds = mine.rounds;
  direction.verified_bytes = mine.verified_bytes;
  direction.bandwidth_gbps =
      static_cast<double>(mine.verified_bytes) * 8.0 / static_cast<double>(std::max<uint64_t>(mine.duration_ns, 1));
  return direction;
}

}  // namespace

const char* state_text(Direction::State state) {
  switch (state) {
    case Direction::State::kMeasured:
      return "measured";
    case Direction::State::kCut:
      return "cut";
    case Direction::State::kFailed:
      break;
  }
  return "failed";
}

std::vector<Direction> measure_cable(const LiveCluster& live, uint32_t index, const MatrixOptions& options) {
  const cluster::Cable& cable = live.model.cables[index];
  std::vector<Direction> directions(2);
  directions[0].cable = directions[1].cable = index;
  directions[0].from = directions[1].to = cable.a;
  directions[0].to = directions[1].from = cable.b;
  live.control.refresh();
  if (live.control.cable_up(index)) {
    int fds[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) {
      throw base::Error(errno, "socketpair", "measurement");
    }
    base::UniqueFd first_fd(fds[0]);
    base::UniqueFd second_fd(fds[1]);
    std::array<Probe, 2> probes{
        Probe{ChildProcess::start(probe_launch(live, cable.a, true, fds[0], options)), "", ""},
        Probe{ChildProcess::start(probe_launch(live, cable.b, false, fds[1], options)), "", ""}};
    first_fd.reset();  // so that an end sees when the other is gone
    second_fd.reset();
    await(probes, base::now_ns() + static_cast<uint64_t>(options.timeout_s * 1e9) + kSlackNs);
    const ProbeReport first = report_of(probes[0], options.timeout_s);
    const ProbeReport second = report_of(probes[1], options.timeout_s);
    directions[0] = direction_of(first, second, directions[0]);
    directions[1] = direction_of(second, first, directions[1]);
  }
  live.control.refresh();
  for (Direction& direction : directions) {
    if (direction.state == Direction::State::kFailed && !live.control.cable_up(index)) {
      direction.state = Direction::State::kCut;  // before, or while we measured
      direction.problem.clear();
    }
  }
  if (cable.a == cable.b) {
    directions.pop_back();  // a loopback plug has one
  }
  return directions;
}

}  // namespace ringbolt::tools
