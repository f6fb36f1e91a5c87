#include "bootstrap/sockets.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/tcp_meaning.h"

namespace ringbolt::bootstrap {
namespace {

std::string describe(const Address& address) {
  // Numeric, so that no name server is asked.
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> port{};
  if (::getnameinfo(address.get(), address.length, host.data(), host.size(), port.data(), port.size(),
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return "an unknown address";
  }
  const std::string_view text(host.data());
  constexpr std::string_view kMapped = "::ffff:";
  // A socket for both families shows IPv4 peers as mapped addresses (ipv6(7)).
  const bool is_mapped = text.substr(0, kMapped.size()) == kMapped && text.find('.') != std::string_view::npos;
  const std::string plain(is_mapped ? text.substr(kMapped.size()) : text);
  return plain.find(':') == std::string::npos ? fmt::format("{}:{}", plain, port.data())
                                              : fmt::format("[{}]:{}", plain, port.data());
}

Address any_address(sa_family_t family, uint16_t port) {
  Address address;
  if (family == AF_INET6) {
    auto* v6 = reinterpret_cast<sockaddr_in6*>(&address.bytes);
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    v6->sin6_addr = in6addr_any;
    address.length = sizeof(sockaddr_in6);
  } else {
    auto* v4 = reinterpret_cast<sockaddr_in*>(&address.bytes);
    v4->sin_family = AF_INET;
    v4->sin_port = htons(port);
    address.length = sizeof(sockaddr_in);
  }
  return address;
}

void set_port(Address& address, uint16_t port) {
  if (address.get()->sa_family == AF_INET6) {
    reinterpret_cast<sockaddr_in6*>(&address.bytes)->sin6_port = htons(port);
  } else {
    reinterpret_cast<sockaddr_in*>(&address.bytes)->sin_port = htons(port);
  }
}

// Where an option is not to be had, all works without it.
void set(int fd, int level, int option, int value) { ::setsockopt(fd, level, option, &value, sizeof value); }

// getsockname() of a bound socket can't fail; 0 would be told as the port.
uint16_t port_of(int fd) {
  Address own;
  ::getsockname(fd, own.get(), &own.length);
  return ntohs(own.get()->sa_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6*>(&own.bytes)->sin6_port
                                                : reinterpret_cast<const sockaddr_in*>(&own.bytes)->sin_port);
}

/// Adds a socket that listens at `address`. An errno or 0.
int listen_at(Address address, bool is_dual, Listening& listening) {
  // Of several addresses all listen at the port that the first one got.
  if (listening.port != 0) {
    set_port(address, listening.port);
  }
  base::UniqueFd fd(::socket(address.get()->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.is_open()) {
    return errno;
  }
  // Connections of an earlier run may be in TIME_WAIT at this port (socket(7)).
  set(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (address.get()->sa_family == AF_INET6) {
    // Else it would take IPv4's port, too, and the second socket would find it taken.
    set(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, is_dual ? 0 : 1);
  }
  if (::bind(fd.get(), address.get(), address.length) != 0 || ::listen(fd.get(), SOMAXCONN) != 0) {
    return errno;
  }
  listening.port = port_of(fd.get());
  set_port(address, listening.port);
  listening.where += (listening.where.empty() ? "" : " and ") + describe(address);
  listening.sockets.push_back(std::move(fd));
  return 0;
}

/// All addresses of a host, if they are this machine's. An errno or 0; 0 if at least one could be had.
int listen_at_each(const Resolved& resolved, Listening& listening) {
  int error = resolved.error == 0 ? EADDRNOTAVAIL : resolved.error;
  for (const Address& address : resolved.addresses) {
    const int failed = listen_at(address, false, listening);
    // One address that works makes up for others that don't, as a host's name may have addresses of other families.
    error = failed == 0 || listening.sockets.empty() ? failed : error;
    // To listen at some of the addresses alone would split the ranks between two programs.
    if (failed == EADDRINUSE) {
      return failed;
    }
  }
  return listening.sockets.empty() ? error : 0;
}

/// What to do when listening has failed.
std::string remedy_of(int error, uint16_t port) {
  switch (error) {
    case EADDRINUSE:
      return "another program, or another rank 0, has that port: end it, or take another port on all ranks";
    case EADDRNOTAVAIL:
      return "this machine has no such address (`ip address` lists those that it has): correct RINGBOLT_BIND, or unset "
             "it";
    case EACCES:
    case EPERM:
      return port < 1024 ? "ports below 1024 are for root: take one from 1024 to 65535 on all ranks"
                         : "this user may not listen: take another port, or look at what confines the program";
    case EINVAL:
      return "an address that begins with fe80: needs its interface: fe80::1%eth0";
    case EAFNOSUPPORT:
      return "this machine has no addresses of this kind: take an IPv4 address";
    case ETIMEDOUT:  // of "localhost"
      return "give an address instead of a name, or look at /etc/resolv.conf";
    case EMFILE:
    case ENFILE:
      return "no descriptor is left: ulimit -n";
    default:
      return "take another address or port";
  }
}

}  // namespace

Listening Listening::open(const std::string& host, uint16_t port, const std::string& bind_address, uint64_t deadline_ns,
                          const LookUp& look_up) {
  Listening listening;
  listening.port = port;
  int error = 0;
  std::string problem;
  if (!bind_address.empty()) {
    const Resolved resolved = resolve(bind_address, port, false, deadline_ns, look_up);
    error = listen_at_each(resolved, listening);
    problem = resolved.problem;
  } else {
    error = listen_at_each(resolve(host, port, host != "localhost", deadline_ns, look_up), listening);
    // Not after EADDRINUSE: everywhere the port would be taken as well, or be somebody else's.
    if (error == EADDRNOTAVAIL || error == EAFNOSUPPORT) {
      // `host` is the others' word for this machine, behind an address translation, say. One socket for both
      // families; without IPv6 in the kernel one for IPv4.
      error = listen_at(any_address(AF_INET6, port), true, listening);
      if (error != 0 && error != EADDRINUSE) {
        error = listen_at(any_address(AF_INET, port), false, listening);
      }
    }
  }
  if (error != 0) {
    throw base::Error(error, problem.empty() ? "listen" : "listen: " + problem,
                      fmt::format("rank 0 at {}", to_text({bind_address.empty() ? host : bind_address, port})),
                      problem.empty() ? remedy_of(error, port) : "give RINGBOLT_BIND an address instead of a name");
  }
  return listening;
}

Listening Listening::everywhere() {
  Listening listening;
  int error = listen_at(any_address(AF_INET6, 0), true, listening);
  if (error != 0) {
    error = listen_at(any_address(AF_INET, 0), false, listening);
  }
  if (error != 0) {
    throw base::Error(error, "listen", "all addresses of this machine", remedy_of(error, UINT16_MAX));
  }
  return listening;
}

Accepted accept_from(int listening_fd) {
  Accepted accepted;
  Address peer;
  // Never blocks: EAGAIN when nobody waits (accept(2) allows both names).
  accepted.socket.reset(::accept4(listening_fd, peer.get(), &peer.length, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!accepted.socket.is_open()) {
    accepted.error = errno == EWOULDBLOCK ? EAGAIN : errno;
    return accepted;
  }
  set(accepted.socket.get(), IPPROTO_TCP, TCP_NODELAY, 1);
  accepted.peer = describe(peer);
  return accepted;
}

namespace {

bool is_connected_to_itself(int fd) {
  Address own;
  Address peer;
  return ::getsockname(fd, own.get(), &own.length) == 0 && ::getpeername(fd, peer.get(), &peer.length) == 0 &&
         own.length == peer.length && std::memcmp(&own.bytes, &peer.bytes, own.length) == 0;
}

/// An errno or 0.
int connect_to(const Address& address, uint64_t deadline_ns, base::UniqueFd& out) {
  Begun begun = begin_dialling(address);
  if (begun.error != 0) {
    return begun.error;
  }
  pollfd waiting{begun.socket.get(), POLLOUT, 0};
  int ready = 0;
  do {
    // After a signal the rest of the time is waited for, not all of it again.
    ready = ::poll(&waiting, 1, milliseconds_until(deadline_ns, 2000));
  } while (ready < 0 && errno == EINTR);
  const int error = ready == 0 ? ETIMEDOUT : end_dialling(begun.socket.get());
  if (error == 0) {
    out = std::move(begun.socket);
  }
  return error;
}

}  // namespace

Begun begin_dialling(const Address& at) {
  Begun begun;
  begun.peer = describe(at);
  begun.socket.reset(::socket(at.get()->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!begun.socket.is_open()) {
    begun.error = errno;
    return begun;
  }
  set(begun.socket.get(), IPPROTO_TCP, TCP_NODELAY, 1);
  // After a signal the connection goes on being made (connect(2)).
  if (::connect(begun.socket.get(), at.get(), at.length) != 0 && errno != EINPROGRESS && errno != EINTR) {
    begun.error = errno;
  }
  return begun;
}

int end_dialling(int fd) {
  int error = 0;
  socklen_t length = sizeof error;
  if (::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) != 0 || error != 0) {
    return error == 0 ? errno : error;
  }
  // Where nobody listens at a port of the range for outgoing connections, the kernel may give that very port to this
  // socket, which then meets itself.
  return is_connected_to_itself(fd) ? ECONNREFUSED : 0;
}

Dialled dial(const HostPort& at, uint64_t deadline_ns, const LookUp& look_up) {
  Dialled dialled;
  const Resolved resolved = resolve(at.host, at.port, false, deadline_ns, look_up);
  dialled.error = resolved.error;
  dialled.problem = resolved.problem;
  dialled.advice = "correct the name of rank 0's host, or give its address";  // of what can't be looked up
  size_t n_refused = 0;
  for (const Address& address : resolved.addresses) {
    // 2 s for each address: a lost SYN is sent again after 1 s, and the next address may work at once.
    constexpr uint64_t kEachNs = 2'000'000'000;
    dialled.peer = describe(address);
    dialled.error = connect_to(address, std::min(deadline_ns, base::now_ns() + kEachNs), dialled.socket);
    if (dialled.error == 0) {
      return dialled;
    }
    n_refused += dialled.error == ECONNREFUSED ? 1 : 0;
    // Of the last address; the others were no better.
    dialled.problem = fmt::format("{}: {}", dialled.peer, base::reason_of(dialled.error));
    dialled.advice = base::tcp_advice(dialled.error);
  }
  dialled.have_all_refused = n_refused > 0 && n_refused == resolved.addresses.size();
  return dialled;
}

int milliseconds_until(uint64_t deadline_ns, int most_ms) {
  const uint64_t now = base::now_ns();
  if (now >= deadline_ns) {
    return 0;
  }
  return static_cast<int>(
      // Rounded up, or poll() would return just before the deadline, and the caller spin.
      std::min<uint64_t>((deadline_ns - now + 999'999) / 1'000'000, static_cast<uint64_t>(most_ms)));
}

}  // namespace ringbolt::bootstrap
