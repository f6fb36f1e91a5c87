// One block of one series of the streams' benchmark: prints its figures. stream.py takes turns and compares.
//   bench_stream ping-pong KIND BYTES BLOCK_MS: stream-spin, stream-sleep, unix-spin, unix-sleep, tcp-spin, tcp-sleep,
//                                               eventfd
//   bench_stream bandwidth KIND BLOCK_MS: stream, stream-zero-copy, unix, tcp
//   bench_stream load tcp|stream PORT CLIENTS BYTES get|set SPIN_US BLOCK_MS: against examples/key-value

#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <unistd.h>

#include "base/clock.h"
#include "load.h"
#include "side.h"

namespace ringbolt::bench {
namespace {

constexpr uint64_t kNsPerMs = 1'000'000;
constexpr uint64_t kLimitMs = 20'000;
constexpr char kEnd = 1;  // first byte of the last message
constexpr int kWarmUp = 1000;

/// Bytes to and fro in whole messages, whatever carries them.
struct Pipe {
  std::function<void(const char* data, size_t size)> write;
  std::function<void(char* data, size_t size)> read;
};

void write_whole(ByteStream& stream, const char* data, size_t size) {
  for (size_t done = 0; done < size;) {
    done += stream.write(data + done, size - done, kLimitMs);
  }
}

Pipe pipe_of(ByteStream& stream) {
  return {[&](const char* data, size_t size) { write_whole(stream, data, size); },
          [&](char* data, size_t size) {
            for (size_t done = 0; done < size;) {
              const auto some = stream.read(data + done, size - done, kLimitMs);
              if (!some || *some == 0) {
                throw std::runtime_error("the stream has ended");
              }
              done += *some;
            }
          }};
}

Pipe pipe_of(int socket, bool spins) {
  return {[=](const char* data, size_t size) { write_all(socket, data, size); },
          [=](char* data, size_t size) {
            for (size_t done = 0; done < size;) {
              const ssize_t some = recv(socket, data + done, size - done, spins ? MSG_DONTWAIT : 0);
              if (some == 0) {
                throw std::runtime_error("the socket has ended");
              }
              done += some > 0 ? static_cast<size_t>(some) : 0;
            }
          }};
}

/// Calls `act` with a pipe of that kind to the other process, in each of them.
void with_pipe(const std::string& kind, int control, bool is_server, const std::function<void(const Pipe&)>& act) {
  const bool spins = kind.ends_with("-spin");
  if (kind.starts_with("stream")) {
    Connected both(control, is_server, spins ? 1'000'000 : 0, 1U << 20U);
    act(pipe_of(*both.stream));
  } else if (kind.starts_with("unix")) {
    act(pipe_of(control, spins));
  } else {
    const int socket = connect_tcp(1, control, is_server).front();
    act(pipe_of(socket, spins));
    close(socket);
  }
}

void print(std::vector<uint64_t>& samples) {
  std::printf("p50_ns %lu p99_ns %lu count %zu\n", percentile(samples, 500), percentile(samples, 990), samples.size());
}

/// Calls `turn` for a while, and notes how long each takes.
std::vector<uint64_t> round_trips(uint64_t block_ns, const std::function<void()>& turn) {
  std::vector<uint64_t> samples;
  const uint64_t begin = base::now_ns();
  for (int i = 0; i <= kWarmUp || base::now_ns() - begin < block_ns; ++i) {
    const uint64_t from = base::now_ns();
    turn();
    if (i >= kWarmUp) {
      samples.push_back(base::now_ns() - from);
    }
  }
  return samples;
}

void ping_pong(const std::string& kind, size_t bytes, uint64_t block_ns) {
  const auto serve = [&](const Pipe& pipe) {
    std::vector<char> data(bytes);
    do {
      pipe.read(data.data(), bytes);
      pipe.write(data.data(), bytes);
    } while (data.front() != kEnd);
  };
  const auto call = [&](const Pipe& pipe) {
    std::vector<char> data(bytes);
    const auto turn = [&] {
      pipe.write(data.data(), bytes);
      pipe.read(data.data(), bytes);
    };
    auto samples = round_trips(block_ns, turn);
    data.front() = kEnd;
    turn();
    print(samples);
  };
  in_two_processes([&](int control) { with_pipe(kind, control, true, serve); },
                   [&](int control) { with_pipe(kind, control, false, call); });
}

/// What waking a process costs at least: a counter each way and nothing else.
void ping_pong_of_eventfds(uint64_t block_ns) {
  const int there = eventfd(0, EFD_CLOEXEC);
  const int back = eventfd(0, EFD_CLOEXEC);
  constexpr uint64_t kLast = 1000;
  const auto say = [](int fd, uint64_t word) { write_all(fd, &word, sizeof word); };
  const auto hear = [](int fd) {
    uint64_t word = 0;
    read_all(fd, &word, sizeof word);
    return word;
  };
  const auto serve = [&](int) {
    for (uint64_t word = 0; word != kLast;) {
      word = hear(there);
      say(back, word);
    }
  };
  const auto call = [&](int) {
    auto samples = round_trips(block_ns, [&] {
      say(there, 1);
      hear(back);
    });
    say(there, kLast);
    hear(back);
    print(samples);
  };
  in_two_processes(serve, call);
  close(there);
  close(back);
}

constexpr size_t kPieceBytes = 256U << 10U;

/// Reads pieces for ever, and answers each first byte that asks for it.
void drain(const Pipe& pipe) {
  std::vector<char> data(kPieceBytes);
  do {
    pipe.read(data.data(), data.size());
  } while (data.front() != kEnd);
  pipe.write("k", 1);
}

/// Bytes a second from writing the first to knowing that the last has been read. The data is touched in between.
void print_rate(uint64_t block_ns, const std::function<void(char first)>& send,
                const std::function<void()>& await_end) {
  for (int i = 0; i < 100; ++i) {
    send(0);
  }
  uint64_t bytes = 0;
  const uint64_t begin = base::now_ns();
  while (base::now_ns() - begin < block_ns) {
    send(0);
    bytes += kPieceBytes;
  }
  send(kEnd);
  await_end();
  bytes += kPieceBytes;
  const double seconds = static_cast<double>(base::now_ns() - begin) / 1e9;
  std::printf("bytes_per_second %.0f\n", static_cast<double>(bytes) / seconds);
}

void bandwidth_with_copies(const std::string& kind, uint64_t block_ns) {
  const auto call = [&](const Pipe& pipe) {
    std::vector<char> data(kPieceBytes);
    char answer = 0;
    print_rate(
        block_ns,
        [&](char first) {
          data.front() = first;
          pipe.write(data.data(), data.size());
        },
        [&] { pipe.read(&answer, 1); });
  };
  in_two_processes([&](int control) { with_pipe(kind, control, true, drain); },
                   [&](int control) { with_pipe(kind, control, false, call); });
}

/// Registered memory on one side, reading in place on the other.
void bandwidth_without_copies(uint64_t block_ns) {
  const auto serve = [&](int control) {
    Connected both(control, true, 0, 1U << 20U, 2);
    iovec pieces[2];
    uint64_t seen = 0;
    for (bool is_last = false; !is_last;) {
      if (!both.stream->peek(pieces, kLimitMs)) {
        throw std::runtime_error("nothing comes");
      }
      for (const iovec& piece : pieces) {
        const auto* data = static_cast<const char*>(piece.iov_base);
        const size_t first = (kPieceBytes - seen % kPieceBytes) % kPieceBytes;
        for (size_t at = first; at < piece.iov_len; at += kPieceBytes) {
          is_last = is_last || data[at] == kEnd;
        }
        for (size_t at = 0; at < piece.iov_len; at += 64) {
          sink = sink + static_cast<unsigned char>(data[at]);
        }
        seen += piece.iov_len;
        both.stream->consume(piece.iov_len);
      }
      is_last = is_last && seen % kPieceBytes == 0;
    }
    write_whole(*both.stream, "k", 1);
    char bye = 0;
    static_cast<void>(read(control, &bye, 1));
  };
  const auto call = [&](int control) {
    Connected both(control, false, 0, 1U << 20U, 2);
    constexpr size_t kPlaces = 4;
    std::vector<char> memory(kPlaces * kPieceBytes);
    both.stream->register_memory(memory.data(), memory.size());
    size_t next = 0;
    const auto send = [&](char first) {
      if (next % kPlaces == 0) {
        both.stream->wait_sent(kLimitMs);
      }
      char* data = &memory[next++ % kPlaces * kPieceBytes];
      data[0] = first;
      for (size_t done = 0; done < kPieceBytes;) {
        done += both.stream->write_registered(data + done, kPieceBytes - done, kLimitMs);
      }
    };
    char answer = 0;
    print_rate(block_ns, send, [&] { both.stream->read(&answer, 1, kLimitMs); });
  };
  in_two_processes(serve, call);
}

int run(const std::vector<std::string>& words) {
  const auto number = [&](size_t at) { return static_cast<uint32_t>(std::stoul(words.at(at))); };
  if (words.size() == 4 && words[0] == "ping-pong") {
    words[1] == "eventfd" ? ping_pong_of_eventfds(number(3) * kNsPerMs)
                          : ping_pong(words[1], number(2), number(3) * kNsPerMs);
    return 0;
  }
  if (words.size() == 3 && words[0] == "bandwidth") {
    words[1] == "stream-zero-copy" ? bandwidth_without_copies(number(2) * kNsPerMs)
                                   : bandwidth_with_copies(words[1], number(2) * kNsPerMs);
    return 0;
  }
  if (words.size() == 8 && words[0] == "load") {
    const Load load{.is_stream = words[1] == "stream",
                    .port = static_cast<uint16_t>(number(2)),
                    .clients = number(3),
                    .bytes = number(4),
                    .is_get = words[5] == "get",
                    .spin_us = number(6)};
    put_load(load, number(7) * kNsPerMs);
    return 0;
  }
  std::fprintf(stderr,
               "usage: bench_stream ping-pong KIND BYTES BLOCK_MS | bandwidth KIND BLOCK_MS | load tcp|stream PORT "
               "CLIENTS BYTES get|set SPIN_US BLOCK_MS\n");
  return 2;
}

}  // namespace
}  // namespace ringbolt::bench

int main(int argc, char** argv) try {
  return ringbolt::bench::run({argv + 1, argv + argc});
} catch (const std::exception& error) {
  std::fprintf(stderr, "bench_stream: %s\n", error.what());
  return 1;
}
