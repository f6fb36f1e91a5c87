#include "bench/stream_blocks.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <functional>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "base/clock.h"
#include "bench/statistics.h"
#include "failure.h"
#include "ringbolt/byte_stream.h"

namespace ringbolt::tools::bench {
namespace {

constexpr uint64_t kCallLimitMs = 20'000;
constexpr uint64_t kBlockLimitMs = 60'000;  // beyond what was asked for
constexpr char kLastMessage = 1;            // its first byte
constexpr int kWarmUpTurns = 1000;
constexpr size_t kPieceBytes = 256U << 10U;
constexpr uint32_t kReceiveBytes = 1U << 20U;
constexpr uint32_t kSpinUs = 1'000'000;

/// A stream between the two processes, each of which makes its end.
struct StreamEnd {
  StreamEnd(int control, bool is_server, const Way& way, const std::string& verbs) : service(verbs) {
    ringbolt_stream_options options = StreamService::stream_options();
    options.receive_bytes = kReceiveBytes;
    options.receive_buffers = way.carrier == Carrier::stream_zero_copy ? 2 : 1;
    options.spin_us = way.spins ? kSpinUs : 0;
    uint16_t port = 0;
    if (is_server) {
      ringbolt_stream_listener_options listening = StreamService::listener_options();
      listening.stream = &options;
      StreamListener listener = service.listen("127.0.0.1", 0, listening);
      port = listener.port();
      write_whole(control, &port, sizeof port);
      stream = listener.accept(kCallLimitMs);
    } else {
      read_whole(control, &port, sizeof port);
      stream = service.connect("127.0.0.1", port, kCallLimitMs, options);
    }
    if (!stream || (stream->wait(RINGBOLT_STREAM_WRITABLE, kCallLimitMs) & RINGBOLT_STREAM_WRITABLE) == 0) {
      throw FoundProblem("a stream between two processes of this machine does not come about");
    }
  }

  StreamService service;
  std::optional<ByteStream> stream;
};

/// Bytes to and fro in whole messages, whatever carries them.
struct Pipe {
  std::function<void(const char* data, size_t bytes)> write;
  std::function<void(char* data, size_t bytes)> read;
};

Pipe stream_pipe(ByteStream& stream) {
  return {[&](const char* data, size_t bytes) {
            for (size_t done = 0; done < bytes;) {
              done += stream.write(data + done, bytes - done, kCallLimitMs);
            }
          },
          [&](char* data, size_t bytes) {
            for (size_t done = 0; done < bytes;) {
              const auto some = stream.read(data + done, bytes - done, kCallLimitMs);
              if (!some || *some == 0) {
                throw FoundProblem("the stream between two processes has ended");
              }
              done += *some;
            }
          }};
}

Pipe socket_pipe(int socket, bool spins) {
  return {[=](const char* data, size_t bytes) { write_whole(socket, data, bytes); },
          [=](char* data, size_t bytes) { read_whole(socket, data, bytes, spins); }};
}

[[noreturn]] void refuse_socket(const char* call) {
  throw FoundProblem(fmt::format("TCP over loopback: {}: {}", call, std::strerror(errno)));
}

/// To the other process, over loopback and without Nagle's delay.
int connect_by_tcp(int control, bool is_server) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  socklen_t length = sizeof address;
  int made = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (is_server) {
    const int listener = made;
    if (::bind(listener, generic, length) != 0 || ::listen(listener, 1) != 0 ||
        ::getsockname(listener, generic, &length) != 0) {
      refuse_socket("listen");
    }
    write_whole(control, &address, sizeof address);
    made = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    ::close(listener);
  } else {
    read_whole(control, &address, sizeof address);
    if (::connect(made, generic, length) != 0) {
      refuse_socket("connect");
    }
  }
  const int is_on = 1;
  if (made < 0 || ::setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &is_on, sizeof is_on) != 0) {
    refuse_socket("accept");
  }
  return made;
}

