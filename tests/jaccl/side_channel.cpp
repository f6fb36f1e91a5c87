#include "side_channel.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

namespace ringbolt::jaccl {
namespace {

constexpr int kTimeLimitSeconds = 60;

[[noreturn]] void fail(const char* what) {
  throw std::runtime_error(std::string("side channel: ") + what + ": " + std::strerror(errno));
}

}  // namespace

void set_time_limit(int fd) {
  const timeval limit{kTimeLimitSeconds, 0};
  if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) != 0 ||
      setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) != 0) {
    fail("setsockopt");
  }
}

void send_all(int fd, const void* data, size_t length_bytes) {
  const auto* at = static_cast<const uint8_t*>(data);
  while (length_bytes > 0) {
    const ssize_t sent = send(fd, at, length_bytes, MSG_NOSIGNAL);
    if (sent <= 0) {
      fail("send");
    }
    at += sent;
    length_bytes -= static_cast<size_t>(sent);
  }
}

void receive_all(int fd, void* data, size_t length_bytes) {
  auto* at = static_cast<uint8_t*>(data);
  while (length_bytes > 0) {
    const ssize_t got = recv(fd, at, length_bytes, 0);
    if (got <= 0) {
      fail(got == 0 ? "closed" : "recv");
    }
    at += got;
    length_bytes -= static_cast<size_t>(got);
  }
}

SideChannel::SideChannel(const std::string& coordinator, int32_t rank, int world)
    : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), world_(world) {
  const size_t colon = coordinator.find(':');
  sockaddr_in address{};
  address.sin_family = AF_INET;
  if (fd_ < 0 || colon == std::string::npos ||
      inet_pton(AF_INET, coordinator.substr(0, colon).c_str(), &address.sin_addr) != 1) {
    throw std::runtime_error("side channel: bad coordinator " + coordinator);
  }
  address.sin_port = htons(static_cast<uint16_t>(std::atoi(coordinator.c_str() + colon + 1)));
  set_time_limit(fd_);
  // Rank 0 may be about to listen. Often, where the original tries four times in fifteen seconds.
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(15);
  while (connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    if (errno != ECONNREFUSED || std::chrono::steady_clock::now() > limit) {
      fail("connect");
    }
    usleep(1000);
  }
  send_all(fd_, &rank, sizeof rank);
}

SideChannel::~SideChannel() { close(fd_); }

std::vector<uint8_t> SideChannel::all_gather(const void* block, size_t length_bytes) {
  send_all(fd_, block, length_bytes);
  std::vector<uint8_t> all(length_bytes * static_cast<size_t>(world_));
  receive_all(fd_, all.data(), all.size());
  return all;
}

void SideChannel::barrier() {
  const int32_t nothing = 0;
  all_gather(&nothing, sizeof nothing);
}

}  // namespace ringbolt::jaccl
