// A ping-pong over UDP whose both sides spin: the least that the kernel's UDP takes between two sockets, to compare with.
//
//   udp_pingpong server ADDRESS PORT         answers until it is ended
//   udp_pingpong client ADDRESS PORT ROUNDS  prints the median and 99th percentile of half a round trip, in ns
//
// Messages have 64 bytes, no fewer than what RC puts behind the UDP header for a SEND of 8.

#include <arpa/inet.h>
#include <netinet/in.h>
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
constexpr auto kPatience = std::chrono::seconds(5);

using Clock = std::chrono::steady_clock;
using Message = std::array<char, kMessageBytes>;

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

int open_socket() {
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
  if (fd < 0) {
    fail("socket");
  }
  return fd;
}

/// Spins until a message is there. False after kPatience without one.
bool receive(int fd, Message& message, sockaddr_in& from) {
  socklen_t length = sizeof from;
  const Clock::time_point give_up = Clock::now() + kPatience;
  for (uint32_t spins = 1;; ++spins) {
    if (::recvfrom(fd, message.data(), message.size(), 0, reinterpret_cast<sockaddr*>(&from), &length) > 0) {
      return true;
    }
    if (spins % 4096 == 0 && Clock::now() > give_up) {
      return false;
    }
  }
}

void send(int fd, const Message& message, const sockaddr_in& to) {
  if (::sendto(fd, message.data(), message.size(), 0, reinterpret_cast<const sockaddr*>(&to), sizeof to) < 0) {
    fail("sendto");
  }
}

void serve(const sockaddr_in& where) {
  const int fd = open_socket();
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&where), sizeof where) != 0) {
    fail("bind");
  }
  std::puts("ready");
  std::fflush(stdout);
  Message message{};
  sockaddr_in from{};
  while (receive(fd, message, from)) {
    send(fd, message, from);
  }
}

void ask(const sockaddr_in& where, size_t rounds) {
  const int fd = open_socket();
  std::vector<int64_t> half_ns;
  Message message{};
  sockaddr_in from{};
  for (size_t round = 0; round < rounds; ++round) {
    message[0] = static_cast<char>(round);
    const Clock::time_point begin = Clock::now();
    send(fd, message, where);
    if (!receive(fd, message, from)) {
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
  const std::string role = argc > 1 ? argv[1] : "";
  if (role == "server" && argc == 4) {
    serve(address_of(argv[2], argv[3]));
    return 0;
  }
  if (role == "client" && argc == 5 && std::atoi(argv[4]) > 0) {
    ask(address_of(argv[2], argv[3]), static_cast<size_t>(std::atoi(argv[4])));
    return 0;
  }
  std::fprintf(stderr, "usage: udp_pingpong server ADDRESS PORT | client ADDRESS PORT ROUNDS\n");
  return 2;
}
