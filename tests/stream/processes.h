#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include <ringbolt/byte_stream.h>

/// Two processes with a stream between them, on the public headers alone.
namespace ringbolt::stream_test {

inline uint64_t scaled_ms(uint64_t ms) {
  const char* scale = std::getenv("RINGBOLT_TEST_TIME_SCALE");
  return ms * (scale == nullptr ? 1U : static_cast<uint64_t>(std::max(1, std::atoi(scale))));
}
inline const uint64_t kSoonMs = scaled_ms(20'000);

/// Byte number `at` of a direction: depends on its place.
inline char pattern(uint64_t at, int side) {
  return static_cast<char>((at * 167 + (at >> 8U) * 13 + (at >> 16U) * 7 + static_cast<uint64_t>(side) * 91) & 0xffU);
}
inline std::vector<char> patterned(size_t count, uint64_t from, int side) {
  std::vector<char> bytes(count);
  for (size_t i = 0; i < count; ++i) {
    bytes[i] = pattern(from + i, side);
  }
  return bytes;
}

/// The streams' own runtime folder, so that no other program's ports and devices are in the way.
class RuntimeFolder {
 public:
  RuntimeFolder() {
    if (mkdtemp(path_.data()) == nullptr) {
      throw std::runtime_error("cannot make a folder below /tmp");
    }
    setenv("RINGBOLT_RUNTIME_DIR", path_.data(), 1);
    for (const char* name : {"RINGBOLT_CLUSTER", "RINGBOLT_NODE", "RINGBOLT_LIKE", "RINGBOLT_FAULTS"}) {
      unsetenv(name);
    }
  }
  ~RuntimeFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_.data(), ignored);
  }
  RuntimeFolder(const RuntimeFolder&) = delete;
  RuntimeFolder& operator=(const RuntimeFolder&) = delete;

 private:
  std::array<char, 20> path_{"/tmp/rbs-XXXXXX"};
};

/// A child that runs `body` with its end of a socket pair. It was forked before this process had a service of its own;
/// killed with this.
class Child {
 public:
  explicit Child(const std::function<void(int control)>& body) {
    std::array<int, 2> pair{};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) != 0 || (pid_ = fork()) < 0) {
      throw std::runtime_error("no child");
    }
    if (pid_ == 0) {
      close(pair[0]);
      int code = 0;
      try {
        body(pair[1]);
      } catch (const std::exception& problem) {
        std::fprintf(stderr, "child: %s\n", problem.what());
        code = 1;
      }
      _exit(code);
    }
    close(pair[1]);
    control_ = pair[0];
  }
  ~Child() {
    if (pid_ > 0) {
      kill(SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    close(control_);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  int control() const { return control_; }
  void kill(int signal) const { ::kill(pid_, signal); }
  /// Returns when none of its threads runs any more.
  void stop() const {
    ::kill(pid_, SIGSTOP);
    int status = 0;
    ASSERT_EQ(waitpid(pid_, &status, WUNTRACED), pid_);
    ASSERT_TRUE(WIFSTOPPED(status));
  }
  /// Its exit status, once it ends by itself: that its control socket closes is the sign.
  int join() {
    shutdown(control_, SHUT_WR);
    pollfd ended{control_, POLLIN, 0};
    char ignored = 0;
    while (poll(&ended, 1, static_cast<int>(kSoonMs)) == 1 && read(control_, &ignored, 1) > 0) {
    }
    int status = -1;
    for (uint64_t waited = 0; waited < kSoonMs && waitpid(pid_, &status, WNOHANG) == 0; waited += 10) {
      poll(nullptr, 0, 10);
    }
    pid_ = status == -1 ? pid_ : -1;
    return status;
  }

 private:
  pid_t pid_ = -1;
  int control_ = -1;
};

inline void tell(int control, uint64_t number) {
  if (write(control, &number, sizeof number) != sizeof number) {
    throw std::runtime_error("the other process has gone");
  }
}
/// Throws when nothing comes in time.
inline uint64_t hear(int control) {
  pollfd readable{control, POLLIN, 0};
  uint64_t number = 0;
  if (poll(&readable, 1, static_cast<int>(kSoonMs)) != 1 || read(control, &number, sizeof number) != sizeof number) {
    throw std::runtime_error("the other process says nothing");
  }
  return number;
}

inline ringbolt_stream_options with_buffers(uint32_t bytes, uint32_t count = 1) {
  ringbolt_stream_options options = StreamService::stream_options();
  options.receive_bytes = bytes;
  options.receive_buffers = count;
  return options;
}

/// Listens in a child, tells its port, and gives each accepted stream to `serve` until that says false.
class Server {
 public:
  using Serve = std::function<bool(ByteStream&, int control)>;
  explicit Server(const ringbolt_stream_options& options, const Serve& serve)
      : child_([&](int control) {
          StreamService service("soft");
          ringbolt_stream_listener_options listening = StreamService::listener_options();
          listening.stream = &options;
          StreamListener listener = service.listen("127.0.0.1", 0, listening);
          tell(control, listener.port());
          for (bool goes_on = true; goes_on;) {
            auto stream = listener.accept(kSoonMs);
            if (!stream) {
              throw std::runtime_error("nobody has connected");
            }
            goes_on = serve(*stream, control);
          }
        }),
        port_(static_cast<uint16_t>(hear(child_.control()))) {}

  Child& child() { return child_; }
  uint16_t port() const { return port_; }

 private:
  Child child_;
  uint16_t port_;
};

inline void write_all(ByteStream& stream, const char* data, size_t size) {
  for (size_t done = 0; done < size;) {
    const size_t some = stream.write(data + done, size - done, kSoonMs);
    if (some == 0) {
      throw std::runtime_error("nothing could be written in time");
    }
    done += some;
  }
}
/// False: the stream ended before.
inline bool read_all(ByteStream& stream, char* data, size_t size) {
  for (size_t done = 0; done < size;) {
    const auto some = stream.read(data + done, size - done, kSoonMs);
    if (!some) {
      throw std::runtime_error("nothing has come in time");
    }
    if (*some == 0) {
      return false;
    }
    done += *some;
  }
  return true;
}

/// Answers requests of 8 bytes, a length and then as many bytes of side 0, with as many of side 1.
inline bool answer_requests(ByteStream& stream, int) {
  uint64_t length = 0;
  while (read_all(stream, reinterpret_cast<char*>(&length), sizeof length)) {
    std::vector<char> request(length);
    if (!read_all(stream, request.data(), length) || request != patterned(length, 0, 0)) {
      throw std::runtime_error("a request is wrong");
    }
    write_all(stream, patterned(length, 0, 1).data(), length);
  }
  return false;
}

}  // namespace ringbolt::stream_test
