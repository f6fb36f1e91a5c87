// A ping-pong over UDP whose both sides spin: the least that the kernel's UDP takes between two sockets, to compare
// with.
//
//   udp_pingpong server ADDRESS PORT         answers until it is ended
//   udp_pingpong client ADDRESS PORT ROUNDS  prints the median and 99th percentile of half a round trip, in ns
//
// Messages have 64 bytes, no fewer than what RC puts behind the UDP header for a SEND of 8 and an acknowledgement that
// it carries. With "reliable" at the end, of both lines, each has a second datagram behind it, as long as an
// acknowledgement of its own, in one system call, says by which address it leaves, and asks where it came in: what
// anybody pays who acknowledges by a packet of its own with each answer. With "device" it is one datagram, and all the
// system calls are made, without a protocol, that our device makes for a program that polls, which is the floor for it:
// a port that is shared by a selecting program and that somebody else may wait for (src/link/udp_group.h,
// udp_endpoint.h), a clock that is read in each turn and once more before each message, and a look at all else that may
// bring packets in each 16th turn.

#include <arpa/inet.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

constexpr size_t kMessageBytes = 64;
constexpr size_t kAcknowledgementBytes = 24;  // BTH, AETH, ICRC
constexpr uint32_t kTurnsBetweenLooks = 16;   // as UdpEndpoint::kQuietTurns
constexpr auto kPatience = std::chrono::seconds(5);

/// How messages travel. From `reliable` on they name addresses.
enum class Way { plain, reliable, device };

using Clock = std::chrono::steady_clock;
using Message = std::array<char, kMessageBytes + kAcknowledgementBytes>;

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "udp_pingpong: %s: %s\n", what, std::strerror(errno));
  std::exit(2);
}

sockaddr_in address_of(const char* address, const char* port) {
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_port = htons(static_cast<uint16_t>(std::atoi(port)));
  if (::inet_pton(AF_INET, address, &where.sin_addr) != 1) {
    errno = EINVAL;
    fail(address);
  }
  return where;
}

void set(int fd, int level, int option) {
  const int on = 1;
  if (::setsockopt(fd, level, option, &on, sizeof on) != 0) {
    fail("setsockopt");
  }
}

int checked(int descriptor, const char* what) {
  if (descriptor < 0) {
    fail(what);
  }
  return descriptor;
}

/// What else the device looks at now and then: the other address family, what other processes pass on, and whether one
/// of them has gone. Nothing ever comes here. Owns its descriptors.
class QuietSources {
 public:
  QuietSources()
      : other_family_(checked(::socket(AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK, 0), "socket(AF_INET6)")),
        passed_on_(checked(::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0), "socket(AF_UNIX)")),
        processes_(checked(::epoll_create1(0), "epoll_create1")) {}
  QuietSources(const QuietSources&) = delete;
  QuietSources& operator=(const QuietSources&) = delete;
  ~QuietSources() {
    ::close(other_family_);
    ::close(passed_on_);
    ::close(processes_);
  }
  /// With a place for a message.
  void look(msghdr& header) const {
    const msghdr before = header;
    (void)!::recvmsg(other_family_, &header, MSG_DONTWAIT);
    header = before;
    (void)!::recvmsg(passed_on_, &header, MSG_DONTWAIT);
    epoll_event event{};
    (void)!::epoll_wait(processes_, &event, 1, 0);
    header = before;
  }

 private:
  const int other_family_;
  const int passed_on_;
  const int processes_;
};

