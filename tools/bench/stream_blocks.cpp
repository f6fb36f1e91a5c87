#include "bench/stream_blocks.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/clock.h"
#include "bench/measure.h"
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
  if (made < 0) {
    refuse_socket("socket");
  }
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

/// What a process says to the one that awaits it: figures, or words of why there are none.
struct BlockAnswer {
  BlockFigures figures;
  std::array<char, 512> words{};
};
static_assert(sizeof(BlockAnswer) <= 4096);  // PIPE_BUF: written whole or not at all

[[noreturn]] void end_block(int answers, const BlockAnswer& answer) {
  const bool is_told = ::write(answers, &answer, sizeof answer) == sizeof answer;
  ::_exit(is_told ? 0 : 1);
}

/// Where that core does not exist the process may run anywhere.
void bind_to_core(unsigned core) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(core, &cores);
  ::sched_setaffinity(0, sizeof cores, &cores);
}

pid_t begin_block(unsigned core, int answers, const std::function<BlockFigures()>& act) {
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) {
    throw FoundProblem(fmt::format("fork: {}", std::strerror(errno)));
  }
  if (pid != 0) {
    return pid;
  }
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) {
    ::_exit(1);
  }
  bind_to_core(core);
  BlockAnswer answer;
  try {
    answer.figures = act();
  } catch (const std::exception& problem) {
    std::strncpy(answer.words.data(), problem.what(), answer.words.size() - 1);
  }
  end_block(answers, answer);
}

/// A pair of descriptors that are closed with it.
struct Ends {
  std::array<int, 2> fd{-1, -1};
  Ends() = default;
  Ends(const Ends&) = delete;
  Ends& operator=(const Ends&) = delete;
  ~Ends() { close_one(0), close_one(1); }
  void close_one(size_t which) {
    if (fd[which] >= 0) {
      ::close(std::exchange(fd[which], -1));
    }
  }
};

/// Killed and reaped at the latest when this ends.
struct BlockProcess {
  pid_t pid = -1;
  BlockProcess() = default;
  BlockProcess(const BlockProcess&) = delete;
  BlockProcess& operator=(const BlockProcess&) = delete;
  ~BlockProcess() {
    if (pid > 0) {
      ::kill(pid, SIGKILL);
      while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
      }
    }
  }
};

BlockAnswer await_answer(int answers, uint64_t deadline_ns) {
  pollfd waiting{answers, POLLIN, 0};
  int ready = 0;
  uint64_t now_ns = base::now_ns();
  while (ready <= 0 && now_ns < deadline_ns) {
    ready = ::poll(&waiting, 1, static_cast<int>((deadline_ns - now_ns) / 1'000'000 + 1));
    now_ns = base::now_ns();
  }
  if (ready <= 0) {
    throw FoundProblem("a block did not end in time: does something else keep the processors busy?");
  }
  BlockAnswer answer;
  if (::read(answers, &answer, sizeof answer) != sizeof answer) {
    throw FoundProblem("a process of a block has died");
  }
  return answer;
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

BlockFigures in_two_processes(const std::function<void(int socket)>& serve,
                              const std::function<BlockFigures(int socket)>& call, uint64_t limit_ms) {
  const uint64_t deadline_ns = base::now_ns() + limit_ms * 1'000'000;
  Ends sockets;
  Ends served;
  Ends called;
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets.fd.data()) != 0 ||
      ::pipe2(served.fd.data(), O_CLOEXEC) != 0 || ::pipe2(called.fd.data(), O_CLOEXEC) != 0) {
    throw FoundProblem(fmt::format("no socket or pipe between two processes: {}", std::strerror(errno)));
  }
  BlockProcess server;
  BlockProcess caller;
  server.pid = begin_block(0, served.fd[1], [&] {
    sockets.close_one(1), called.close_one(1);
    serve(sockets.fd[0]);
    return BlockFigures{};
  });
  sockets.close_one(0), served.close_one(1);
  caller.pid = begin_block(1, called.fd[1], [&] { return call(sockets.fd[1]); });
  sockets.close_one(1), called.close_one(1);
  const BlockAnswer answer = await_answer(called.fd[0], deadline_ns);
  if (answer.words[0] == '\0') {
    return answer.figures;
  }
  // The server knows better why, if the caller only saw it go.
  pollfd waiting{served.fd[0], POLLIN, 0};
  const BlockAnswer other = ::poll(&waiting, 1, 200) > 0 ? await_answer(served.fd[0], deadline_ns) : answer;
  throw FoundProblem(other.words[0] != '\0' ? other.words.data() : answer.words.data());
}

void write_whole(int fd, const void* data, size_t bytes) {
  for (size_t done = 0; done < bytes;) {
    const ssize_t some = ::write(fd, static_cast<const std::byte*>(data) + done, bytes - done);
    if (some < 0 && errno != EINTR) {
      throw FoundProblem(fmt::format("write to the other process: {}", std::strerror(errno)));
    }
    done += some > 0 ? static_cast<size_t>(some) : 0;
  }
}

void read_whole(int fd, void* data, size_t bytes, bool spins) {
  for (size_t done = 0; done < bytes;) {
    std::byte* const at = static_cast<std::byte*>(data) + done;
    const ssize_t some = spins ? ::recv(fd, at, bytes - done, MSG_DONTWAIT) : ::read(fd, at, bytes - done);
    if (some == 0 || (some < 0 && errno != EINTR && errno != EAGAIN)) {
      throw FoundProblem("the other process of a block has ended");
    }
    done += some > 0 ? static_cast<size_t>(some) : 0;
  }
}

}  // namespace ringbolt::tools::bench
