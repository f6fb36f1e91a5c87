#include "bridge/sockets.h"

#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/error.h"
#include "failure.h"

namespace ringbolt::tools::bridge {
namespace {

// The kernel cuts it to net.core.somaxconn (listen(2)).
constexpr int kListenBacklog = 4096;
constexpr int kSocketFlags = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;

socklen_t length_of(const stream::Address& address) {
  return address.is_ipv6() ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
}

sockaddr_un unix_address(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), std::min(path.size(), sizeof address.sun_path - 1));
  return address;
}

/// Small messages leave at once, and a peer whose machine has gone is noticed.
void prepare_tcp(int fd) {
  const int is_on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &is_on, sizeof is_on);
  ::setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &is_on, sizeof is_on);
}

template <class Call>
base::Result<size_t> counted(Call call) {
  ssize_t n = 0;
  do {
    n = call();
  } while (n < 0 && errno == EINTR);
  return n < 0 ? base::Result<size_t>(base::fail(errno)) : base::Result<size_t>(static_cast<size_t>(n));
}

[[noreturn]] void refuse_to_listen(const std::string& option, const Place& place, const std::string& why) {
  throw UsageError(fmt::format("{} {}: {}", option, place.text(), why));
}

/// 0, or an errno; EWOULDBLOCK: somebody else has kept it. Anybody who may read a folder can lock it, /tmp for one.
int lock_folder(int fd) {
  constexpr uint64_t kPatienceNs = 2'000'000'000;
  constexpr int kPauseMs = 5;
  const uint64_t deadline_ns = base::now_ns() + kPatienceNs;
  while (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if ((errno != EWOULDBLOCK && errno != EINTR) || base::now_ns() >= deadline_ns) {
      return errno;
    }
    ::poll(nullptr, 0, kPauseMs);
  }
  return 0;
}

/// Removes the file at `path` if it is a socket at which nobody listens. Empty, or why it can't be had.
std::string remove_stale(const std::string& path) {
  struct stat seen {};
  if (::lstat(path.c_str(), &seen) != 0) {
    return errno == ENOENT ? "" : base::reason_of(errno);
  }
  if (!S_ISSOCK(seen.st_mode)) {
    return "a file that is no socket is there; give another path, or remove it";
  }
  const auto probe = connect_unix(path);
  if (probe || probe.error().value != ECONNREFUSED) {
    return probe || probe.error().value == EAGAIN ? "another program listens there; give another path, or end it"
                                                  : base::reason_of(probe.error().value);
  }
  return ::unlink(path.c_str()) == 0 || errno == ENOENT ? "" : base::reason_of(errno);
}

constexpr size_t kMostPath = sizeof(sockaddr_un::sun_path) - 1;

[[noreturn]] void refuse_place(const std::string& option, const std::string& text, const std::string& why) {
  throw UsageError(fmt::format("{} \"{}\": {}; write tcp:HOST:PORT, rdma:HOST:PORT or unix:PATH", option, text, why));
}

}  // namespace

base::Result<size_t> SocketOnDescriptor::read(std::span<std::byte> into) {
  return counted([&] { return ::recv(fd_.get(), into.data(), into.size(), 0); });
}

base::Result<size_t> SocketOnDescriptor::write(const Pieces& pieces) {
  iovec parts[2];
  for (size_t i = 0; i < 2; ++i) {
    parts[i] = {const_cast<std::byte*>(pieces[i].data()), pieces[i].size()};
  }
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = pieces[1].empty() ? 1 : 2;
  return counted([&] { return ::sendmsg(fd_.get(), &message, MSG_NOSIGNAL); });
}

void SocketOnDescriptor::shut_down() { ::shutdown(fd_.get(), SHUT_WR); }

bool SocketOnDescriptor::has_gone() {
  pollfd one{fd_.get(), 0, 0};
  return ::poll(&one, 1, 0) == 1 && (one.revents & (POLLHUP | POLLERR)) != 0;
}

std::optional<int> SocketOnDescriptor::connected() const {
  pollfd one{fd_.get(), POLLOUT, 0};
  if (::poll(&one, 1, 0) != 1) {
    return std::nullopt;
  }
  int error = 0;
  socklen_t length = sizeof error;
  return ::getsockopt(fd_.get(), SOL_SOCKET, SO_ERROR, &error, &length) != 0 ? errno : error;
}

void SocketOnDescriptor::close(bool is_abrupt) {
  if (is_abrupt) {
    const linger none{1, 0};  // of TCP: a reset
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_LINGER, &none, sizeof none);
  }
  fd_.reset();
}

ListeningSocket::ListeningSocket(const std::string& option, const Place& place) : place_(place) {
  place.kind == Place::Kind::unix_socket ? listen_unix(option) : listen_tcp(option);
}

ListeningSocket::~ListeningSocket() {
  // Somebody may have put another file there meanwhile: the inode tells.
  struct stat seen {};
  if (fd_.is_open() && !file_.empty() && ::lstat(file_.c_str(), &seen) == 0 && seen.st_ino == inode_) {
    ::unlink(file_.c_str());
  }
}

