#include "pair/two_ends.h"

#include <poll.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/resolving.h"
#include "base/say.h"
#include "bootstrap/sockets.h"
#include "cluster/model.h"
#include "cluster_state.h"
#include "failure.h"
#include "pair/device.h"
#include "program_pair.h"
#include "ssh.h"

namespace ringbolt::tools::pair {
namespace {

std::optional<std::string> line_after(std::string_view text, std::string_view begin) {
  const size_t at = text.rfind(begin);
  if (at == std::string_view::npos) {
    return std::nullopt;
  }
  const std::string_view rest = text.substr(at + begin.size());
  return std::string(rest.substr(0, rest.find('\n')));
}

std::string mark(std::string_view command, std::string_view kind) {
  return fmt::format("ringbolt-{} {}: ", command, kind);
}

std::string one_line(std::string_view text) {
  std::string line(text);
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line;
}

/// The ends of the first cable between the two of "A,B", in that order.
std::array<cluster::CableEnd, 2> ends_of(const LiveCluster& live, const std::string& nodes) {
  const size_t comma = nodes.find(',');
  if (comma == std::string::npos || nodes.find(',', comma + 1) != std::string::npos) {
    throw UsageError("--nodes takes two, separated by a comma: --nodes 0,1");
  }
  const uint32_t first = find_node(live.model, nodes.substr(0, comma));
  const uint32_t second = find_node(live.model, nodes.substr(comma + 1));
  const std::vector<uint32_t> cables = cluster::cables_between(live.model, first, second);
  if (cables.empty()) {
    throw UsageError(fmt::format("there is no cable between {} and {}; `ringbolt status` shows which there are",
                                 live.model.nodes[first].name, live.model.nodes[second].name));
  }
  const cluster::Cable& cable = live.model.cables[cables.front()];
  return cable.a.node == first ? std::array{cable.a, cable.b} : std::array{cable.b, cable.a};
}

std::string name_of(const LiveCluster& live, const cluster::CableEnd& end) {
  return "node " + live.model.nodes[end.node].name;
}

/// On all addresses of this machine.
Meeting await_client(uint16_t port, double timeout_s) {
  bootstrap::Listening listening;
  try {
    listening = bootstrap::Listening::open("", port, "");
  } catch (const base::Error& error) {
    throw ProbeFailure(fmt::format("can't listen on TCP port {}: {}; give both ends another with -p", port,
                                   base::reason_of(error.errno_value())));
  }
  pollfd polled{listening.sockets.front().get(), POLLIN, 0};
  if (::poll(&polled, 1, static_cast<int>(timeout_s * 1000)) == 0) {
    throw ProbeFailure(fmt::format(
        "waited {:.1f} s for a client on TCP port {} and none came (--timeout gives it longer)", timeout_s, port));
  }
  bootstrap::Accepted accepted = bootstrap::accept_from(polled.fd);
  if (accepted.error != 0) {
    throw ProbeFailure(fmt::format("accept on TCP port {}: {}", port, base::reason_of(accepted.error)));
  }
  return {std::move(accepted.socket), host_of_peer(accepted.peer)};
}

Meeting go_to_server(const std::string& command, const std::string& host, uint16_t port, double timeout_s) {
  // For a server that was started together with us.
  constexpr uint64_t kStartNs = 2'000'000'000;
  const uint64_t begin = base::now_ns();
  const auto most_ns = static_cast<uint64_t>(timeout_s * 1e9);
  while (true) {
    bootstrap::Dialled dialled = bootstrap::dial({host, port}, begin + most_ns);
    if (dialled.error == 0) {
      return {std::move(dialled.socket), host};
    }
    if (dialled.peer.empty()) {
      throw ProbeFailure("no host " + dialled.problem);
    }
    const uint64_t patience_ns = dialled.error == ETIMEDOUT      ? most_ns
                                 : dialled.error == ECONNREFUSED ? std::min(kStartNs, most_ns)
                                                                 : 0;
    if (base::now_ns() - begin >= patience_ns) {
      throw ProbeFailure(
          fmt::format("no connection to {} on TCP port {}: {}; is `ringbolt {}` waiting there, and on "
                      "this port (-p)?",
                      host, port, base::reason_of(dialled.error), command));
    }
    // Between two tries.
    constexpr timespec kPause{0, 20'000'000};
    ::nanosleep(&kPause, nullptr);
  }
}

}  // namespace

std::string emit_result_line(std::string_view command, std::string_view result) {
  return fmt::format("{}{}\n", mark(command, "result"), result);
}

std::string emit_failure_line(std::string_view command, std::string_view problem, bool is_echo) {
  return fmt::format("{}{}\n", mark(command, is_echo ? "echo" : "failed"), one_line(problem));
}

EndOutcome outcome_of(std::string_view command, const ProgramEnd& end) {
  for (const std::string* text : {&end.output, &end.error_output}) {
    if (auto line = line_after(*text, mark(command, "result"))) {
      return {std::move(*line), "its result makes no sense", false};
    }
    for (const bool is_echo : {false, true}) {
      if (auto line = line_after(*text, mark(command, is_echo ? "echo" : "failed"))) {
        return {std::nullopt, std::move(*line), is_echo};
      }
    }
  }
  if (end.end_text.empty()) {
    return {std::nullopt, std::string(kHung), false};
  }
  const bool is_cut_off = end.exit_code == kSshFailed;  // ringbolt itself never ends so
  const std::string how = is_cut_off ? "was killed there, or ssh has lost the connection" : end.end_text;
  const std::string said = one_line(end.error_output.substr(0, 300));
  return {std::nullopt, fmt::format("it {}{}{}", how, said.empty() ? "" : "; it said: ", said), false};
}

NodeRun run_on_nodes(std::string_view command, const PairOptions& options, double most_s, Progress& progress) {
  const LiveCluster live = open_cluster(options.cluster);
  if (!live.is_remote()) {
    (void)verbs_path(options.verbs);  // refuses before anything is started
  }
  const auto [client, server] = ends_of(live, options.nodes);
  const std::string client_name = name_of(live, client);
  const std::string server_name = name_of(live, server);
  const auto words_of = [&](const cluster::CableEnd& end, const char* which, const std::string& other) {
    std::vector<std::string> words = options.words;
    words.insert(words.end(), {"--end", which, "--peer", other, "-d", live.model.nodes[end.node].ports[end.port].name});
    return words;
  };
  std::vector<std::string> client_words = words_of(client, "client", server_name);
  if (progress.is_shown()) {
    client_words.emplace_back("--tell-progress");
  }
  const uint64_t deadline_ns = base::now_ns() + static_cast<uint64_t>(std::min(most_s, 1e9) * 1e9);
  const std::array<ProgramEnd, 2> programs = run_pair(
      live, {client, server}, {client_words, words_of(server, "server", client_name)}, deadline_ns, watch_of(progress));
  EndOutcome mine = outcome_of(command, programs[0]);
  const EndOutcome theirs = outcome_of(command, programs[1]);
  const bool is_theirs = mine.is_echo && !theirs.result && !theirs.is_echo;  // they failed first
  std::string problem =
      fmt::format("{}: {}", is_theirs ? server_name : client_name, is_theirs ? theirs.problem : mine.problem);
  return {std::move(mine.result), std::move(problem)};
}

std::string objection_to_host(const std::string& host) {
  constexpr uint64_t kPatienceNs = 30'000'000'000;
  std::string problem = base::resolve(host, 0, false, base::now_ns() + kPatienceNs).problem;
  const std::string begin = host + ": ";  // who calls has named it
  return problem.starts_with(begin) ? problem.substr(begin.size()) : problem;
}

std::string host_of_peer(std::string_view peer) {
  if (peer.starts_with('[')) {
    return std::string(peer.substr(1, peer.find(']') - 1));
  }
  return std::string(peer.substr(0, peer.rfind(':')));
}

Meeting meet(const std::string& command, const PairOptions& options) {
  if (!options.host.empty()) {
    return go_to_server(command, options.host, options.tcp_port, options.timeout_s);
  }
  base::say(fmt::format("ringbolt {}: waiting for a client on TCP port {}\n", command, options.tcp_port));
  return await_client(options.tcp_port, options.timeout_s);
}

Peer peer_at(const Meeting& meeting, uint64_t timeout_ns) {
  return {Channel(meeting.fd.get(), meeting.fd.get()), meeting.peer, timeout_ns};
}

Peer peer_of_end(const EndOptions& options, uint64_t timeout_ns) {
  const bool has_channel = options.channel_fd >= 0;
  return {Channel(has_channel ? options.channel_fd : STDIN_FILENO, has_channel ? options.channel_fd : STDOUT_FILENO),
          options.peer, timeout_ns};
}

std::FILE* output_of_end(const EndOptions& options) { return options.channel_fd >= 0 ? stdout : stderr; }

std::string first_of(std::initializer_list<Objection> objections) {
  const auto found = std::ranges::find_if(objections, &Objection::holds);
  return found == objections.end() ? "" : found->text;
}

void refuse(const std::string& objection) {
  if (!objection.empty()) {
    throw UsageError(objection);
  }
}

void refuse_two_meetings(const PairOptions& options) {
  if (!options.end.empty()) {
    return;  // its command line is that of who started it, and more
  }
  const bool has_nodes = !options.nodes.empty();
  refuse(first_of({
      {has_nodes && !options.host.empty(), "HOST and --nodes both say where the other end is: give one of them"},
      {has_nodes && !options.device.empty(), "--nodes takes the devices of the cable between them: leave out -d"},
      {!has_nodes && !options.cluster.empty(),
       "--cluster says where to look for --nodes: give --nodes A,B too, or leave it out"},
  }));
}

PortChoice port_choice_of(const PairOptions& options) {
  PortChoice choice;
  choice.mtu_bytes = options.mtu_bytes;
  choice.timeout_code = static_cast<uint8_t>(options.timeout_code);
  choice.retry_count = static_cast<uint8_t>(options.retry_count);
  choice.port = static_cast<uint8_t>(options.device_port);
  choice.gid_index = options.gid_index.value_or(-1);
  return choice;
}

}  // namespace ringbolt::tools::pair
