#include "probe/channel.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/clock.h"
#include "probe/probe_failure.h"
#include "stop.h"

namespace ringbolt::tools {
namespace {

void wait_readable(int fd, uint64_t deadline_ns) {
  const uint64_t now = base::now_ns();
  const auto left_ms = now >= deadline_ns ? 0 : static_cast<int>((deadline_ns - now) / 1'000'000 + 1);
  pollfd polled{fd, POLLIN, 0};
  if (::poll(&polled, 1, left_ms) == 0) {
    throw ProbeFailure("the other end did not answer in time", true);
  }
}

}  // namespace

void Channel::exchange(std::span<const std::byte> mine, std::span<std::byte> theirs) {
  // Messages of some tens of bytes: they fit the buffer of a socket or pipe, so sending first can't block.
  if (::write(write_fd_, mine.data(), mine.size()) != static_cast<ssize_t>(mine.size())) {
    throw ProbeFailure("the other end is gone", true);
  }
  while (!theirs.empty()) {
    wait_readable(read_fd_, deadline_ns_);
    if (is_stopped()) {
      throw ProbeFailure("it was interrupted");
    }
    const ssize_t got = ::read(read_fd_, theirs.data(), theirs.size());
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) {
      continue;
    }
    if (got <= 0) {
      throw ProbeFailure("the other end is gone", true);
    }
    theirs = theirs.subspan(static_cast<size_t>(got));
  }
}

void Channel::meet() {
  const std::byte mine{1};
  std::byte theirs{};
  exchange({&mine, 1}, {&theirs, 1});
}

void Channel::send_text(std::string_view text) {
  const auto length = static_cast<uint32_t>(text.size());
  std::string frame(sizeof length, '\0');
  std::memcpy(frame.data(), &length, sizeof length);
  frame += text;
  // What poll() calls writable takes so much without blocking, be it a socket or a pipe.
  constexpr size_t kPieceBytes = 4096;
  constexpr int kPatienceMs = 10'000;
  for (size_t at = 0; at < frame.size();) {
    pollfd polled{write_fd_, POLLOUT, 0};
    if (::poll(&polled, 1, kPatienceMs) == 0) {
      throw ProbeFailure("the other end takes nothing for 10 s", true);
    }
    const ssize_t put = ::write(write_fd_, frame.data() + at, std::min(kPieceBytes, frame.size() - at));
    if (put < 0 && errno != EINTR && errno != EAGAIN) {
      throw ProbeFailure("the other end is gone", true);
    }
    at += put > 0 ? static_cast<size_t>(put) : 0;
  }
}

std::optional<std::string> Channel::look() {
  uint32_t length = 0;
  while (true) {
    if (begun_.size() >= sizeof length) {
      std::memcpy(&length, begun_.data(), sizeof length);
      if (length > kMostTextBytes) {
        throw ProbeFailure("the other end does not speak as ringbolt does");
      }
      if (begun_.size() >= sizeof length + length) {
        std::string text = begun_.substr(sizeof length, length);
        begun_.erase(0, sizeof length + length);
        return text;
      }
    }
    pollfd polled{read_fd_, POLLIN, 0};
    if (::poll(&polled, 1, 0) <= 0) {
      return std::nullopt;
    }
    char buffer[4096];
    const ssize_t got = ::read(read_fd_, buffer, sizeof buffer);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) {
      return std::nullopt;
    }
    if (got <= 0) {
      throw ProbeFailure("the other end is gone", true);
    }
    begun_.append(buffer, static_cast<size_t>(got));
  }
}

}  // namespace ringbolt::tools