/// Calls `act` with a pipe of that kind to the other process, in each of them.
BlockFigures with_pipe(const Way& way, int control, bool is_server, const std::string& verbs,
                       const std::function<BlockFigures(const Pipe&)>& act) {
  if (way.carrier == Carrier::stream) {
    StreamEnd end(control, is_server, way, verbs);
    return act(stream_pipe(*end.stream));
  }
  // The process ends with the block, and its sockets with it.
  return act(socket_pipe(way.carrier == Carrier::tcp ? connect_by_tcp(control, is_server) : control, way.spins));
}

/// Calls `turn` for a while, and tells how long one takes.
BlockFigures time_turns(uint64_t block_ns, const std::function<void()>& turn) {
  std::vector<uint64_t> times_ns;
  const uint64_t warm_ns = base::now_ns() + block_ns / 10;
  for (int i = 0; i < kWarmUpTurns && base::now_ns() < warm_ns; ++i) {
    turn();
  }
  const uint64_t begin_ns = base::now_ns();
  uint64_t now_ns = begin_ns;
  do {
    const uint64_t from_ns = now_ns;
    turn();
    now_ns = base::now_ns();
    times_ns.push_back(now_ns - from_ns);
  } while (now_ns - begin_ns < block_ns);
  const Statistics found = statistics_of(std::move(times_ns));
  return {found.p50_us, found.p99_us, 0};
}

BlockFigures ping_pong_of_eventfds(uint64_t block_ns) {
  const int there = ::eventfd(0, EFD_CLOEXEC);
  const int back = ::eventfd(0, EFD_CLOEXEC);
  constexpr uint64_t kLastCount = 1000;
  const auto say = [](int fd, uint64_t word) { write_whole(fd, &word, sizeof word); };
  const auto hear = [](int fd) {
    uint64_t word = 0;
    read_whole(fd, &word, sizeof word);
    return word;
  };
  const auto serve = [&](int) {
    for (uint64_t word = 0; word != kLastCount;) {
      word = hear(there);
      say(back, word);
    }
  };
  const auto call = [&](int) {
    const BlockFigures found = time_turns(block_ns, [&] {
      say(there, 1);
      hear(back);
    });
    say(there, kLastCount);
    hear(back);
    return found;
  };
  const BlockFigures found = in_two_processes(serve, call, block_ns / 1'000'000 + kBlockLimitMs);
  ::close(there);
  ::close(back);
  return found;
}

/// Bytes a second from writing the first to knowing that the last has been read.
BlockFigures time_pieces(uint64_t block_ns, const std::function<void(char first)>& send,
                         const std::function<void()>& await_end) {
  for (int i = 0; i < 100; ++i) {
    send(0);
  }
  uint64_t bytes = kPieceBytes;
  const uint64_t begin_ns = base::now_ns();
  for (; base::now_ns() - begin_ns < block_ns; bytes += kPieceBytes) {
    send(0);
  }
  send(kLastMessage);
  await_end();
  return {0, 0, static_cast<double>(bytes) / static_cast<double>(base::now_ns() - begin_ns)};
}

/// Reads every byte where it lies, up to the end of the piece that says it is the last.
void drain_in_place(ByteStream& stream) {
  iovec pieces[2]{};
  volatile unsigned sum = 0;  // what is read must not be optimised away
  uint64_t seen = 0;
  for (bool is_last = false; !is_last || seen % kPieceBytes != 0;) {
    if (!stream.peek(pieces, kCallLimitMs)) {
      throw FoundProblem("nothing comes through a stream");
    }
    for (const iovec& piece : pieces) {
      const auto* const data = static_cast<const char*>(piece.iov_base);
      for (size_t at = (kPieceBytes - seen % kPieceBytes) % kPieceBytes; at < piece.iov_len; at += kPieceBytes) {
        is_last = is_last || data[at] == kLastMessage;
      }
      for (size_t at = 0; at < piece.iov_len; at += 64) {
        sum = sum + static_cast<unsigned char>(data[at]);
      }
      seen += piece.iov_len;
      stream.consume(piece.iov_len);
    }
  }
}

