#include "scrape_server.h"

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/resolving.h"
#include "base/unique_fd.h"
#include "cluster/counter_page.h"
#include "failure.h"
#include "version.h"

namespace ringbolt::tools {
namespace {

constexpr uint64_t kRequestPatienceNs = 3'000'000'000;
constexpr uint64_t kResolvePatienceNs = 5'000'000'000;
constexpr size_t kMostRequestBytes = 8192;
constexpr int kBacklog = 16;

struct HostAndPort {
  std::string host;
  std::string port;
};

HostAndPort split_address(const std::string& option, const std::string& address) {
  const size_t colon = address.rfind(':');
  const bool is_bracketed = address.starts_with('[');
  if (colon == std::string::npos || colon == 0 || colon + 1 == address.size() ||
      (is_bracketed && (colon < 2 || address[colon - 1] != ']')) || (!is_bracketed && address.find(':') != colon)) {
    throw UsageError(
        fmt::format("{} \"{}\" is no ADDRESS:PORT; for example 127.0.0.1:9315 or [::1]:9315", option, address));
  }
  return {is_bracketed ? address.substr(1, colon - 2) : address.substr(0, colon), address.substr(colon + 1)};
}

uint16_t port_of(const std::string& option, const std::string& address, const std::string& port) {
  uint16_t number = 0;
  const char* const end = port.data() + port.size();
  const auto [stop, error] = std::from_chars(port.data(), end, number);
  if (error != std::errc{} || stop != end) {
    throw UsageError(fmt::format("{} {}: give a port from 1 to 65535, or 0 for any that is free, not \"{}\"", option,
                                 address, port));
  }
  return number;
}

std::string text_of(int listener) {
  sockaddr_storage name{};
  socklen_t length = sizeof name;
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> port{};
  auto* address = reinterpret_cast<sockaddr*>(&name);
  if (getsockname(listener, address, &length) != 0 ||
      getnameinfo(address, length, host.data(), host.size(), port.data(), port.size(),
                  NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return "?";
  }
  const bool is_ipv6 = name.ss_family == AF_INET6;
  return fmt::format("{}{}{}:{}", is_ipv6 ? "[" : "", host.data(), is_ipv6 ? "]" : "", port.data());
}

/// Until `fd` is ready; false at the deadline.
bool wait_for(int fd, short events, uint64_t deadline_ns) {
  for (uint64_t now = base::now_ns(); now < deadline_ns; now = base::now_ns()) {
    pollfd one{fd, events, 0};
    const int ready = poll(&one, 1, static_cast<int>((deadline_ns - now) / 1'000'000) + 1);
    if (ready > 0 || (ready < 0 && errno != EINTR)) {
      return ready > 0;
    }
  }
  return false;
}

/// Up to the empty line that ends it; empty: there was none in time.
std::string read_request(int client, uint64_t deadline_ns) {
  std::string request;
  while (request.find("\r\n\r\n") == std::string::npos) {
    std::array<char, 1024> bytes;
    if (request.size() > kMostRequestBytes || !wait_for(client, POLLIN, deadline_ns)) {
      return "";
    }
    const ssize_t got = recv(client, bytes.data(), bytes.size(), 0);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
      return "";
    }
    request.append(bytes.data(), static_cast<size_t>(std::max<ssize_t>(got, 0)));
  }
  return request;
}

void write_all(int client, std::string_view text, uint64_t deadline_ns) {
  while (!text.empty() && wait_for(client, POLLOUT, deadline_ns)) {
    const ssize_t sent = send(client, text.data(), text.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN && errno != EINTR) {
      return;
    }
    text.remove_prefix(static_cast<size_t>(std::max<ssize_t>(sent, 0)));
  }
}

std::string response(std::string_view status, std::string_view body, bool has_body) {
  return fmt::format(
      "HTTP/1.1 {}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: {}\r\n"
      "Connection: close\r\n\r\n{}",
      status, body.size(), has_body ? body : "");
}

std::string answer(std::string_view request, const std::function<Page()>& page) {
  const std::string_view line = request.substr(0, request.find("\r\n"));
  const std::string_view method = line.substr(0, line.find(' '));
  const size_t begin = std::min(line.size(), method.size() + 1);
  const std::string_view target = line.substr(begin, line.find(' ', begin) - begin);
  if (method != "GET" && method != "HEAD") {
    return response("405 Method Not Allowed", "only GET\n", true);
  }
  if (target.substr(0, target.find('?')) != "/metrics") {
    return response("404 Not Found", "the counters are at /metrics\n", method == "GET");
  }
  const Page current = page();
  return response(current.is_whole ? "200 OK" : "503 Service Unavailable", current.text, method == "GET");
}

void serve_one(int listener, const std::function<Page()>& page) {
  const base::UniqueFd client(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!client.is_open()) {
    // It has gone again; or no descriptor is left, and it waits on: as often as poll() says so would be all the time.
    constexpr int kPauseMs = 100;
    poll(nullptr, 0, errno == EMFILE || errno == ENFILE ? kPauseMs : 0);
    return;
  }
  const uint64_t deadline = base::now_ns() + kRequestPatienceNs;
  if (const std::string request = read_request(client.get(), deadline); !request.empty()) {
    const std::string text = answer(request, page);  // which may take longer than a reader is given
    write_all(client.get(), text, base::now_ns() + kRequestPatienceNs);
  }
}

base::UniqueFd take_signals() {
  sigset_t ends;
  sigemptyset(&ends);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    sigaddset(&ends, signal);
  }
  base::UniqueFd signals;
  if (sigprocmask(SIG_BLOCK, &ends, nullptr) == 0) {
    signals.reset(signalfd(-1, &ends, SFD_CLOEXEC));
  }
  if (!signals.is_open()) {
    throw base::Error(errno, "signalfd", "signals", "look at the limit of open files (ulimit -n)");
  }
  return signals;
}

/// How a counter of the kernel's is told. Its value times `scale`.
struct Metric {
  const char* name;     ///< without "ringbolt_"
  const char* counter;  ///< where it is in several folders, their counts are the same
  const char* help;
  uint64_t scale = 1;
};

constexpr Metric kMetrics[] = {
    {"port_data_transmitted_bytes_total", "port_xmit_data", "Bytes of InfiniBand packets sent", 4},
    {"port_data_received_bytes_total", "port_rcv_data", "Bytes of InfiniBand packets received", 4},
    {"port_packets_transmitted_total", "port_xmit_packets", "Packets sent"},
    {"port_packets_received_total", "port_rcv_packets", "Packets received"},
    {"unicast_packets_transmitted_total", "unicast_xmit_packets", "Unicast packets sent"},
    {"unicast_packets_received_total", "unicast_rcv_packets", "Unicast packets received"},
    {"multicast_packets_transmitted_total", "multicast_xmit_packets", "Multicast packets sent"},
    {"multicast_packets_received_total", "multicast_rcv_packets", "Multicast packets received"},
    {"port_errors_received_total", "port_rcv_errors", "Packets received damaged or without a buffer"},
    {"port_constraint_errors_received_total", "port_rcv_constraint_errors", "Packets received of a foreign partition"},
    {"port_constraint_errors_transmitted_total", "port_xmit_constraint_errors",
     "Packets not sent because of their partition"},
    {"port_discards_transmitted_total", "port_xmit_discards", "Packets that could not be sent"},
    {"port_transmit_wait_total", "port_xmit_wait", "Microseconds that packets waited for room"},
    {"port_remote_physical_errors_received_total", "port_rcv_remote_physical_errors", "Packets marked bad by a switch"},
    {"port_switch_relay_errors_received_total", "port_rcv_switch_relay_errors",
     "Packets that a switch could not forward"},
    {"symbol_error_total", "symbol_error", "Symbols received damaged"},
    {"link_downed_total", "link_downed", "Times that the port's cable was cut"},
    {"link_error_recovery_total", "link_error_recovery", "Times that the link recovered"},
    {"local_link_integrity_errors_total", "local_link_integrity_errors", "Local link integrity errors"},
    {"excessive_buffer_overrun_errors_total", "excessive_buffer_overrun_errors", "Excessive buffer overruns"},
    {"vl15_dropped_total", "VL15_dropped", "Subnet management packets dropped"},
    {"rdma_sends_total", "rdma_sends", "SENDs begun"},
    {"rdma_receives_total", "rdma_recvs", "Receives completed"},
    {"rx_write_requests_total", "rx_write_requests", "WRITE requests received"},
    {"rx_read_requests_total", "rx_read_requests", "READ requests received"},
    {"rx_atomic_requests_total", "rx_atomic_requests", "Atomic requests received"},
    {"duplicate_requests_packets_total", "duplicate_request", "Requests received once more"},
    {"out_of_sequence_packets_received_total", "out_of_sequence", "Requests received before an earlier one"},
    {"out_of_buffer_drops_total", "out_of_buffer", "Messages that found no receive posted"},
    {"rnr_nak_sent_packets_total", "send_rnr_err", "Senders told that no receive is posted"},
    {"rnr_nak_retry_packets_total", "rnr_nak_retry_err", "Times told that no receive is posted"},
    {"packet_sequence_errors_total", "packet_seq_err", "NAKs of a wrong sequence received"},
    {"implied_nak_seq_errors_total", "implied_nak_seq_err", "Gaps in answers received"},
    {"local_ack_timeout_errors_total", "local_ack_timeout_err", "Times that the transport timer ran out"},
    {"retransmitted_packets_total", "completer_retry_err", "Requests sent again"},
    {"roce_adp_retransmits_total", "roce_adp_retrans", "Times asked early what is missing"},
    {"retry_exceeded_errors_total", "retry_exceeded_err", "Sends ended: no answer after all retries"},
    {"rnr_retry_exceeded_errors_total", "retry_rnr_exceeded_err", "Sends ended: no receive posted after all retries"},
    {"req_cqes_errors_total", "req_cqe_error", "Sends completed with an error"},
    {"req_cqes_flush_errors_total", "req_cqe_flush_error", "Sends flushed"},
    {"req_remote_access_errors_total", "req_remote_access_errors", "Sends refused: remote access"},
    {"req_remote_invalid_request_errors_total", "req_remote_invalid_request", "Sends refused: invalid request"},
    {"resp_cqes_errors_total", "resp_cqe_error", "Receives completed with an error"},
    {"resp_cqes_flush_errors_total", "resp_cqe_flush_error", "Receives flushed"},
    {"resp_local_length_errors_total", "resp_local_length_error", "Messages longer than their receive"},
    {"resp_remote_access_errors_total", "resp_remote_access_errors", "Accesses of peers refused"},
    {"icrc_encapsulated_errors_total", "rx_icrc_encapsulated", "Packets received with a wrong ICRC"},
    {"rx_drops_total", "rx_drops", "Packets received that came to nothing"},
    {"rx_pulled_sends_total", "rx_pulled_sends", "SENDs read in their sender's memory"},
};

size_t place_of(const Metric& metric) {
  const auto all = cluster::all_counters();
  for (size_t i = 0; i < all.size(); ++i) {
    if (std::string_view(all[i].name) == metric.counter) {
      return i;
    }
  }
  RINGBOLT_ASSERT(false);  // the tables go together
  return 0;
}

std::string labels_of(const PortCounts& port) {
  return fmt::format("cluster=\"{}\",node=\"{}\",device=\"{}\",port=\"1\"", escaped_label(port.cluster),
                     escaped_label(port.node), escaped_label(port.device));
}

using ValueOf = std::function<std::optional<uint64_t>(const PortCounts&)>;

void add_metric(std::string& text, std::string_view name, std::string_view type, std::string_view help,
                const std::vector<PortCounts>& ports, const ValueOf& value_of) {
  text += fmt::format("# HELP ringbolt_{} {}\n# TYPE ringbolt_{} {}\n", name, help, name, type);
  for (const PortCounts& port : ports) {
    if (const std::optional<uint64_t> value = value_of(port)) {
      text += fmt::format("ringbolt_{}{{{}}} {}\n", name, labels_of(port), *value);
    }
  }
}

}  // namespace

