#include "pair/two_ends.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/say.h"
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

struct FreeAddresses {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

std::string text_of(const sockaddr_storage& address, socklen_t length) {
  char host[NI_MAXHOST] = "";
  ::getnameinfo(reinterpret_cast<const sockaddr*>(&address), length, host, sizeof host, nullptr, 0, NI_NUMERICHOST);
  const std::string text = host;
  constexpr const char* kMapped = "::ffff:";
  return text.rfind(kMapped, 0) == 0 ? text.substr(std::strlen(kMapped)) : text;
}

/// Texts are short and awaited.
void send_at_once(int fd) {
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

/// A socket that listens for IPv6 and IPv4; where there is no IPv6, for IPv4.
base::UniqueFd listening_socket(uint16_t port) {
  int error = 0;
  for (const int family : {AF_INET6, AF_INET}) {
    base::UniqueFd fd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!fd.is_open()) {
      error = errno;
      continue;
    }
    const int on = 1;
    const int off = 0;
    ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in6 any6{};
    any6.sin6_family = AF_INET6;
    any6.sin6_port = htons(port);
    sockaddr_in any4{};
    any4.sin_family = AF_INET;
    any4.sin_port = htons(port);
    const bool is_6 = family == AF_INET6;
    if (is_6) {
      ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    }
    const auto* address = is_6 ? reinterpret_cast<const sockaddr*>(&any6) : reinterpret_cast<const sockaddr*>(&any4);
    if (::bind(fd.get(), address, is_6 ? sizeof any6 : sizeof any4) == 0 && ::listen(fd.get(), 1) == 0) {
      return fd;
    }
    error = errno;
    if (error == EADDRINUSE) {
      break;
    }
  }
  throw ProbeFailure(
      fmt::format("can't listen on TCP port {}: {}; give both ends another with -p", port, base::reason_of(error)));
}

/// Connects within so many milliseconds; else returns an errno.
int connect_in_time(int fd, const addrinfo& address, int most_ms) {
  if (::connect(fd, address.ai_addr, address.ai_addrlen) == 0) {
    return 0;
  }
  if (errno != EINPROGRESS) {
    return errno;
  }
  pollfd polled{fd, POLLOUT, 0};
  if (::poll(&polled, 1, most_ms) == 0) {
    return ETIMEDOUT;
  }
  int error = 0;
  socklen_t length = sizeof error;
  ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length);
  return error;
}

/// On all addresses of this machine.
Meeting await_client(uint16_t port, double timeout_s) {
  const base::UniqueFd listener = listening_socket(port);
  pollfd polled{listener.get(), POLLIN, 0};
  if (::poll(&polled, 1, static_cast<int>(timeout_s * 1000)) == 0) {
    throw ProbeFailure(
        fmt::format("waited {:.1f} s for a client on TCP port {} and none came (--timeout gives it "
                    "longer)",
                    timeout_s, port));
  }
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  base::UniqueFd fd(::accept4(listener.get(), reinterpret_cast<sockaddr*>(&address), &length, SOCK_CLOEXEC));
  if (!fd.is_open()) {
    throw ProbeFailure(fmt::format("accept on TCP port {}: {}", port, base::reason_of(errno)));
  }
  send_at_once(fd.get());
  return {std::move(fd), text_of(address, length)};
}

Meeting go_to_server(const std::string& command, const std::string& host, uint16_t port, double timeout_s) {
  // For a server that was started together with us.
  constexpr uint64_t kStartNs = 2'000'000'000;
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found)) {
    throw ProbeFailure(fmt::format("no host {}: {}", host, ::gai_strerror(error)));
  }
  const Addresses addresses(found);
  const uint64_t begin = base::now_ns();
  const auto most_ns = static_cast<uint64_t>(timeout_s * 1e9);
  while (true) {
    int error = 0;
    for (const addrinfo* one = addresses.get(); one != nullptr; one = one->ai_next) {
      base::UniqueFd fd(::socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      const uint64_t waited = base::now_ns() - begin;
      const auto left_ms = static_cast<int>((most_ns - std::min(waited, most_ns)) / 1'000'000);
      error = fd.is_open() ? connect_in_time(fd.get(), *one, left_ms) : errno;
      if (error == 0) {
        ::fcntl(fd.get(), F_SETFL, 0);
        send_at_once(fd.get());
        return {std::move(fd), host};
      }
    }
    if (error != ECONNREFUSED || base::now_ns() - begin > std::min(kStartNs, most_ns)) {
      throw ProbeFailure(
          fmt::format("no connection to {} on TCP port {}: {}; is `ringbolt {}` waiting there, and on "
                      "this port (-p)?",
                      host, port, base::reason_of(error), command));
    }
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
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(host.c_str(), nullptr, nullptr, &found);
  const Addresses addresses(error == 0 ? found : nullptr);
  return error == 0 ? "" : ::gai_strerror(error);
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

void refuse_two_meetings(const PairOptions& options) {
  if (!options.end.empty()) {
    return;  // its command line is that of who started it, and more
  }
  if (!options.nodes.empty() && !options.host.empty()) {
    throw UsageError("HOST and --nodes both say where the other end is: give one of them");
  }
  if (!options.nodes.empty() && !options.device.empty()) {
    throw UsageError("--nodes takes the devices of the cable between them: leave out -d");
  }
  if (options.nodes.empty() && !options.cluster.empty()) {
    throw UsageError("--cluster says where to look for --nodes: give --nodes A,B too, or leave it out");
  }
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