BlockFigures send_from_registered(ByteStream& stream, uint64_t block_ns) {
  constexpr size_t kPlaces = 4;
  std::vector<char> memory(kPlaces * kPieceBytes);
  stream.register_memory(memory.data(), memory.size());
  size_t next = 0;
  const auto send = [&](char first) {
    if (next % kPlaces == 0) {
      stream.wait_sent(kCallLimitMs);
    }
    char* const data = &memory[next++ % kPlaces * kPieceBytes];
    data[0] = first;
    for (size_t done = 0; done < kPieceBytes;) {
      done += stream.write_registered(data + done, kPieceBytes - done, kCallLimitMs);
    }
  };
  const BlockFigures found = time_pieces(block_ns, send, [&] {
    char word = 0;
    stream_pipe(stream).read(&word, 1);
  });
  stream.wait_sent(kCallLimitMs);
  stream.unregister_memory(memory.data());
  return found;
}

}  // namespace

std::string text(const Way& way) {
  constexpr std::array kNames{"stream", "stream without copies", "UNIX socket", "TCP", "eventfd"};
  return fmt::format("{}, {}", kNames.at(static_cast<size_t>(way.carrier)), way.spins ? "spinning" : "sleeping");
}

BlockFigures ping_pong_block(const Way& way, size_t bytes, uint64_t block_ns, const std::string& verbs) {
  if (way.carrier == Carrier::eventfd) {
    return ping_pong_of_eventfds(block_ns);
  }
  const auto serve = [&](const Pipe& pipe) {
    std::vector<char> data(bytes);
    do {
      pipe.read(data.data(), bytes);
      pipe.write(data.data(), bytes);
    } while (data.front() != kLastMessage);
    return BlockFigures{};
  };
  const auto call = [&](const Pipe& pipe) {
    std::vector<char> data(bytes);
    const auto turn = [&] {
      pipe.write(data.data(), bytes);
      pipe.read(data.data(), bytes);
    };
    const BlockFigures found = time_turns(block_ns, turn);
    data.front() = kLastMessage;
    turn();
    return found;
  };
  return in_two_processes([&](int control) { with_pipe(way, control, true, verbs, serve); },
                          [&](int control) { return with_pipe(way, control, false, verbs, call); },
                          block_ns / 1'000'000 + kBlockLimitMs);
}

BlockFigures bandwidth_block(const Way& way, uint64_t block_ns, const std::string& verbs) {
  const auto drain = [](const Pipe& pipe) {
    std::vector<char> data(kPieceBytes);
    do {
      pipe.read(data.data(), data.size());
    } while (data.front() != kLastMessage);
    pipe.write("k", 1);
    return BlockFigures{};
  };
  const auto send = [&](const Pipe& pipe) {
    std::vector<char> data(kPieceBytes);
    const auto put = [&](char first) {
      data.front() = first;
      pipe.write(data.data(), data.size());
    };
    return time_pieces(block_ns, put, [&] { pipe.read(data.data(), 1); });
  };
  const bool copies = way.carrier != Carrier::stream_zero_copy;
  const auto serve = [&](int control) {
    if (copies) {
      with_pipe(way, control, true, verbs, drain);
      return;
    }
    StreamEnd end(control, true, way, verbs);
    drain_in_place(*end.stream);
    stream_pipe(*end.stream).write("k", 1);
    char bye = 0;
    static_cast<void>(::read(control, &bye, 1));  // until the other has read that: its stream ends with this process
  };
  const auto call = [&](int control) {
    if (copies) {
      return with_pipe(way, control, false, verbs, send);
    }
    StreamEnd end(control, false, way, verbs);
    return send_from_registered(*end.stream, block_ns);
  };
  return in_two_processes(serve, call, block_ns / 1'000'000 + kBlockLimitMs);
}

}  // namespace ringbolt::tools::bench
