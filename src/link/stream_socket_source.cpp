#include "link/stream_socket_source.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace ringbolt::link {
namespace {

constexpr int kBacklog = 4;

struct SocketPlace {
  sockaddr_storage storage{};
  socklen_t length = 0;
  int family = AF_UNSPEC;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

base::UniqueFd stream_socket(int family) {
  return base::UniqueFd(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

SocketPlace unix_place(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) {
    throw base::Error(ENAMETOOLONG, "name a socket", path, "a path has 1 to 107 bytes");
  }
  std::copy(path.begin(), path.end(), address.sun_path);
  SocketPlace place;
  place.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size() + 1);
  place.family = AF_UNIX;
  std::memcpy(&place.storage, &address, place.length);
  return place;
}

SocketPlace tcp_place(const std::string& text, bool is_listening) {
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon + 1 == text.size()) {
    throw base::Error(EINVAL, "read a TCP address", text, "say HOST:PORT");
  }
  std::string host = text.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = is_listening ? AI_PASSIVE : 0;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.empty() ? nullptr : host.c_str(), text.c_str() + colon + 1, &wanted, &found);
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> list(found, freeaddrinfo);
  if (error != 0 || found == nullptr) {
    throw base::Error(EADDRNOTAVAIL, "look up the address", text, error != 0 ? gai_strerror(error) : "it has none");
  }
  SocketPlace place;
  place.length = found->ai_addrlen;
  place.family = found->ai_family;
  std::memcpy(&place.storage, found->ai_addr, found->ai_addrlen);
  return place;
}

/// Small frames leave at once; on other sockets this has no effect.
void send_at_once(int socket) {
  const int on = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

class Connecting final : public StreamSource {
 public:
  explicit Connecting(const SocketPlace& place) : place_(place) {}
  base::Result<OpenStream> open() override {
    base::UniqueFd socket = stream_socket(place_.family);
    if (!socket.is_open()) {
      return base::fail(errno);
    }
    // Under way is as good as there: until then the socket has no room, and refuses with an error.
    if (connect(socket.get(), place_.get(), place_.length) != 0 && errno != EINPROGRESS) {
      return base::fail(errno);
    }
    send_at_once(socket.get());
    return adopt_stream(std::move(socket), {});
  }

 private:
  SocketPlace place_;
};

class Listening final : public StreamSource {
 public:
  Listening(base::UniqueFd socket, std::string path) : socket_(std::move(socket)), path_(std::move(path)) {}
  ~Listening() override {
    if (!path_.empty()) {
      unlink(path_.c_str());
    }
  }
  base::Result<OpenStream> open() override {
    base::UniqueFd socket(accept4(socket_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket.is_open()) {
      return base::fail(errno);
    }
    send_at_once(socket.get());
    return adopt_stream(std::move(socket), {});
  }
  int listener() const override { return socket_.get(); }

 private:
  base::UniqueFd socket_;
  std::string path_;
};

bool is_abandoned(const SocketPlace& place) {
  const base::UniqueFd probe = stream_socket(place.family);
  return connect(probe.get(), place.get(), place.length) != 0 && errno == ECONNREFUSED;
}

std::unique_ptr<StreamSource> listen_at(const SocketPlace& place, const std::string& text, const std::string& path) {
  base::UniqueFd socket = stream_socket(place.family);
  const int on = 1;
  setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  int outcome = bind(socket.get(), place.get(), place.length);
  if (outcome != 0 && errno == EADDRINUSE && !path.empty() && is_abandoned(place)) {
    unlink(path.c_str());
    outcome = bind(socket.get(), place.get(), place.length);
  }
  if (outcome != 0 || listen(socket.get(), kBacklog) != 0) {
    throw base::Error(errno, "listen", text, "another program may use it: one process owns a stream");
  }
  return std::make_unique<Listening>(std::move(socket), path);
}

}  // namespace

std::unique_ptr<StreamSource> connect_to_unix(const std::string& path) {
  return std::make_unique<Connecting>(unix_place(path));
}

std::unique_ptr<StreamSource> listen_on_unix(const std::string& path) {
  return listen_at(unix_place(path), path, path);
}

std::unique_ptr<StreamSource> connect_to_tcp(const std::string& host_and_port) {
  return std::make_unique<Connecting>(tcp_place(host_and_port, false));
}

std::unique_ptr<StreamSource> listen_on_tcp(const std::string& host_and_port) {
  return listen_at(tcp_place(host_and_port, true), host_and_port, {});
}

}  // namespace ringbolt::link
