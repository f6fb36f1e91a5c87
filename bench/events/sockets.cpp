// The sides that verbs are compared with: an eventfd alone, and non-blocking sockets behind epoll.

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "side.h"

namespace ringbolt::bench {
namespace {

[[noreturn]] void fail(const char* call) {
  throw std::runtime_error(fmt::format("{}: {}", call, std::strerror(errno)));
}

int checked(int result, const char* call) {
  if (result < 0) {
    fail(call);
  }
  return result;
}

/// A byte with room for a descriptor beside it. Stays where it is: it points to itself.
struct DescriptorMessage {
  DescriptorMessage() {
    header.msg_iov = &data;
    header.msg_iovlen = 1;
    header.msg_control = space.data();
    header.msg_controllen = space.size();
  }
  DescriptorMessage(const DescriptorMessage&) = delete;
  DescriptorMessage& operator=(const DescriptorMessage&) = delete;

  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> space{};
  char byte = 0;
  iovec data{&byte, 1};
  msghdr header{};
};

void send_descriptor(int control, int descriptor) {
  DescriptorMessage message;
  cmsghdr* const rights = CMSG_FIRSTHDR(&message.header);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof descriptor);
  std::memcpy(CMSG_DATA(rights), &descriptor, sizeof descriptor);
  checked(static_cast<int>(sendmsg(control, &message.header, 0)), "sendmsg");
}

int receive_descriptor(int control) {
  DescriptorMessage message;
  checked(static_cast<int>(recvmsg(control, &message.header, 0)), "recvmsg");
  const cmsghdr* const rights = CMSG_FIRSTHDR(&message.header);
  if (rights == nullptr) {
    throw std::runtime_error("the other process has ended");
  }
  int descriptor = -1;
  std::memcpy(&descriptor, CMSG_DATA(rights), sizeof descriptor);
  return descriptor;
}

/// Waits for descriptors by number.
class Epoll {
 public:
  Epoll() : fd_(checked(epoll_create1(EPOLL_CLOEXEC), "epoll_create1")) {}
  ~Epoll() { close(fd_); }
  Epoll(const Epoll&) = delete;
  Epoll& operator=(const Epoll&) = delete;
  void add(int descriptor, uint32_t number) const {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u32 = number;
    checked(epoll_ctl(fd_, EPOLL_CTL_ADD, descriptor, &event), "epoll_ctl");
  }
  template <class Use>
  void wait(int limit_ms, Use use) {
    std::array<epoll_event, 64> events;
    const int count = epoll_wait(fd_, events.data(), static_cast<int>(events.size()), limit_ms);
    for (int i = 0; i < count; ++i) {
      use(events[static_cast<size_t>(i)].data.u32);
    }
  }