/// A socket, and how messages go through it.
class Socket {
 public:
  explicit Socket(Way way)
      : way_(way),
        fd_(checked(::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0), "socket")),
        watch_(checked(::epoll_create1(0), "epoll_create1")),
        outer_watch_(checked(::epoll_create1(0), "epoll_create1")) {
    if (way_ >= Way::reliable) {
      set(fd_, IPPROTO_IP, IP_PKTINFO);
      set(fd_, IPPROTO_UDP, UDP_GRO);
    }
    if (way_ == Way::device) {
      set(fd_, SOL_SOCKET, SO_REUSEPORT);
      watch(watch_, fd_, EPOLLIN);
      watch(outer_watch_, watch_, 0);  // the service thread stays away while somebody polls
    }
    part_ = {message_.data(), way_ == Way::reliable ? message_.size() : kMessageBytes};
    header_.msg_name = &peer;
    header_.msg_iov = &part_;
    header_.msg_iovlen = 1;
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  ~Socket() {
    ::close(outer_watch_);
    ::close(watch_);
    ::close(fd_);
  }

  sockaddr_in peer{};  ///< who sent last, and is sent to

  void bind(const sockaddr_in& where) {
    if (::bind(fd_, reinterpret_cast<const sockaddr*>(&where), sizeof where) != 0) {
      fail("bind");
    }
    if (way_ == Way::device) {
      select_by_first_bytes();
    }
  }
  /// Spins until a message is there. False after kPatience without one.
  bool receive() {
    const Clock::time_point give_up = Clock::now() + kPatience;
    for (uint32_t spins = 1;; ++spins) {
      prepare(way_ >= Way::reliable ? control_.size() : 0);
      const bool is_late = way_ == Way::device && Clock::now() > give_up;
      if (::recvmsg(fd_, &header_, 0) >= static_cast<ssize_t>(kMessageBytes)) {  // else an acknowledgement by itself
        return true;
      }
      if (way_ == Way::device && ++turn_ % kTurnsBetweenLooks == 0) {
        prepare(control_.size());
        quiet_.look(header_);
      }
      if (is_late || (spins % 4096 == 0 && Clock::now() > give_up)) {
        return false;
      }
    }
  }
  void send() {
    if (way_ == Way::device) {
      static_cast<void>(Clock::now());  // what the device reads it for is no part of this
    }
    prepare(0);
    if (way_ >= Way::reliable) {
      header_.msg_controllen = control_.size();
      cmsghdr* at = CMSG_FIRSTHDR(&header_);
      at = append(at, IPPROTO_IP, IP_PKTINFO, in_pktinfo{});
      header_.msg_controllen = CMSG_SPACE(sizeof(in_pktinfo));
      if (way_ == Way::reliable) {
        append(at, IPPROTO_UDP, UDP_SEGMENT, static_cast<uint16_t>(kMessageBytes));
        header_.msg_controllen += CMSG_SPACE(sizeof(uint16_t));
      }
    }
    if (::sendmsg(fd_, &header_, 0) < 0) {
      fail("sendmsg");
    }
  }

 private:
  static void watch(int epoll, int descriptor, uint32_t events) {
    epoll_event event{};
    event.events = events;
    if (::epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event) != 0) {
      fail("epoll_ctl");
    }
  }
  /// A program of the shape of ours: some words of the datagram choose among the sockets of the port, here one.
  void select_by_first_bytes() const {
    std::array<sock_filter, 8> program{
        {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 1, 4, 0),
         BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 4), BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xffffff),
         BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 1, 1, 0), BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 14),
         BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 1, 0, 0), BPF_STMT(BPF_RET | BPF_K, 0)}};
    const sock_fprog description{static_cast<unsigned short>(program.size()), program.data()};
    if (::setsockopt(fd_, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &description, sizeof description) != 0) {
      fail("SO_ATTACH_REUSEPORT_CBPF");
    }
  }
  void prepare(size_t control_bytes) {
    header_.msg_namelen = sizeof peer;
    header_.msg_control = control_bytes == 0 && way_ == Way::plain ? nullptr : control_.data();
    header_.msg_controllen = control_bytes;
  }
  template <class Value>
  cmsghdr* append(cmsghdr* at, int level, int type, Value value) {
    at->cmsg_level = level;
    at->cmsg_type = type;
    at->cmsg_len = CMSG_LEN(sizeof value);
    std::memcpy(CMSG_DATA(at), &value, sizeof value);
    return reinterpret_cast<cmsghdr*>(reinterpret_cast<char*>(at) + CMSG_SPACE(sizeof value));
  }

  const Way way_;
  const int fd_;
  const int watch_;
  const int outer_watch_;
  const QuietSources quiet_;
  uint32_t turn_ = 0;
  Message message_{};
  iovec part_{};
  alignas(cmsghdr) std::array<char, 128> control_{};
  msghdr header_{};
};

void serve(const sockaddr_in& where, Way way) {
  Socket socket(way);
  socket.bind(where);
  std::puts("ready");
  std::fflush(stdout);
  while (socket.receive()) {
    socket.send();
  }
}

void ask(const sockaddr_in& where, size_t rounds, Way way) {
  Socket socket(way);
  std::vector<int64_t> half_ns;
  for (size_t round = 0; round < rounds; ++round) {
    socket.peer = where;
    const Clock::time_point begin = Clock::now();
    socket.send();
    if (!socket.receive()) {
      errno = ETIMEDOUT;
      fail("no answer");
    }
    half_ns.push_back(std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count() / 2);
  }
  std::sort(half_ns.begin(), half_ns.end());
  std::printf("%lld %lld\n", static_cast<long long>(half_ns[rounds / 2]),
              static_cast<long long>(half_ns[rounds * 99 / 100]));
}

}  // namespace

int main(int argc, char** argv) {
  const std::string last = argc > 1 ? argv[argc - 1] : "";
  const Way way = last == "device" ? Way::device : last == "reliable" ? Way::reliable : Way::plain;
  const int words = way == Way::plain ? argc : argc - 1;
  const std::string role = words > 1 ? argv[1] : "";
  if (role == "server" && words == 4) {
    serve(address_of(argv[2], argv[3]), way);
    return 0;
  }
  if (role == "client" && words == 5 && std::atoi(argv[4]) > 0) {
    ask(address_of(argv[2], argv[3]), static_cast<size_t>(std::atoi(argv[4])), way);
    return 0;
  }
  std::fprintf(
      stderr,
      "usage: udp_pingpong server ADDRESS PORT [reliable|device] | client ADDRESS PORT ROUNDS [reliable|device]\n");
  return 2;
}
