// A server that answers each request with as many bytes, and a client with several connections to it.

#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <deque>
#include <exception>
#include <stdexcept>

#include "base/clock.h"
#include "micro/pinned_thread.h"
#include "side.h"

namespace ringbolt::bench {

void write_all(int fd, const void* data, size_t length) {
  for (size_t done = 0; done < length;) {
    const ssize_t some = write(fd, static_cast<const std::byte*>(data) + done, length - done);
    if (some <= 0 && errno != EINTR) {
      throw std::runtime_error(std::string("write to the other process: ") + std::strerror(errno));
    }
    done += some > 0 ? static_cast<size_t>(some) : 0;
  }
}

void read_all(int fd, void* data, size_t length) {
  for (size_t done = 0; done < length;) {
    const ssize_t some = read(fd, static_cast<std::byte*>(data) + done, length - done);
    if (some == 0 || (some < 0 && errno != EINTR)) {
      throw std::runtime_error("the other process has ended");
    }
    done += some > 0 ? static_cast<size_t>(some) : 0;
  }
}

void in_two_processes(const std::function<void(int)>& child, const std::function<void(int)>& parent) {
  std::array<int, 2> pair{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) != 0) {
    throw std::runtime_error("socketpair failed");
  }
  const pid_t pid = fork();
  if (pid == 0) {
    close(pair[0]);
    pin_thread(0);
    int code = 0;
    try {
      child(pair[1]);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "bench_events: server: %s\n", error.what());
      code = 1;
    }
    _exit(code);
  }
  close(pair[1]);
  pin_thread(1);
  std::exception_ptr problem;
  try {
    parent(pair[0]);
  } catch (...) {
    problem = std::current_exception();
  }
  close(pair[0]);
  int status = 0;
  waitpid(pid, &status, 0);
  if (problem != nullptr) {
    std::rethrow_exception(problem);
  }
  if (status != 0) {
    throw std::runtime_error("the server has failed");
  }
}

namespace {

void serve(Side& side, int control) {
  pollfd end{control, POLLIN, 0};
  while (true) {
    bool came = false;
    side.wait(50, [&](uint32_t connection) {
      came = true;
      side.put(connection);
    });
    side.flush();
    if (!came && poll(&end, 1, 0) == 1) {
      return;
    }
  }
}

}  // namespace

Served request_reply(const MakeSide& make, const Shape& shape, uint64_t block_ns) {
  Served result;
  const auto call = [&](int control) {
    const auto side = make(shape, control, false);
    std::vector<std::deque<uint64_t>> begun(shape.connections);  // when the unanswered requests left, oldest first
    uint64_t begin = base::now_ns();
    const uint64_t warm_up_ns = block_ns / 10;
    bool is_warm = false;
    const auto ask = [&](uint32_t connection, uint64_t now) {
      begun[connection].push_back(now);
      side->put(connection);
    };
    for (uint32_t connection = 0; connection < shape.connections; ++connection) {
      for (uint32_t i = 0; i < shape.pipeline; ++i) {
        ask(connection, begin);
      }
    }
    side->flush();
    for (uint64_t now = begin; !is_warm || now - begin < block_ns;) {
      uint64_t answered = 0;
      side->wait(1000, [&](uint32_t connection) {
        const uint64_t then = base::now_ns();
        result.latencies_ns.push_back(then - begun[connection].front());
        begun[connection].pop_front();
        ++answered;
        ask(connection, then);
      });
      side->flush();
      now = base::now_ns();
      result.requests += answered;
      if (!is_warm && now - begin > warm_up_ns) {
        is_warm = true;
        begin = now;
        result = {};
      }
      result.elapsed_ns = now - begin;
    }
    if (result.requests == 0) {
      throw std::runtime_error("no request was answered");  // 0 a second is no figure
    }
    const char bye = 0;
    write_all(control, &bye, 1);
    char gone = 0;
    while (read(control, &gone, 1) > 0) {  // until the server has ended: it sends to us until then
    }
  };
  in_two_processes(
      [&](int control) {
        const auto side = make(shape, control, true);
        serve(*side, control);
      },
      call);
  return result;
}

}  // namespace ringbolt::bench