base::UniqueFd listen_for_pages(const std::string& option, const std::string& address) {
  const auto [host, port_text] = split_address(option, address);
  const uint16_t port = port_of(option, address, port_text);
  const base::Resolved resolved = base::resolve(host, port, false, base::now_ns() + kResolvePatienceNs);
  if (resolved.addresses.empty()) {
    throw UsageError(fmt::format("{} {}: {}", option, address, resolved.problem));
  }
  const base::SocketAddress& place = resolved.addresses.front();
  base::UniqueFd listener(socket(place.get()->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int is_on = 1;
  if (!listener.is_open() || setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &is_on, sizeof is_on) != 0 ||
      bind(listener.get(), place.get(), place.length) != 0 || listen(listener.get(), kBacklog) != 0) {
    throw UsageError(fmt::format("{} {}: {}; choose another address", option, address, base::reason_of(errno)));
  }
  return listener;
}

std::string page_address(int listener) { return fmt::format("http://{}/metrics", text_of(listener)); }

void serve_pages(int listener, int end, const std::function<Page()>& page) {
  for (;;) {
    std::array<pollfd, 2> waits{{{listener, POLLIN, 0}, {end, POLLIN, 0}}};
    if (poll(waits.data(), waits.size(), -1) < 0 && errno != EINTR) {
      throw base::Error(errno, "poll", page_address(listener));
    }
    if (waits[1].revents != 0) {
      return;
    }
    if (waits[0].revents != 0) {
      serve_one(listener, page);
    }
  }
}

void serve_page(const std::string& address, const std::function<Page()>& page) {
  const base::UniqueFd signals = take_signals();
  const base::UniqueFd listener = listen_for_pages("--listen", address);
  fmt::print("{}\n", page_address(listener.get()));
  std::fflush(stdout);
  serve_pages(listener.get(), signals.get(), page);
}

std::string escaped_label(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '\n') {
      result += "\\n";
    } else {
      result += c == '\\' || c == '"' ? std::string{'\\', c} : std::string{c};
    }
  }
  return result;
}

