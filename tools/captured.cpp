#include "captured.h"

#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include "base/clock.h"
#include "base/error.h"

namespace ringbolt::tools {
namespace {

base::UniqueFd readable(const std::string& text) {
  base::UniqueFd fd(::memfd_create("input", MFD_CLOEXEC));
  for (size_t done = 0; fd.is_open() && done < text.size();) {
    const ssize_t written = ::pwrite(fd.get(), text.data() + done, text.size() - done, static_cast<off_t>(done));
    if (written <= 0 && errno != EINTR) {
      throw base::Error(errno, "write", "input of a program");
    }
    done += static_cast<size_t>(std::max<ssize_t>(written, 0));
  }
  if (!fd.is_open()) {
    throw base::Error(errno, "memfd_create", "input of a program");
  }
  return fd;
}

void take(base::UniqueFd& from, std::string& to) {
  std::array<char, 65536> buffer;
  const ssize_t got = ::read(from.get(), buffer.data(), buffer.size());
  if (got > 0) {
    to.append(buffer.data(), std::min(static_cast<size_t>(got), kMostCapturedBytes - to.size()));
  } else if (got == 0 || errno != EINTR) {
    from.reset();
  }
}

}  // namespace

Captured run_captured(Launch launch, const std::string& input, double timeout_s,
                      const std::function<bool()>& is_stopped) {
  const base::UniqueFd input_fd = readable(input);
  launch.input_fd = input_fd.get();
  ChildProcess child = ChildProcess::start(std::move(launch));
  Captured result;
  bool has_stopped = false;
  uint64_t deadline = base::now_ns() + static_cast<uint64_t>(timeout_s * 1e9);
  for (;;) {
    const bool is_open = child.output().is_open() || child.error_output().is_open();
    // Its end closes its outputs, unless something that it left behind holds them open.
    if (child.has_ended() && !is_open) {
      break;
    }
    if (base::now_ns() >= deadline) {
      result.is_late = true;
      break;
    }
    if (!has_stopped && is_stopped && is_stopped()) {
      constexpr uint64_t kEndingNs = 5'000'000'000;
      has_stopped = true;
      child.signal_group(SIGINT);
      deadline = std::min(deadline, base::now_ns() + kEndingNs);
    }
    std::array<pollfd, 2> polled{pollfd{child.output().get(), POLLIN, 0},
                                 pollfd{child.error_output().get(), POLLIN, 0}};
    constexpr int kWaitMs = 50;
    ::poll(polled.data(), polled.size(), is_open ? kWaitMs : 1);
    if (polled[0].revents != 0) {
      take(child.output(), result.output);
    }
    if (polled[1].revents != 0) {
      take(child.error_output(), result.error_output);
    }
  }
  result.exit_code = result.is_late ? -1 : child.exit_code();
  return result;
}

std::string one_line(const std::string& text) {
  constexpr size_t kMostBytes = 400;
  std::string line;
  for (const char c : text.substr(0, std::min(text.find_last_not_of(" \r\n") + 1, kMostBytes))) {
    if (c == '\n') {
      line += "; ";
    } else if (c != '\r') {
      line += c;
    }
  }
  return line;
}

}  // namespace ringbolt::tools
