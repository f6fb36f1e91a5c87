// TCP over loopback, spinning: non-blocking sockets, no delay, both sides poll with recv().
#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "serve.h"

namespace ringbolt::bench {
namespace {

class TcpChannel {
 public:
  TcpChannel(const Options& options, Control& control)
      : rank(options.rank), ranks(options.ranks), arena(make_private_arena()) {
    const int listener = rank == 0 ? listen_on_loopback() : -1;
    const auto blobs = control.exchange(rank == 0 ? std::to_string(port_of(listener)) : "");
    fd_ = rank == 0 ? accept(listener, nullptr, nullptr) : connect_to(static_cast<uint16_t>(std::stoi(blobs.at(0))));
    if (listener >= 0) {
      close(listener);
    }
    const int on = 1;
    if (fd_ < 0 || setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0 ||
        fcntl(fd_, F_SETFL, O_NONBLOCK) != 0) {
      fail("connect");
    }
  }
  static std::string description() { return "TCP over loopback, spinning"; }

  void expect(std::size_t size) {
    wanted_ = size;
    got_ = 0;
  }
  void send(std::size_t size) {
    std::size_t sent = 0;
    while (sent < size) {
      const ssize_t n = ::send(fd_, arena.outgoing() + sent, size - sent, MSG_NOSIGNAL);
      if (n > 0) {
        sent += static_cast<std::size_t>(n);
      } else if (errno == EAGAIN) {
        take();  // both sides may be sending more than the socket buffers hold
      } else {
        fail("send");
      }
    }
  }
  void receive(std::size_t) {
    while (got_ < wanted_) {
      take();
    }
  }
  void flush() {}
  void progress() {}

 private:
  void take() {
    if (got_ == wanted_) {
      return;
    }
    const ssize_t n = recv(fd_, arena.incoming() + got_, wanted_ - got_, 0);
    if (n > 0) {
      got_ += static_cast<std::size_t>(n);
    } else if (n == 0 || errno != EAGAIN) {
      fail("recv");
    }
  }
  static int listen_on_loopback() {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 || listen(fd, 1) != 0) {
      fail("listen");
    }
    return fd;
  }
  static uint16_t port_of(int fd) {
    sockaddr_in address{};
    socklen_t length = sizeof address;
    getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length);
    return ntohs(address.sin_port);
  }
  static int connect_to(uint16_t port) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      fail("connect");
    }
    return fd;
  }
  [[noreturn]] static void fail(const char* call) {
    throw std::runtime_error(fmt::format("TCP over loopback: {}: {}", call, std::strerror(errno)));
  }

 public:
  unsigned rank;
  unsigned ranks;
  Arena arena;

 private:
  int fd_ = -1;
  std::size_t wanted_ = 0;
  std::size_t got_ = 0;
};

}  // namespace
}  // namespace ringbolt::bench

int main(int argc, char** argv) { return ringbolt::bench::worker_main<ringbolt::bench::TcpChannel>(argc, argv); }
