// A ping-pong over UDP whose both sides spin: the least that the kernel's UDP takes between two sockets, to compare with.
//
//   udp_pingpong server ADDRESS PORT         answers until it is ended
//   udp_pingpong client ADDRESS PORT ROUNDS  prints the median and 99th percentile of half a round trip, in ns
//
// Messages have 64 bytes, no fewer than what RC puts behind the UDP header for a SEND of 8. With "reliable" at the end, of
// both lines, each carries a second datagram behind it, as long as an acknowledgement, in one system call, says by which
// address it leaves, and asks where it came in: what any user of this kernel's UDP pays who acknowledges with each answer.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/udp.h>
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
constexpr auto kPatience = std::chrono::seconds(5);

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

/// A socket, and how messages go through it.
class Socket {
 public:
  explicit Socket(bool is_reliable) : is_reliable_(is_reliable), fd_(::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0)) {
    if (fd_ < 0) {
      fail("socket");
    }
    if (is_reliable_) {
      set(fd_, IPPROTO_IP, IP_PKTINFO);
      set(fd_, IPPROTO_UDP, UDP_GRO);
    }
    part_ = {message_.data(), is_reliable_ ? message_.size() : kMessageBytes};
    header_.msg_name = &peer;
    header_.msg_iov = &part_;
    header_.msg_iovlen = 1;
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  ~Socket() { ::close(fd_); }

  sockaddr_in peer{};  ///< who sent last, and is sent to

  void bind(const sockaddr_in& where) {
    if (::bind(fd_, reinterpret_cast<const sockaddr*>(&where), sizeof where) != 0) {
      fail("bind");
    }
  }
  /// Spins until a message is there. False after kPatience without one.
  bool receive() {
    const Clock::time_point give_up = Clock::now() + kPatience;
    for (uint32_t spins = 1;; ++spins) {
      prepare(is_reliable_ ? control_.size() : 0);
      if (::recvmsg(fd_, &header_, 0) >= static_cast<ssize_t>(kMessageBytes)) {  // else an acknowledgement by itself
        return true;
      }
      if (spins % 4096 == 0 && Clock::now() > give_up) {
        return false;
      }
    }
  }
  void send() {
    prepare(0);
    if (is_reliable_) {
      header_.msg_controllen = control_.size();
      cmsghdr* at = CMSG_FIRSTHDR(&header_);
      at = append(at, IPPROTO_IP, IP_PKTINFO, in_pktinfo{});
      append(at, IPPROTO_UDP, UDP_SEGMENT, static_cast<uint16_t>(kMessageBytes));
      header_.msg_controllen = CMSG_SPACE(sizeof(in_pktinfo)) + CMSG_SPACE(sizeof(uint16_t));
    }
    if (::sendmsg(fd_, &header_, 0) < 0) {
      fail("sendmsg");
    }
  }

 private:
  void prepare(size_t control_bytes) {
    header_.msg_namelen = sizeof peer;
    header_.msg_control = control_bytes == 0 && !is_reliable_ ? nullptr : control_.data();
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

  const bool is_reliable_;
  const int fd_;
  Message message_{};
  iovec part_{};
  alignas(cmsghdr) std::array<char, 128> control_{};
  msghdr header_{};
};

void serve(const sockaddr_in& where, bool is_reliable) {
  Socket socket(is_reliable);
  socket.bind(where);
  std::puts("ready");
  std::fflush(stdout);
  while (socket.receive()) {
    socket.send();
  }
}

void ask(const sockaddr_in& where, size_t rounds, bool is_reliable) {
  Socket socket(is_reliable);
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
  const bool is_reliable = argc > 1 && std::strcmp(argv[argc - 1], "reliable") == 0;
  const int words = is_reliable ? argc - 1 : argc;
  const std::string role = words > 1 ? argv[1] : "";
  if (role == "server" && words == 4) {
    serve(address_of(argv[2], argv[3]), is_reliable);
    return 0;
  }
  if (role == "client" && words == 5 && std::atoi(argv[4]) > 0) {
    ask(address_of(argv[2], argv[3]), static_cast<size_t>(std::atoi(argv[4])), is_reliable);
    return 0;
  }
  std::fprintf(stderr, "usage: udp_pingpong server ADDRESS PORT [reliable] | client ADDRESS PORT ROUNDS [reliable]\n");
  return 2;
}
