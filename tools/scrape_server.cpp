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
#include <cstdio>
#include <cstring>
#include <memory>
#include <string_view>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/unique_fd.h"
#include "failure.h"

namespace ringbolt::tools {
namespace {

constexpr uint64_t kRequestPatienceNs = 3'000'000'000;
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

/// getaddrinfo() takes 99999, and makes 34463 of it.
void check_port(const std::string& option, const std::string& address, const std::string& port) {
  uint16_t number = 0;
  const char* const end = port.data() + port.size();
  const auto [stop, error] = std::from_chars(port.data(), end, number);
  if (error != std::errc{} || stop != end) {
    throw UsageError(fmt::format("{} {}: give a port from 1 to 65535, or 0 for any that is free, not \"{}\"", option,
                                 address, port));
  }
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
    return;  // it has gone again
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

}  // namespace

base::UniqueFd listen_for_pages(const std::string& option, const std::string& address) {
  const auto [host, port] = split_address(option, address);
  check_port(option, address, port);
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.c_str(), port.c_str(), &wanted, &found); error != 0) {
    throw UsageError(fmt::format("{} {}: {}", option, address, gai_strerror(error)));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> addresses(found, &freeaddrinfo);
  base::UniqueFd listener(socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int is_on = 1;
  if (!listener.is_open() || setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &is_on, sizeof is_on) != 0 ||
      bind(listener.get(), found->ai_addr, found->ai_addrlen) != 0 || listen(listener.get(), kBacklog) != 0) {
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

}  // namespace ringbolt::tools
