#include "bench/two_processes.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "failure.h"

namespace ringbolt::tools::bench {
namespace {

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