 private:
  const int fd_;
};

/// No bytes at all: what waking each other takes, and a floor for everybody else.
class EventfdSide final : public Side {
 public:
  EventfdSide(int control, bool is_server) : own_(checked(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd")) {
    if (is_server) {
      send_descriptor(control, own_);
      other_ = receive_descriptor(control);
    } else {
      other_ = receive_descriptor(control);
      send_descriptor(control, own_);
    }
    epoll_.add(own_, 0);
  }
  ~EventfdSide() override {
    close(own_);
    close(other_);
  }
  void put(uint32_t) override {
    const uint64_t one = 1;
    checked(static_cast<int>(write(other_, &one, sizeof one)), "write to an eventfd");
  }
  void flush() override {}
  void wait(int limit_ms, const std::function<void(uint32_t)>& take) override {
    epoll_.wait(limit_ms, [&](uint32_t) {
      uint64_t count = 0;
      checked(static_cast<int>(read(own_, &count, sizeof count)), "read from an eventfd");
      take(0);
    });
  }

 private:
  const int own_;
  int other_ = -1;
  Epoll epoll_;
};

/// As servers of sockets are written: what is put on a connection leaves with one write, what has come is read at once.
class SocketSide final : public Side {
 public:
  SocketSide(const Shape& shape, std::vector<int> sockets) : shape_(shape), connections_(sockets.size()) {
    for (uint32_t i = 0; i < sockets.size(); ++i) {
      connections_[i].socket = sockets[i];
      epoll_.add(sockets[i], i);
    }
    in_.resize(size_t{shape.bytes} * 2 * shape.pipeline);
  }
  ~SocketSide() override {
    for (const Connection& one : connections_) {
      close(one.socket);
    }
  }
  void put(uint32_t connection) override {
    Connection& one = connections_[connection];
    if (one.unsent == 0) {
      dirty_.push_back(connection);
    }
    ++one.unsent;
  }
  void flush() override {
    for (const uint32_t connection : dirty_) {
      Connection& one = connections_[connection];
      out_.assign(size_t{shape_.bytes} * one.unsent, std::byte{1});
      one.unsent = 0;
      for (size_t done = 0; done < out_.size();) {
        const ssize_t sent = send(one.socket, out_.data() + done, out_.size() - done, MSG_NOSIGNAL);
        done += static_cast<size_t>(checked(static_cast<int>(sent), "send"));
      }
    }
    dirty_.clear();
  }
  void wait(int limit_ms, const std::function<void(uint32_t)>& take) override {
    epoll_.wait(limit_ms, [&](uint32_t connection) {
      Connection& one = connections_[connection];
      const ssize_t got = recv(one.socket, in_.data(), in_.size(), MSG_DONTWAIT);
      if (got <= 0) {
        return;  // nothing yet, or the other one has ended
      }
      one.received += static_cast<uint64_t>(got);
      for (; one.received >= shape_.bytes; one.received -= shape_.bytes) {
        take(connection);
      }
    });
  }

 private:
  struct Connection {
    int socket = -1;
    uint32_t unsent = 0;
    uint64_t received = 0;  // bytes of messages that were not taken yet
  };
  const Shape shape_;
  std::vector<Connection> connections_;
  std::vector<uint32_t> dirty_;
  std::vector<std::byte> in_;
  std::vector<std::byte> out_;
  Epoll epoll_;
};

}  // namespace

std::unique_ptr<Side> make_eventfd_side(const Shape&, int control, bool is_server) {
  return std::make_unique<EventfdSide>(control, is_server);
}

std::unique_ptr<Side> make_unix_side(const Shape& shape, int control, bool is_server) {
  std::vector<int> sockets;
  for (uint32_t i = 0; i < shape.connections; ++i) {
    if (is_server) {
      std::array<int, 2> pair{};
      checked(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()), "socketpair");
      send_descriptor(control, pair[1]);
      close(pair[1]);
      sockets.push_back(pair[0]);
    } else {
      sockets.push_back(receive_descriptor(control));
    }
  }
  return std::make_unique<SocketSide>(shape, sockets);
}

std::vector<int> connect_tcp(uint32_t connections, int control, bool is_server) {
  std::vector<int> sockets;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  int listener = -1;
  if (is_server) {
    listener = checked(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket");
    checked(bind(listener, generic, length), "bind");
    checked(listen(listener, static_cast<int>(connections)), "listen");
    checked(getsockname(listener, generic, &length), "getsockname");
    write_all(control, &address, sizeof address);
  } else {
    read_all(control, &address, sizeof address);
  }
  for (uint32_t i = 0; i < connections; ++i) {
    int one = -1;
    if (is_server) {
      one = checked(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC), "accept");
    } else {
      one = checked(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket");
      checked(connect(one, generic, length), "connect");
    }
    const int no_delay = 1;
    checked(setsockopt(one, IPPROTO_TCP, TCP_NODELAY, &no_delay, sizeof no_delay), "setsockopt");
    sockets.push_back(one);
  }
  if (is_server) {
    close(listener);
  }
  return sockets;
}

std::unique_ptr<Side> make_tcp_side(const Shape& shape, int control, bool is_server) {
  return std::make_unique<SocketSide>(shape, connect_tcp(shape.connections, control, is_server));
}

}  // namespace ringbolt::bench
