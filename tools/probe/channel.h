#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace ringbolt::tools {

/// A byte stream to the other end of a measurement, with one deadline for all waits. Owns nothing. Not thread-safe.
class Channel {
 public:
  /// `read_fd` and `write_fd` may be one socket, or two pipes. SIGPIPE must be ignored.
  Channel(int read_fd, int write_fd, uint64_t deadline_ns)
      : read_fd_(read_fd), write_fd_(write_fd), deadline_ns_(deadline_ns) {}

  uint64_t deadline_ns() const { return deadline_ns_; }
  int read_fd() const { return read_fd_; }
  /// Both ends send as many bytes as the other and get those of the other. Throws ProbeFailure.
  void exchange(std::span<const std::byte> mine, std::span<std::byte> theirs);
  /// Returns when both ends have called it.
  void meet();

  /// A text of up to kMostTextBytes to the other end, which takes it by the calls below. Do not mix with exchange().
  /// Throws ProbeFailure if the other end is gone, or does not take it within 10 s.
  void send_text(std::string_view text);
  /// The next text, if one has come whole; never waits. Throws ProbeFailure if the other end is gone.
  std::optional<std::string> look();

  static constexpr size_t kMostTextBytes = size_t{1} << 20U;

 private:
  int read_fd_;
  int write_fd_;
  uint64_t deadline_ns_;
  std::string begun_;  // of texts: what has come and was not taken
};

}  // namespace ringbolt::tools