void ListeningSocket::listen_tcp(const std::string& option) {
  stream::Address address = addresses_of(place_).front();
  fd_.reset(::socket(address.is_ipv6() ? AF_INET6 : AF_INET, kSocketFlags, 0));
  const int is_on = 1;
  if (!fd_.is_open() || ::setsockopt(fd_.get(), SOL_SOCKET, SO_REUSEADDR, &is_on, sizeof is_on) != 0 ||
      ::bind(fd_.get(), address.get(), length_of(address)) != 0 || ::listen(fd_.get(), kListenBacklog) != 0) {
    const int error = errno;
    refuse_to_listen(option, place_, base::reason_of(error) + "; choose another address or port");
  }
  sockaddr_storage bound{};
  socklen_t length = sizeof bound;
  if (::getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&bound), &length) == 0) {
    place_.port = stream::Address(reinterpret_cast<const sockaddr&>(bound)).port();
  }
}

/// Who looks for a file that is stale, and replaces it, has the lock of its folder: two who start at once would
/// otherwise remove each other's.
void ListeningSocket::listen_unix(const std::string& option) {
  const std::string folder = std::filesystem::path(place_.path).parent_path().string();
  const base::UniqueFd lock(::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (const int error = lock.is_open() ? lock_folder(lock.get()) : errno; error != 0) {
    refuse_to_listen(option, place_,
                     error == EWOULDBLOCK ? "another program keeps its folder locked; end it, or take another folder"
                                          : base::reason_of(error));
  }
  if (const std::string why = remove_stale(place_.path); !why.empty()) {
    refuse_to_listen(option, place_, why);
  }
  fd_.reset(::socket(AF_UNIX, kSocketFlags, 0));
  const sockaddr_un address = unix_address(place_.path);
  const mode_t before = ::umask(0177);  // no other thread makes files yet
  const bool is_bound =
      fd_.is_open() && ::bind(fd_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  const int error = errno;
  ::umask(before);
  struct stat made {};
  if (!is_bound || ::listen(fd_.get(), kListenBacklog) != 0 || ::lstat(place_.path.c_str(), &made) != 0) {
    refuse_to_listen(option, place_, base::reason_of(is_bound ? errno : error));
  }
  file_ = place_.path;
  inode_ = made.st_ino;
}

base::Result<base::UniqueFd> ListeningSocket::accept(stream::Address& peer) {
  sockaddr_storage name{};
  socklen_t length = sizeof name;
  base::UniqueFd fd(::accept4(fd_.get(), reinterpret_cast<sockaddr*>(&name), &length, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!fd.is_open()) {
    return base::fail(errno);
  }
  if (place_.kind == Place::Kind::tcp) {
    peer = stream::Address(reinterpret_cast<const sockaddr&>(name));
    prepare_tcp(fd.get());
  }
  return fd;
}

base::Result<base::UniqueFd> connect_tcp(stream::Address address) {
  base::UniqueFd fd(::socket(address.is_ipv6() ? AF_INET6 : AF_INET, kSocketFlags, 0));
  if (!fd.is_open()) {
    return base::fail(errno);
  }
  prepare_tcp(fd.get());
  if (::connect(fd.get(), address.get(), length_of(address)) != 0 && errno != EINPROGRESS) {
    return base::fail(errno);
  }
  return fd;
}

base::Result<base::UniqueFd> connect_unix(const std::string& path) {
  base::UniqueFd fd(::socket(AF_UNIX, kSocketFlags, 0));
  if (!fd.is_open()) {
    return base::fail(errno);
  }
  const sockaddr_un address = unix_address(path);
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return base::fail(errno);
  }
  return fd;
}

std::string Place::text() const {
  if (kind == Kind::unix_socket) {
    return "unix:" + path;
  }
  const bool is_ipv6 = host.find(':') != std::string::npos;
  return fmt::format("{}:{}{}{}:{}", kind == Kind::tcp ? "tcp" : "rdma", is_ipv6 ? "[" : "", host, is_ipv6 ? "]" : "",
                     port);
}

std::vector<stream::Address> addresses_of(const Place& place, const base::LookUp& look_up) {
  constexpr uint64_t kLookUpMs = 5'000;
  return stream::addresses_of(place.host, place.port, stream::Deadline::in_ms(kLookUpMs), look_up);
}

Place parse_place(const std::string& option, const std::string& text) {
  Place place;
  const size_t first = text.find(':');
  const std::string kind = text.substr(0, first);
  const std::string rest = first == std::string::npos ? "" : text.substr(first + 1);
  if (kind == "unix") {
    if (rest.empty() || rest.size() > kMostPath) {
      refuse_place(option, text,
                   rest.empty() ? "there is no path" : fmt::format("a path has {} bytes at most", kMostPath));
    }
    place.kind = Place::Kind::unix_socket;
    place.path = rest;
    return place;
  }
  if (kind != "tcp" && kind != "rdma") {
    refuse_place(option, text, "it names no kind of connection");
  }
  place.kind = kind == "tcp" ? Place::Kind::tcp : Place::Kind::rdma;
  const size_t last = rest.rfind(':');
  if (last == std::string::npos || last == 0) {
    refuse_place(option, text, "the host or the port is missing");
  }
  std::string_view host(rest.data(), last);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    refuse_place(option, text, "an address of IPv6 stands in brackets");
  }
  const char* const end = rest.data() + rest.size();
  const auto [stop, error] = std::from_chars(rest.data() + last + 1, end, place.port);
  if (host.empty() || error != std::errc{} || stop != end) {
    refuse_place(option, text, "a host and a port from 0 to 65535 are wanted");
  }
  place.host = host;
  return place;
}

}  // namespace ringbolt::tools::bridge
