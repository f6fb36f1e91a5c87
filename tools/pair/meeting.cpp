#include "pair/meeting.h"

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
#include <cerrno>
#include <cstring>
#include <memory>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/say.h"
#include "failure.h"

namespace ringbolt::tools::pair {
namespace {

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

}  // namespace ringbolt::tools::pair
