#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace ringbolt::tools {

/// A byte stream to the other end of a measurement, with one deadline for all waits. Owns nothing. Not thread-safe.
class Channel {
 public:
  /// `read_fd` and `write_fd` may be one socket, or two pipes. SIGPIPE must be ignored.
  Channel(int read_fd, int write_fd, uint64_t deadline_ns)
      : read_fd_(read_fd), write_fd_(write_fd), deadline_ns_(deadline_ns) {}

  uint64_t deadline_ns() const { return deadline_ns_; }
  /// Both ends send as many bytes as the other and get those of the other. Throws ProbeFailure.
  void exchange(std::span<const std::byte> mine, std::span<std::byte> theirs);
  /// Returns when both ends have called it.
  void meet();

 private:
  int read_fd_;
  int write_fd_;
  uint64_t deadline_ns_;
};

}  // namespace ringbolt::tools
