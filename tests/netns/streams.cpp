// One end of a byte stream between namespaces. TOTAL bytes each way at once, or without end; every byte is looked at.
//   netns_streams serve|connect ADDRESS PORT TOTAL|endless
// Prints "port N" once it listens, "runs" when a mebibyte has come, "exact" when all was right and close() knows that
// it has arrived; or "ended REASON" with the words of the error, and exits with 3.

#include <poll.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <ringbolt/byte_stream.h>

namespace {

using ringbolt::ByteStream;
using ringbolt::StreamError;
using ringbolt::StreamService;

constexpr uint64_t kLimitMs = 60'000;  // the tests look at times
constexpr uint64_t kMib = 1U << 20U;

/// Of a direction; a prime number of bytes, so that no buffer's end falls on the same one twice.
char pattern(uint64_t at, bool is_server) {
  return static_cast<char>((at % 65521) * 167 + (at % 65521 >> 8U) * 13 + (is_server ? 91 : 0));
}

void say(const std::string& line) {
  std::puts(line.c_str());
  std::fflush(stdout);
}

void exchange(ByteStream& stream, uint64_t total, bool is_server) {
  std::vector<char> out(65521 + 100'000);
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = pattern(i, is_server);
  }
  std::vector<char> room(100'000);
  uint64_t written = 0;
  uint64_t received = 0;
  bool has_said = false;
  while (written < total || received < total) {
    stream.want((received < total ? uint32_t{RINGBOLT_STREAM_READABLE} : 0U) |
                (written < total ? uint32_t{RINGBOLT_STREAM_WRITABLE} : 0U));
    pollfd readable{stream.fd(), POLLIN, 0};
    if (poll(&readable, 1, static_cast<int>(kLimitMs)) != 1) {
      throw std::runtime_error("nothing has come or gone for a minute");
    }
    written += stream.write(&out[written % 65521], std::min<uint64_t>(100'000, total - written), 0);
    if (received == total) {
      continue;
    }
    const auto some = stream.read(room.data(), std::min<uint64_t>(room.size(), total - received), 0);
    if (some == 0U) {
      throw StreamError(0, stream.words());
    }
    for (size_t i = 0; i < some.value_or(0); ++i) {
      if (room[i] != pattern(received + i, !is_server)) {
        throw std::runtime_error("byte " + std::to_string(received + i) + " is wrong");
      }
    }
    received += some.value_or(0);
    if (received >= kMib && !std::exchange(has_said, true)) {
      say("runs");
    }
  }
}

int run(bool is_server, const char* address, uint16_t port, uint64_t total) {
  StreamService service("soft");
  std::optional<ByteStream> stream;
  try {
    if (is_server) {
      auto listener = service.listen(address, port);
      say("port " + std::to_string(listener.port()));
      stream = listener.accept(kLimitMs);
    } else {
      stream = service.connect(address, port, kLimitMs);
    }
    exchange(stream.value(), total, is_server);
    // Who is done first leaves the other's last bytes be: each waits for a byte more.
    char last = 'x';
    if (stream->write(&last, 1, kLimitMs) != 1 || stream->read(&last, 1, kLimitMs) != 1U) {
      throw std::runtime_error("the other end has not all");
    }
    if (is_server) {
      static_cast<void>(stream->read(&last, 1, kLimitMs));  // the client closes first
    } else {
      stream->close(kLimitMs);
    }
    say("exact");
    return 0;
  } catch (const StreamError& error) {
    const auto reason = stream ? stream->ended() : RINGBOLT_STREAM_UNREACHABLE;
    say(std::string("ended ") + ringbolt_stream_reason_name(reason) + ": " + error.what());
    return 3;
  }
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 5) {
    std::fputs("usage: netns_streams serve|connect ADDRESS PORT TOTAL|endless\n", stderr);
    return 2;
  }
  const std::string total = argv[4];
  return run(std::string(argv[1]) == "serve", argv[2], static_cast<uint16_t>(std::stoul(argv[3])),
             total == "endless" ? UINT64_MAX : std::stoull(total));
} catch (const std::exception& problem) {
  std::fprintf(stderr, "netns_streams: %s\n", problem.what());
  return 1;
}
