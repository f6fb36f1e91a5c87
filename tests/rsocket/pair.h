#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <rdma/rsocket.h>

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

namespace ringbolt::rsocket_test {

/// A socket that is closed at the end. Move-only.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Socket() { close(); }

  int fd() const { return fd_; }
  void close() {
    if (fd_ >= 0) {
      rclose(std::exchange(fd_, -1));
    }
  }

 private:
  int fd_ = -1;
};

/// The address that the tests run at: RSOCKET_TEST_ADDRESS, or 127.0.0.1; IPv4 or IPv6, with a port (0: any).
struct Place {
  sockaddr_storage storage{};
  socklen_t length = 0;

  static Place with_port(uint16_t port);
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  int family() const { return storage.ss_family; }
  uint16_t port() const;
};

/// An option that a test wants set on both sockets before they connect.
struct Option {
  int level;
  int name;
  int value;
};
inline void PrintTo(const Option& option, std::ostream* out) {
  *out << option.level << ':' << option.name << '=' << option.value;
}

/// A listening socket, and where it listens.
struct Listener {
  explicit Listener(const std::vector<Option>& options = {});
  Socket socket;
  Place place;
};

/// Two connected sockets of one process.
struct Pair {
  explicit Pair(const std::vector<Option>& options = {});
  Socket client;
  Socket server;
};

Socket connect_to(const Place& place, const std::vector<Option>& options = {});

/// Byte `i` of stream `seed`: depends on its position, so that shifted or doubled pieces show.
inline std::byte pattern(uint64_t i, uint64_t seed = 0) {
  const uint64_t mixed = (i + seed * 0x9e3779b97f4a7c15ULL) * 0xff51afd7ed558ccdULL;
  return static_cast<std::byte>(mixed >> 56U);
}
std::vector<std::byte> pattern_bytes(uint64_t from, size_t length, uint64_t seed = 0);
/// The first position at which `bytes` are not the pattern from `from` on; bytes.size() if all are.
size_t first_difference(const std::vector<std::byte>& bytes, size_t length, uint64_t from, uint64_t seed = 0);

/// Sends and receives whole lengths in blocking calls; the receiver checks the pattern. Return what was wrong, or "".
std::string send_pattern(int fd, uint64_t total, size_t piece, uint64_t seed = 0);
std::string receive_pattern(int fd, uint64_t total, size_t piece, uint64_t seed = 0);

}  // namespace ringbolt::rsocket_test