std::string build_exposition() {
  return fmt::format(
      "# HELP ringbolt_build_info 1; the labels tell which release\n# TYPE ringbolt_build_info gauge\n"
      "ringbolt_build_info{{version=\"{}\"}} 1\n",
      kVersion);
}

std::string exposition(const std::vector<PortCounts>& ports) {
  std::string text = build_exposition();
  add_metric(text, "port_up", "gauge", "1: the port's cable is plugged in; 0: it is cut", ports,
             [](const PortCounts& port) {
               return port.state.empty() ? std::nullopt : std::optional<uint64_t>(port.state == "up" ? 1 : 0);
             });
  add_metric(text, "port_rate_bytes_per_second", "gauge", "What the port says that its cable can do", ports,
             [](const PortCounts& port) {
               constexpr uint64_t kGigabit = 125'000'000;
               return port.speed_gbps == 0 ? std::nullopt : std::optional<uint64_t>(port.speed_gbps * kGigabit);
             });
  for (const Metric& metric : kMetrics) {
    const size_t place = place_of(metric);
    add_metric(text, metric.name, "counter", metric.help, ports,
               [&](const PortCounts& port) { return std::optional<uint64_t>(port.values[place] * metric.scale); });
  }
  return text;
}

}  // namespace ringbolt::tools
