#include "coordinator.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <stdexcept>

#include "deadline.h"
#include "side_channel.h"

namespace ringbolt::jaccl {

Coordinator::Coordinator(int world, uint16_t port)
    : world_(world), listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  any.sin_port = htons(port);
  const int yes = 1;  // as JACCL does: one run may follow another at once
  if (listener_ < 0 || setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
      bind(listener_, reinterpret_cast<sockaddr*>(&any), sizeof any) != 0 || listen(listener_, world) != 0) {
    throw std::runtime_error("the coordinator cannot listen on 127.0.0.1");
  }
  thread_ = std::thread([this] { serve(); });
}

Coordinator::~Coordinator() {
  // Wakes an accept that waits for a rank which never came.
  shutdown(listener_, SHUT_RDWR);
  thread_.join();
  close(listener_);
  for (const int fd : ranks_) {
    close(fd);
  }
}

std::string Coordinator::address() const {
  sockaddr_in bound{};
  socklen_t length = sizeof bound;
  getsockname(listener_, reinterpret_cast<sockaddr*>(&bound), &length);
  return "127.0.0.1:" + std::to_string(ntohs(bound.sin_port));
}

void Coordinator::serve() {
  try {
    accept_ranks();
    gather(sizeof(int32_t));                   // the count
    gather(static_cast<size_t>(world_) * 32);  // the records
    gather(sizeof(int32_t));                   // barrier before the exchange
    gather(sizeof(int32_t));                   // and after
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "coordinator: %s\n", problem.what());
    for (const int fd : ranks_) {
      shutdown(fd, SHUT_RDWR);
    }
  }
}

void Coordinator::accept_ranks() {
  ranks_.assign(static_cast<size_t>(world_), -1);
  const conformance::Deadline deadline(std::chrono::seconds(60));
  for (int i = 0; i < world_; ++i) {
    pollfd entry{listener_, POLLIN, 0};
    if (poll(&entry, 1, deadline.remaining_ms()) != 1) {
      throw std::runtime_error("a rank is missing");
    }
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) {
      throw std::runtime_error("a rank did not come");
    }
    set_time_limit(fd);
    int32_t rank = -1;
    receive_all(fd, &rank, sizeof rank);
    if (rank < 0 || rank >= world_ || ranks_[static_cast<size_t>(rank)] >= 0) {
      close(fd);
      throw std::runtime_error("bad rank " + std::to_string(rank));
    }
    ranks_[static_cast<size_t>(rank)] = fd;
  }
}

void Coordinator::gather(size_t block_bytes) {
  std::vector<uint8_t> all(block_bytes * static_cast<size_t>(world_));
  for (size_t rank = 0; rank < ranks_.size(); ++rank) {
    receive_all(ranks_[rank], all.data() + rank * block_bytes, block_bytes);
  }
  for (const int fd : ranks_) {
    send_all(fd, all.data(), all.size());
  }
}

}  // namespace ringbolt::jaccl
