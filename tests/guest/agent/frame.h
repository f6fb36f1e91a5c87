// Frames between the test on the host and the agent in the guest, over one virtio-serial port. Host side:
// referee/channel.py.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

namespace ringbolt::guest {

/// A frame on the wire: command (4 bytes), kind (1), length (4), both little-endian, then the payload.
constexpr size_t kFrameHeaderBytes = 9;
constexpr size_t kMaxPayloadBytes = 32768;

enum class Kind : char {
  run = 'R',       // host: argv, each word ended by NUL
  input = 'I',     // host: bytes for stdin; none: end of file
  signal = 'S',    // host: one byte, the signal for the command's process group
  hello = 'H',     // guest: it is up; text
  out = 'O',       // guest: bytes of stdout
  error = 'X',     // guest: bytes of stderr
  finished = 'D',  // guest: four bytes, the status of waitpid
};

struct Frame {
  uint32_t command = 0;
  Kind kind{};
  std::string payload;
};

/// The bytes of one frame.
std::string encode(uint32_t command, Kind kind, std::string_view payload);

/// Cuts a byte stream into frames. Not thread-safe.
class FrameReader {
 public:
  void append(std::string_view bytes) { buffer_.append(bytes); }
  /// The next whole frame, if it is there.
  std::optional<Frame> next();

 private:
  std::string buffer_;
};

}  // namespace ringbolt::guest
